"""Figure 5: the threshold δ against accuracy, and against the share of questions that the draft answers alone.

RSD with the binary weighting function at each threshold δ. Accuracy: share of questions whose final answer is right;
a question that failed counts as wrong. Draft only: share of questions answered without a call of the target, right or
wrong. Bands: 95% Wilson intervals. δ = 0 accepts every step; a reward can be exactly 1, so δ = 1 need not be the
target alone.

    frame = data(source)
    figure = draw(frame)
"""

import pandas as pd
from matplotlib.figure import Figure

from rsd.report.figures import style
from rsd.report.figures.cells import ACCURACY, DRAFT_ONLY, RUN, beside, hollow, measured, partial
from rsd.report.figures.source import Source

COLUMNS = ["line", "delta", *RUN, *ACCURACY, *DRAFT_ONLY, "run_id"]
PANELS = {"accuracy": "accuracy", "draft_only": "draft only, of questions"}


def data(source: Source) -> pd.DataFrame:
    """One row for each threshold (`line` rsd), and one for draft and target alone; the paper's numbers beside ours."""
    rsd = source.choose("fig5", method="rsd")
    alone = source.choose("fig5", method="single")
    rows = [{"line": "rsd", "delta": run["delta"], **measured(run)} for _, run in rsd.iterrows()]
    rows += [{"line": run["role"], **measured(run)} for _, run in alone.iterrows()]
    frame = pd.DataFrame(rows, columns=COLUMNS)
    return beside(frame, _printed(source), on=["line", "delta"]) if source.paper else frame


def _printed(source: Source) -> pd.DataFrame:
    table = source.printed("fig5", "delta", "accuracy_MATH500", "pct_questions_draft_only")
    table["line"] = "rsd"
    table["paper_accuracy"] = table["accuracy_MATH500"] / 100
    table["paper_draft_only"] = table["pct_questions_draft_only"] / 100
    return table[["line", "delta", "paper_accuracy", "paper_draft_only", "paper_quality"]]


def draw(frame: pd.DataFrame) -> Figure:
    """Two panels over δ; in the first, draft and target alone as lines across."""
    rsd = frame[frame["line"] == "rsd"]
    plots, axes = style.subplots(__doc__, 1, 2, height=2.6, note=f"{partial(frame)} {hollow(frame)}")
    style.heading(plots, rsd)
    for ax, (column, label) in zip(axes.flat, PANELS.items(), strict=True):
        ax.set(xlabel="threshold δ", ylabel=label, xlim=(-0.03, 1.03))
        if column == "accuracy":
            style.alone(ax, frame)
        style.line(ax, rsd, "delta", column, color=style.RSD, label="RSD")
        style.printed(ax, rsd, "delta", f"paper_{column}", color=style.RSD)
        style.percent(ax)
        if rsd["run_id"].isna().all():
            style.empty(ax, "RSD at several thresholds")
    style.legend(plots, axes)
    return plots.figure
