"""Figure 4: what a question costs against accuracy, of every configuration.

FLOPs per question on a logarithmic axis, in three accountings: passes (each sequential forward pass is one token), positions
(each token written or judged) and full (each position really run, prompts and attention included). All models of a method
count, the PRM too. Accuracy: share of questions with the right final answer, with 95% intervals. Names: draft/target/PRM.
Points of one colour and mark are joined over thresholds δ, that at 0.7 is the large one. Dotted: the Pareto front, those
that no other beats in cost and accuracy.

    frame = data(source)
    figure = draw(frame)
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter

from rsd.cost import ACCOUNTINGS
from rsd.report.figures import style
from rsd.report.figures.cells import ACCURACY, RUN, beside, measured, partial
from rsd.report.figures.names import rank
from rsd.report.figures.source import Source
from rsd.report.pareto import pareto

EXPERIMENTS = ("fig4", "fig5", "table2", "table3")
SHOWN = 0.7  # the threshold that the paper's figure shows
COSTS = {f"flops_{accounting}": accounting for accounting in ACCOUNTINGS}
COLUMNS = [*RUN, "method", "role", "pair", "prm", "n", "delta", *ACCURACY]
FILLS = ("full", "left", "none", "right")  # from the largest PRM on
WITH_PRM = ("RSD", "BoN", "Process BoN", "Beam")


def runs_of(source: Source) -> pd.DataFrame:
    """Every configuration of the pair and the large pair on the preset's benchmark, with its accuracy."""
    preset = source.preset
    pairs = {preset["pair"]: "pair", preset["large"]: "large"}
    runs = source.choose(*EXPERIMENTS, benchmark=preset["benchmark"], model=list(pairs))
    runs = runs[runs["accuracy"].notna()].reset_index(drop=True)
    told = pd.DataFrame([measured(run) for _, run in runs.iterrows()], columns=[*RUN, *ACCURACY, "run_id"])
    return runs.assign(pair=runs["model"].map(pairs), **told)


def data(source: Source) -> pd.DataFrame:
    """One row for each configuration; ``front_<cost>``: whether it is on the Pareto front of complete runs."""
    return finish(source, runs_of(source), COSTS)


def finish(source: Source, runs: pd.DataFrame, costs: Iterable[str], told: Sequence[str] = ()) -> pd.DataFrame:
    """The columns of a figure with these `costs` and what is `told` beside them, the fronts, and the paper's
    accuracies beside ours."""
    frame = runs.reindex(columns=[*COLUMNS, *told, *costs, "run_id"])
    for cost in costs:
        known = frame[cost].where(frame["complete"].eq(True)).astype(float)
        frame[f"front_{cost}"] = pareto(known, frame["accuracy"].astype(float))
    if not source.paper:
        return frame
    both = beside(frame, _printed(source), on=["configuration", "delta"])
    return both.assign(pair=both["pair"].fillna(both.pop("paper_pair")))


def _printed(source: Source) -> pd.DataFrame:
    table = source.printed("fig4", "accuracy_MATH500").rename(columns={"config": "configuration"})
    table["delta"] = table["configuration"].str.startswith("RSD").map({True: SHOWN, False: np.nan})
    table["paper_accuracy"] = table["accuracy_MATH500"] / 100
    large = (table["target"] == "72B") | ((table["draft"] == "7B") & (table["target"] != "7B"))
    table["paper_pair"] = large.map({True: "large", False: "pair"})
    return table[["configuration", "delta", "paper_accuracy", "paper_quality", "paper_pair"]]


def draw(frame: pd.DataFrame) -> Figure:
    """One panel for each accounting."""
    units = [f"FLOPs per question, {accounting}" for accounting in COSTS.values()]
    return panels(__doc__, frame, dict(zip(COSTS, units, strict=True)))


def panels(doc: str | None, frame: pd.DataFrame, costs: Mapping[str, str]) -> Figure:
    """One panel for each of `costs` {column: label}; at the margin the paper's accuracies, whose costs are not known."""
    frame = frame.assign(series=frame["configuration"].str.replace(r", N=\d+", "", regex=True))
    margin = "paper_accuracy" in frame
    widths = [1.0] * len(costs) + [0.2] * margin
    plots, axes = style.subplots(doc, 1, len(widths), height=3.9, note=partial(frame), sharey=True, width_ratios=widths)
    style.heading(plots, frame, configurations=False)
    looks = _looks(frame)
    for ax, (cost, label) in zip(axes.flat, costs.items(), strict=False):
        ax.set_xlabel(label)
        known = frame[frame[cost].notna()].astype({cost: float})
        if known.empty:
            style.empty(ax, "any configuration\nwhose cost is known")
            continue
        front = known[known[f"front_{cost}"].eq(True)].sort_values(cost)
        ax.plot(front[cost], front["accuracy"], color=style.GREY, linestyle=":", linewidth=1.0, zorder=1)
        for series, of in known.sort_values(["delta", "n"]).groupby("series", sort=False):
            ax.plot(of[cost], of["accuracy"], linewidth=0.8, markersize=3, zorder=2, **looks[series])
            large = of[of["delta"].isna() | (of["delta"] == SHOWN)]
            style.point(ax, large, cost, "accuracy", label=series, **looks[series])
        _logarithmic(ax)
    if margin:
        _margin(axes[0, -1], frame, looks)
    style.percent(axes[0, 0])
    axes[0, 0].set_ylabel("accuracy")
    style.legend(plots, axes, ncols=4)
    return plots.figure


def _looks(frame: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Of each series: the colour and mark of its method, filled by its PRM, edged in black for the large pair."""
    named = frame.drop_duplicates("series").set_index("series")["pair"]
    prms = sorted({_models(series)[-1] for series in named.index if _method(series) in WITH_PRM}, key=rank)
    fills = dict(zip(reversed(prms), FILLS, strict=False))
    looks = {}
    for series, pair in named.items():
        color, mark = style.METHODS[_method(series)]
        fill = fills[_models(series)[-1]] if _method(series) in WITH_PRM else "full"
        edge = "black" if pair == "large" else color
        looks[series] = {"color": color, "marker": mark, "fillstyle": fill, "markeredgecolor": edge}
    return looks


def _method(series: str) -> str:
    return series.partition(" (")[0]


def _models(series: str) -> list[str]:
    return series.partition(" (")[2].rstrip(")").split("/")


def _logarithmic(axes: Axes) -> None:
    """A logarithmic axis of cost, labelled at 1, 2 and 5 times powers of ten."""
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _margin(axes: Axes, frame: pd.DataFrame, looks: Mapping[str, dict[str, Any]]) -> None:
    """The paper's accuracies as marks side by side, in the order of accuracy."""
    rows = frame[frame["paper_accuracy"].notna()].sort_values("paper_accuracy")
    for x, (_, row) in enumerate(rows.iterrows()):
        axes.plot(x, row["paper_accuracy"], linestyle="none", label=row["series"], **looks[row["series"]])
    axes.set(title="paper", xlabel="cost not\nknown", xticks=[], xlim=(-1, len(rows)))
