"""Figure B.1: Figure 5 by the difficulty that the benchmark gives its questions.

RSD with the binary weighting function at each threshold δ, on the questions of one level each. Accuracy: share of
them whose final answer is right; a question that failed counts as wrong. Draft only: share answered without a call of
the target, right or wrong. Bands: 95% Wilson intervals. Gain: the best accuracy of any δ less that of δ = 0, in
points; the best is chosen on the same questions.

    frame = data(source)
    figure = draw(frame)
"""

import pandas as pd
from matplotlib.figure import Figure

from rsd.report.figures import style
from rsd.report.figures.cells import ACCURACY, DRAFT_ONLY, RUN, beside, hollow, partial, share
from rsd.report.figures.names import name
from rsd.report.figures.source import Source

COLUMNS = ["level", "delta", *RUN, "level_questions", *ACCURACY, *DRAFT_ONLY, "max_gain", "run_id"]
COUNTED = {"correct": "accuracy", "draft_only": "draft_only"}
PANELS = {"accuracy": "accuracy", "draft_only": "draft only,\nof questions"}


def data(source: Source) -> pd.DataFrame:
    """One row for each level and threshold; shares, and the paper's beside ours. `level_questions` are of the level."""
    runs = source.choose("figB1", method="rsd")
    solutions = source.rows("solutions", runs).dropna(subset="level")
    rows = []
    for _, run in runs.iterrows():
        own = {"delta": run["delta"], "configuration": name(run), **run[["benchmark", *RUN[2:], "run_id"]]}
        for level, of in solutions[solutions["run_id"] == run["run_id"]].groupby("level"):
            right, alone = (share(int(of[column].sum()), len(of), into) for column, into in COUNTED.items())
            rows.append({"level": level, **own, "level_questions": len(of), **right, **alone})
    frame = pd.DataFrame(rows, columns=COLUMNS)
    for _, of in frame.groupby("level"):
        frame.loc[of.index, "max_gain"] = of["accuracy"].max() - of.loc[of["delta"] == 0, "accuracy"].sum(min_count=1)
    return beside(frame, _printed(source), on=["level", "delta"]) if source.paper else frame


def _printed(source: Source) -> pd.DataFrame:
    table = source.printed("figB1", "delta", "pct_draft_only", "max_accuracy_gain_over_delta0")
    table["paper_draft_only"] = table["pct_draft_only"] / 100
    table["paper_max_gain"] = table["max_accuracy_gain_over_delta0"] / 100
    return table[["level", "delta", "paper_draft_only", "paper_max_gain", "paper_quality"]]


def draw(frame: pd.DataFrame) -> Figure:
    """Accuracy above draft-only share, one column for each level."""
    levels = sorted(frame["level"].unique()) or ["1"]
    options = {"sharex": True, "sharey": "row"}
    plots, axes = style.subplots(
        __doc__, 2, len(levels), height=3.6, note=f"{partial(frame)} {hollow(frame)}", **options
    )
    style.heading(plots, frame)
    for column, level in enumerate(levels):
        of = frame[frame["level"] == level]
        for ax, (quantity, label) in zip(axes[:, column], PANELS.items(), strict=True):
            style.line(ax, of, "delta", quantity, color=style.RSD, label="RSD")
            style.printed(ax, of, "delta", f"paper_{quantity}", color=style.RSD)
            style.percent(ax)
            ax.set(
                xlim=(-0.05, 1.05),
                xticks=[0, 0.5, 1],
                xticklabels=["0", "0.5", "1"],
                ylabel=label if column == 0 else None,
            )
        axes[0, column].set_title(_title(level, of))
        axes[1, column].set(xlabel="threshold δ", ylim=(-0.04, 1.04))
    if frame["run_id"].isna().all():
        for ax in axes[0]:
            style.empty(ax, "RSD by level")
    style.legend(plots, axes)
    return plots.figure


def _title(level: str, of: pd.DataFrame) -> str:
    count = of["level_questions"].max()
    lines = [f"level {level}" if pd.isna(count) else f"level {level} (n = {count:.0f})"]
    if of["max_gain"].notna().any():
        lines.append(f"gain {100 * of['max_gain'].max():+.1f}")
    if "paper_max_gain" in of and of["paper_max_gain"].notna().any():
        lines.append(f"paper: gain {100 * of['paper_max_gain'].max():+.1f}")
    return "\n".join(lines)
