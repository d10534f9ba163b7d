"""Figure 4 with time for FLOPs: seconds per question against accuracy, of every configuration.

Left: wall-clock seconds of a run over its questions, many of which were in flight at a time. Right: median seconds
from a question's first request to its last answer. Both depend on machine, engine and concurrency, and are taken of
runs that one invocation made, without a memo. Choosing among stored samples (majority, BoN) takes no time of its own,
and is not shown. Accuracy, names and marks are those of Figure 4.

    frame = data(source)
    figure = draw(frame)
"""

import pandas as pd
from matplotlib.figure import Figure

from rsd.report.figures.fig4 import finish, panels, runs_of, timed
from rsd.report.figures.source import Source
from rsd.report.latency import latency

COSTS = {"seconds_per_question": "seconds per question, wall-clock", "p50": "seconds to a question's answer, median"}
TOLD = ["concurrency", "p99"]


def data(source: Source) -> pd.DataFrame:
    """One row for each configuration; times are missing where the run was not whole."""
    runs = runs_of(source)
    took = latency(source.rows("invocations", timed(runs)), source.rows("solutions", timed(runs)))
    took["seconds_per_question"] = 1 / took["per_second"]
    return finish(source, runs.merge(took[["run_id", *TOLD, *COSTS]], on="run_id", how="left"), COSTS, TOLD)


def draw(frame: pd.DataFrame) -> Figure:
    """Throughput beside latency."""
    return panels(__doc__, frame, COSTS)
