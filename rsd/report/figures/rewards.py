"""Rewards of the PRM by outcome: of steps in responses with a right and with a wrong final answer.

Steps that stand in a response and have a reward, counted in 20 bins; each of the two histograms adds up to 100% of
its own steps. With a threshold δ the draft's steps below it are missing; δ = 0 keeps all.

    frame = data(source)
    figure = draw(frame)
"""

import pandas as pd
from matplotlib.figure import Figure

from rsd.report.figures import style
from rsd.report.figures.cells import RUN, partial
from rsd.report.figures.reliability import scored
from rsd.report.figures.source import Source
from rsd.report.reliability import score_histogram

COLUMNS = ["prm", "delta", *RUN, "low", "high", "right", "wrong", "run_id"]
OUTCOMES = {"right": (style.RIGHT, "-", "right answers"), "wrong": (style.WRONG, "--", "wrong answers")}


def data(source: Source) -> pd.DataFrame:
    """One row for each PRM, threshold (0 and 0.7) and bin of rewards from `low` to `high`; counts of steps."""
    frames = [score_histogram(steps).assign(**run) for run, steps, _ in scored(source)]
    return pd.concat(frames, ignore_index=True)[COLUMNS] if frames else pd.DataFrame(columns=COLUMNS)


def draw(frame: pd.DataFrame) -> Figure:
    """One panel for each PRM and threshold."""
    shown = list(frame.groupby(["prm", "delta"])) or [(("the PRM", 0.0), frame)]
    plots, axes = style.subplots(__doc__, 1, len(shown), height=2.5, note=partial(frame, marks=False), sharey=True)
    style.heading(plots, frame, configurations=False)
    for ax, ((prm, delta), of) in zip(axes.flat, shown, strict=True):
        ax.set(
            title=f"{prm}, δ = {delta:g}",
            xlabel="reward of the step",
            yscale="linear" if frame.empty else "log",
            xticks=[0, 0.5, 1],
        )
        for outcome, (color, pattern, label) in OUTCOMES.items():
            edges = [*of["low"], *of["high"].tail(1)]
            if of[outcome].sum():
                shares = of[outcome] / of[outcome].sum()
                ax.stairs(shares, edges, color=color, linestyle=pattern, linewidth=1.4, label=label)
        style.percent(ax)
        if frame.empty:
            style.empty(ax, "RSD at δ = 0 or 0.7")
    axes[0, 0].set_ylabel("share of steps (log)")
    style.legend(plots, axes)
    return plots.figure
