"""Figure 4 with GPU-seconds for FLOPs: device time per question against accuracy, of every configuration.

Left: busy, the time in which a device has a request of one of its models in flight, summed over devices. Right:
reserved, wall-clock time times all devices that the run held, which is what counts at an equal number of devices: RSD
on three of them against three copies of the target. Of runs that one invocation made, without a memo; models that are
not placed (on a CPU) share one device. Choosing among stored samples (majority, BoN) takes no time of its own, and is
not shown. Accuracy, names and marks are those of Figure 4.

    frame = data(source)
    figure = draw(frame)
"""

import pandas as pd
from matplotlib.figure import Figure

from rsd.report.figures.fig4 import finish, panels, runs_of, timed
from rsd.report.figures.source import Source
from rsd.report.latency import gpu_seconds

COSTS = {"busy": "GPU-seconds per question, busy", "reserved": "GPU-seconds per question, reserved"}
TOLD = ["concurrency", "devices"]


def data(source: Source) -> pd.DataFrame:
    """One row for each configuration; times are missing where the run was not whole, or its devices are not known."""
    runs = runs_of(source)
    took = gpu_seconds(*(source.rows(kind, timed(runs)) for kind in ("invocations", "solutions", "proposals")))
    took = took.reindex(columns=["run_id", *TOLD, *COSTS]).astype({"run_id": "str"})
    return finish(source, runs.merge(took, on="run_id", how="left"), COSTS, TOLD)


def draw(frame: pd.DataFrame) -> Figure:
    """Busy beside reserved."""
    return panels(__doc__, frame, COSTS)
