"""Figure 6: the weighting functions ω of Table 1, with draft and target alone, and at comparable cost.

Left: accuracy of RSD with each weighting function, other settings equal; lines across are draft and target alone.
Right: the same accuracies against cost, the FLOPs of a run over those of the target alone on the questions that both
answered, counting each sequential forward pass as one token (passes). The grey line is the binary function at other
thresholds, so that a function above it is better than a threshold of its own cost. Bars and bands: 95% Wilson
intervals.

    frame = data(source)
    figure = draw(frame)
"""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from rsd.cost import ACCOUNTINGS
from rsd.report.figures import style
from rsd.report.figures.cells import ACCURACY, RUN, beside, hollow, measured, partial
from rsd.report.figures.source import Source

FUNCTIONS = ("constant", "binary", "clipping", "sigmoidal", "logistic")
SYMBOLS = {"p": "p", "alpha": "α", "delta": "δ"}
COSTS = [f"cost_{accounting}" for accounting in ACCOUNTINGS]
COLUMNS = ["line", "parameters", *RUN, *ACCURACY, "acceptance", *COSTS, "binary_at_cost", "gain_at_cost", "run_id"]
SWEEP = "binary sweep"


def data(source: Source) -> pd.DataFrame:
    """One row for each function (`line` its name), for draft and target alone, and for binary at other thresholds.

    `cost_<accounting>`: relative to the target alone. `binary_at_cost`: accuracy of binary at the function's
    `cost_passes`, interpolated between its thresholds; `gain_at_cost`: what the function has more than that.
    """
    alone = source.choose("fig6", method="single")
    functions = source.choose("fig6", method="rsd")
    sweep = source.choose("fig5", method="rsd")
    sweep = sweep[~sweep["run_id"].isin(functions["run_id"])]
    chosen = [alone.assign(line=alone["role"]), functions.assign(line=functions["weighting"]), sweep.assign(line=SWEEP)]
    runs = pd.concat(chosen, ignore_index=True)
    costs = _relative_costs(source.rows("solutions", runs), alone[alone["role"] == "target"])
    rows = [
        {**run[["line", "acceptance"]], "parameters": _parameters(run), **measured(run), **costs.get(run["run_id"], {})}
        for _, run in runs.iterrows()
    ]
    frame = _at_equal_cost(pd.DataFrame(rows, columns=COLUMNS))
    return beside(frame, _printed(source), on=["line"]) if source.paper else frame


def _parameters(run: pd.Series) -> str:
    """δ=0.7, α=1 and the like; empty where the function has none."""
    settings = run["settings"]
    return ", ".join(f"{symbol}={settings[key]:g}" for key, symbol in SYMBOLS.items() if key in settings)


def _relative_costs(solutions: pd.DataFrame, target: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Of each run, FLOPs over those of the target alone, on the questions that both answered; by accounting."""
    own = solutions[solutions["error"].isna()].set_index(["question_id", "sample"])
    if target.empty:
        return {}
    reference = own[own["run_id"] == target["run_id"].iloc[0]]
    costs = {}
    for run_id, rows in own.groupby("run_id"):
        common = rows.index.intersection(reference.index)
        sums = [frame.loc[common, [f"flops_{a}" for a in ACCOUNTINGS]].sum(skipna=False) for frame in (rows, reference)]
        costs[run_id] = dict(zip(COSTS, sums[0] / sums[1], strict=True))
    return costs


def _at_equal_cost(frame: pd.DataFrame) -> pd.DataFrame:
    """With what binary reaches at the cost of each other function; NaN beyond the costs of its thresholds."""
    binary = frame[frame["line"].isin(["binary", SWEEP])].dropna(subset=["cost_passes"]).sort_values("cost_passes")
    others = frame["line"].isin(set(FUNCTIONS) - {"binary"}) & frame["cost_passes"].notna()
    if len(binary) >= 2:
        costs, reached = binary["cost_passes"].astype(float), binary["accuracy"].astype(float)
        here = frame.loc[others, "cost_passes"].astype(float)
        frame.loc[others, "binary_at_cost"] = np.interp(here, costs, reached, left=np.nan, right=np.nan)
        frame["gain_at_cost"] = frame["accuracy"] - frame["binary_at_cost"]
    return frame


def _printed(source: Source) -> pd.DataFrame:
    table = source.printed("fig6", "accuracy_MATH500")
    names = {"reference line: Target Model only": "target", "reference line: Draft Model only": "draft"}
    table["line"] = table["weighting_function"].replace(names).str.lower()
    table["paper_accuracy"] = table["accuracy_MATH500"] / 100
    return table[["line", "paper_accuracy", "paper_quality"]]


def draw(frame: pd.DataFrame) -> Figure:
    """Two panels that share the axis of accuracy."""
    plots, axes = style.subplots(
        __doc__, 1, 2, height=3.0, note=f"{partial(frame)} {hollow(frame)}", sharey=True, width_ratios=[1, 1.15]
    )
    functions = frame[frame["line"].isin(FUNCTIONS)]
    style.heading(plots, functions[functions["line"] == "binary"])
    by_function, by_cost = axes.flat
    by_function.set(ylabel="accuracy", xlim=(-0.6, len(FUNCTIONS) - 0.4))
    told = functions.dropna(subset="parameters").set_index("line")["parameters"]
    labels = [f"{function}\n{told.get(function, '')}" for function in FUNCTIONS]
    by_function.set_xticks(range(len(FUNCTIONS)), labels, fontsize=7)
    by_cost.set(xlabel="FLOPs relative to the target alone (passes)")
    style.percent(by_cost, "x")
    for ax in axes.flat:
        style.percent(ax)
    style.alone(by_function, frame)
    if "paper_accuracy" in frame:
        by_function.plot([], [], color=style.GREY, marker="D", markerfacecolor="white", linestyle=":", label="paper")
        for role, color in (("draft", style.DRAFT), ("target", style.TARGET)):
            for accuracy in frame.loc[frame["line"] == role, "paper_accuracy"].dropna():
                by_function.axhline(accuracy, color=color, linestyle=":", linewidth=1.0, zorder=1)
    sweep = frame[frame["line"].isin(["binary", SWEEP])].sort_values("cost_passes")
    if sweep["cost_passes"].notna().any():
        look = {"color": style.GREY, "marker": ".", "zorder": 1}
        by_cost.plot(sweep["cost_passes"], sweep["accuracy"], label="binary, other δ", **look)
    for i, function in enumerate(FUNCTIONS):
        row = functions[functions["line"] == function]
        style.point(by_function, row.assign(x=i), "x", "accuracy", color=style.WEIGHTINGS[function])
        style.point(by_cost, row, "cost_passes", "accuracy", color=style.WEIGHTINGS[function], label=function)
        beside_ours = row.assign(x=i + 0.18)
        style.printed(by_function, beside_ours, "x", "paper_accuracy", color=style.WEIGHTINGS[function], label=None)
    for role, color, mark in (("draft", style.DRAFT, "v"), ("target", style.TARGET, "^")):
        row = frame[frame["line"] == role]
        style.point(by_cost, row, "cost_passes", "accuracy", color=color, marker=mark, label=f"{role} alone")
    if functions["run_id"].isna().all():
        for ax in axes.flat:
            style.empty(ax, "RSD with these weighting functions")
    style.legend(plots, axes)
    return plots.figure
