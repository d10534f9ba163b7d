"""Figure 4 with time for FLOPs: seconds per question against accuracy, of every configuration.

Left: wall-clock seconds of a run over its questions, so that of many questions in flight. Right: median seconds from a
question's first request to its last answer. Both are of the machine, the engine and the concurrency that the run had, and
are taken of whole runs without a memo only. Accuracy, names and marks are those of Figure 4.

    frame = data(source)
    figure = draw(frame)
"""

import pandas as pd
from matplotlib.figure import Figure

from rsd.report.figures.fig4 import finish, panels, runs_of
from rsd.report.figures.source import Source
from rsd.report.latency import latency

COSTS = {"seconds_per_question": "wall-clock seconds per question", "p50": "median seconds to the answer"}
TOLD = ["concurrency", "p99"]


def data(source: Source) -> pd.DataFrame:
    """One row for each configuration; times are missing where the run was not whole."""
    runs = runs_of(source)
    took = latency(source.rows("invocations", runs), source.rows("solutions", runs))
    took["seconds_per_question"] = 1 / took["per_second"]
    return finish(source, runs.merge(took[["run_id", *TOLD, *COSTS]], on="run_id", how="left"), COSTS, TOLD)


def draw(frame: pd.DataFrame) -> Figure:
    """Throughput beside latency."""
    return panels(__doc__, frame, COSTS)
