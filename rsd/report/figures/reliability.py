"""Reliability of the PRM: how often a response with a step of this reward ends in the right answer.

Steps that stand in a response, by their reward, in ten bins: the share of them whose response has the right final
answer, against their mean reward; on the diagonal, a reward would be that probability. With a threshold δ the draft's
steps below it are missing; δ = 0 keeps all. Bars: 95% Wilson intervals, which take the steps of a response for
independent and so are too narrow. ECE: mean distance of share and mean reward over bins, weighted by steps. Diamond:
responses whose smallest accepted reward lies within 0.05 above δ. Below: how many steps a bin holds.

    frame = data(source)
    figure = draw(frame)
"""

from collections.abc import Iterator
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from rsd.report.figures import style
from rsd.report.figures.cells import RUN, partial
from rsd.report.figures.names import name
from rsd.report.figures.source import Source
from rsd.report.reliability import WIDTH, near_threshold, reliability, scored_steps

DELTAS = (0.0, 0.7)
COLORS = {0.0: style.DRAFT, 0.7: style.RSD}
NEAR = ["near_solutions", "near_right", "near_share", "near_share_low", "near_share_high"]
COLUMNS = [
    "prm",
    "delta",
    *RUN,
    "low",
    "high",
    "steps",
    "reward",
    "right",
    "share",
    "share_low",
    "share_high",
    "ece",
    *NEAR,
    "run_id",
]


def data(source: Source) -> pd.DataFrame:
    """One row for each PRM, threshold (0 and 0.7) and bin of rewards from `low` to `high`; `near_…`, the same in every
    bin: of responses whose smallest accepted reward lies just above the threshold."""
    frames = []
    for run, steps, solutions in scored(source):
        bins = reliability(steps)
        weights = bins["steps"] / max(bins["steps"].sum(), 1)
        bins["ece"] = ((bins["share"] - bins["reward"]).abs() * weights).sum()
        near = near_threshold(solutions, run["delta"]).set_index("smallest").loc["near"].add_prefix("near_")
        frames.append(bins.assign(**run, **near))
    return pd.concat(frames, ignore_index=True)[COLUMNS] if frames else pd.DataFrame(columns=COLUMNS)


def scored(source: Source) -> Iterator[tuple[dict[str, Any], pd.DataFrame, pd.DataFrame]]:
    """What a run of the pair is, for each PRM and threshold, its scored steps with their responses' verdicts, and its
    solutions."""
    runs = source.choose("fig4", "fig5", method="rsd", model=source.preset["pair"], delta=[*DELTAS])
    for _, run in runs.sort_values(["prm", "delta"]).iterrows():
        only = runs[runs["run_id"] == run["run_id"]]
        solutions = source.rows("solutions", only)
        steps = scored_steps(source.rows("proposals", only), solutions)
        told = run[["prm", "delta", "benchmark", "questions", "size", "complete", "run_id"]]
        yield {**told, "configuration": name(run)}, steps, solutions


def draw(frame: pd.DataFrame) -> Figure:
    """One column for each PRM: the diagram above the counts."""
    prms = list(frame["prm"].unique()) or ["the PRM"]
    options = {"sharex": True, "sharey": "row", "height_ratios": [2.4, 1]}
    plots, axes = style.subplots(__doc__, 2, len(prms), height=3.8, note=partial(frame), **options)
    style.heading(plots, frame, configurations=False)
    for (diagram, counts), prm in zip(axes.T, prms, strict=True):
        diagram.set_title(prm)
        diagram.plot([0, 1], [0, 1], color=style.GREY, linewidth=0.8, linestyle=":", label="reward = probability")
        for delta, of in frame[frame["prm"] == prm].groupby("delta"):
            label = f"δ = {delta:g}, ECE {of['ece'].iloc[0]:.3f}"
            style.point(diagram, of, "reward", "share", color=COLORS[delta], label=label)
            near = of.tail(1).assign(reward=delta + WIDTH / 2)
            style.point(diagram, near, "reward", "near_share", color=COLORS[delta], marker="D", markerfacecolor="white")
            edges = [*of["low"], of["high"].iloc[-1]]
            counts.stairs(of["steps"], edges, color=COLORS[delta], linewidth=1.3)
        diagram.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        counts.set(xlabel="reward of the step", yscale="log")
        style.percent(diagram)
        if frame.empty:
            style.empty(diagram, "RSD at δ = 0 or 0.7")
        else:
            diagram.legend(loc="lower right")
    axes[0, 0].set_ylabel("share with the right answer")
    axes[1, 0].set_ylabel("steps (log)")
    return plots.figure
