"""What figures take from runs: accuracy and draft-only share with intervals, and which runs are partial.

measured(run) # {"run_id": ..., "accuracy": 0.9, "accuracy_low": 0.87, "accuracy_high": 0.92, ...} share(45, 50,
"draft_only") beside(frame, printed, on=["delta"])
"""

from typing import Any

import pandas as pd

from rsd.report.figures.names import name
from rsd.report.statistics import wilson

RUN = ["configuration", "benchmark", "questions", "size", "complete"]
ACCURACY = ["accuracy", "accuracy_low", "accuracy_high"]
PRINTED_OF = "math500"  # the benchmark of the paper's figures
DRAFT_ONLY = ["draft_only", "draft_only_low", "draft_only_high"]


def measured(run: pd.Series) -> dict[str, Any]:
    """A run's configuration, accuracy and draft-only share, in the columns of figures."""
    told = {key: run[key] for key in ("benchmark", "questions", "size", "complete", "run_id", "accuracy")}
    interval = {"accuracy_low": run["low"], "accuracy_high": run["high"]}
    alone = share(round(run["draft_only"] * run["records"]), run["records"], "draft_only")
    return {"configuration": name(run), **told, **interval, **alone}


def share(part: int, whole: int, column: str) -> dict[str, float]:
    """`part` of `whole` (>= 1) with its 95% Wilson interval, as columns ``<column>``, ``_low`` and ``_high``."""
    low, high = wilson(part, whole)
    return {column: part / whole, f"{column}_low": low, f"{column}_high": high}


def beside(ours: pd.DataFrame, printed: pd.DataFrame, on: list[str]) -> pd.DataFrame:
    """Our rows with the paper's numbers beside them, matched `on` these columns, rows that only one has included.

    Each number ``paper_<x>`` of `printed`, in the unit of our `x`, gets a ``<x>_difference``: ours less the paper's.
    """
    both = ours.merge(printed, how="outer", on=on)
    both["benchmark"] = both["benchmark"].fillna(PRINTED_OF)
    for column in printed.columns:
        own = column.removeprefix("paper_")
        if own != column and pd.api.types.is_numeric_dtype(printed[column]):
            both[f"{own}_difference"] = both[own].astype(float) - both[column]
    return both


def partial(data: pd.DataFrame, *, marks: bool = True) -> str:
    """A sentence on the runs of a figure that have not answered their whole benchmark, whose `marks` are grey; nothing
    where all have."""
    runs = data[data["complete"].eq(False)]
    if runs.empty:
        return ""
    counts = [f"{n:.0f}/{size:.0f}" for n, size in sorted(set(zip(runs["questions"], runs["size"], strict=True)))]
    listed = ", ".join(counts) if len(counts) <= 3 else f"{counts[0]} to {counts[-1]}"
    return f"{'Grey marks: partial' if marks else 'Partial'} runs, of {listed} questions."


def hollow(data: pd.DataFrame) -> str:
    """A sentence on the paper's points, where there are any."""
    return "Hollow diamonds, dotted: the paper's numbers." if "paper_quality" in data else ""
