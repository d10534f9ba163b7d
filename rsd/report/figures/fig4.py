"""Figure 4: what a question costs against accuracy, of every configuration.

FLOPs per question on a logarithmic axis, in three accountings: passes (each sequential forward pass is one token),
positions (each token written or judged) and full (each position really run, prompts and attention included). All
models of a method count, the PRM too. Accuracy: share of questions with the right final answer; a question that
failed counts as wrong. Bars: 95% intervals. Names: draft/target/PRM; large marks: the large pair; half filled: the
smaller PRM. Joined: thresholds δ, with the bar at 0.7, or numbers of samples N. Dotted: Pareto front of complete
runs, which none beats in both cost and accuracy.

    frame = data(source)
    figure = draw(frame)
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FixedLocator, NullFormatter

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
APART = 0.17  # of an axis's length, that its labels are at least from one another
NICE = (1.0, 5.0, 2.0, 3.0, 7.0, 4.0, 6.0, 8.0, 9.0, 1.5, 2.5)  # mantissas, in the order of preference
FINE = tuple(np.arange(1.0, 10.0, 0.1))  # where costs lie closer together
WITH_PRM = ("RSD", "BoN", "Process BoN", "Beam")


def runs_of(source: Source) -> pd.DataFrame:
    """Every configuration of the pair and the large pair on the preset's benchmark, with its accuracy."""
    preset = source.preset
    pairs = {preset["pair"]: "pair", preset["large"]: "large"}
    runs = source.choose(*EXPERIMENTS, benchmark=preset["benchmark"], model=list(pairs))
    runs = runs[runs["accuracy"].notna()].reset_index(drop=True)
    told = pd.DataFrame([measured(run) for _, run in runs.iterrows()], columns=[*RUN, *ACCURACY, "run_id"])
    return runs.assign(pair=runs["model"].map(pairs), **told)


def timed(runs: pd.DataFrame) -> pd.DataFrame:
    """Those that decode: a choice among stored samples takes no time of its own."""
    return runs[~runs["method"].isin(["majority", "best_of_n"])]


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
    """One panel for each of `costs` {column: label}; at the margin the paper's accuracies, of unknown cost."""
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
            ax.set_xticks([])
            style.empty(ax, "any configuration\nwhose cost is known")
            continue
        front = known[known[f"front_{cost}"].eq(True)].sort_values(cost)
        ax.plot(front[cost], front["accuracy"], color=style.GREY, linestyle=":", linewidth=1.0, zorder=1)
        for series, look in looks.items():
            of = known[known["series"] == series].sort_values(["delta", "n"])
            barred = of["delta"].isna() | (of["delta"] == SHOWN)
            ax.plot(of[cost], of["accuracy"], color=look["color"], linewidth=0.8, zorder=2)
            style.point(ax, of[~barred], cost, "accuracy", bars=False, **{**look, "markersize": 3})
            style.point(ax, of[barred], cost, "accuracy", label=series, **look)
        _logarithmic(ax, label.split()[0])
    if margin:
        _margin(axes[0, -1], frame, looks)
    style.percent(axes[0, 0])
    axes[0, 0].set_ylabel("accuracy")
    style.legend(plots, axes, ncols=4)
    return plots.figure


def _looks(frame: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Of each series, in the legend's order: colour and mark of its method, filled by its PRM, black edges for the
    large pair."""
    order = {method: i for i, method in enumerate(style.METHODS)}
    named = frame.drop_duplicates("series").set_index("series")["pair"]
    named = named.loc[
        sorted(named.index, key=lambda series: (named[series] == "large", order[_method(series)], series))
    ]
    prms = sorted({_models(series)[-1] for series in named.index if _method(series) in WITH_PRM}, key=rank)
    fills = dict(zip(reversed(prms), FILLS, strict=False))
    looks = {}
    for series, pair in named.items():
        color, mark = style.METHODS[_method(series)]
        fill = fills[_models(series)[-1]] if _method(series) in WITH_PRM else "full"
        edge = "black" if pair == "large" else color
        size = 7.5 if pair == "large" else 5.5
        look = {"color": color, "marker": mark, "fillstyle": fill, "markeredgecolor": edge, "markersize": size}
        looks[series] = look
    return looks


def _method(series: str) -> str:
    return series.partition(" (")[0]


def _models(series: str) -> list[str]:
    return series.partition(" (")[2].rstrip(")").split("/")


def _logarithmic(axes: Axes, unit: str) -> None:
    """A logarithmic axis of costs, with as many labels as there is room for."""
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    powers = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)))
    labelled: list[float] = []
    for mantissa in (*NICE, *FINE):
        for cost in (float(mantissa * power) for power in powers if low <= mantissa * power <= high):
            apart = all(abs(np.log(cost / other)) > APART * np.log(high / low) for other in labelled)
            if apart and (mantissa in NICE or len(labelled) < 3):
                labelled.append(cost)
    axes.xaxis.set_major_locator(FixedLocator(labelled))
    axes.xaxis.set_major_formatter(EngFormatter(sep="") if unit == "FLOPs" else lambda cost, _: f"{cost:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())


def _margin(axes: Axes, frame: pd.DataFrame, looks: Mapping[str, dict[str, Any]]) -> None:
    """The paper's accuracies as marks side by side, in the order of accuracy."""
    rows = frame[frame["paper_accuracy"].notna()].sort_values("paper_accuracy")
    for x, (_, row) in enumerate(rows.iterrows()):
        look = {"linestyle": "none", "label": row["series"], "clip_on": False, **looks[row["series"]]}
        axes.plot(x, row["paper_accuracy"], **look)
    axes.set(title="paper", xlabel="cost not\nknown", xticks=[], xlim=(-1.5, len(rows) + 0.5))
