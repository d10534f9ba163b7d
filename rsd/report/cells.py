"""How a terminal writes numbers: shares, intervals, ratios and FLOPs."""

from collections.abc import Iterable, Mapping
from typing import Any

NONE = "–"
UNITS = (("PFLOPs", 1e15), ("TFLOPs", 1e12), ("GFLOPs", 1e9), ("MFLOPs", 1e6))


def percent(share: float | None) -> str:
    """A share as a percentage with one decimal; a dash for none."""
    return NONE if share is None else f"{100 * share:.1f}%"


def percent_interval(interval: tuple[float, float]) -> str:
    """An interval of shares, in percent."""
    return f"[{100 * interval[0]:.1f}, {100 * interval[1]:.1f}]"


def accuracy(run: Mapping[str, Any]) -> str:
    """The accuracy of a run, a row of ``load(rows="runs")``, with its interval, unless the run is partial."""
    share = percent(run["accuracy"])
    if run["accuracy"] is None:
        return share
    return f"{share} {percent_interval((run['low'], run['high']))}" if run["complete"] else f"{share} partial"


def times(ratio: float | None) -> str:
    """A ratio of costs; a dash where not measured."""
    return NONE if ratio is None else f"{ratio:.2f}×"


def flops_unit(values: Iterable[float | None]) -> tuple[str, float]:
    """The unit, and its size in FLOPs, in which the least of `values` that cost anything has a digit to show."""
    least = min((value for value in values if value is not None and value > 0), default=0.0)
    return next((unit for unit in UNITS if least >= unit[1]), UNITS[-1])


def flops_cell(value: float | None, size: float) -> str:
    """FLOPs in units of `size`, with three digits or more; a dash where not measured."""
    if value is None:
        return NONE
    scaled = value / size
    return f"{scaled:,.0f}" if scaled >= 100 else f"{scaled:.1f}" if scaled >= 10 else f"{scaled:.2f}"


def duration(hours: float | None) -> str:
    """A time in seconds, minutes or hours, whichever reads best; a dash where not known."""
    if hours is None:
        return NONE
    if hours < 1 / 60:
        return f"{3600 * hours:.1f} s"
    return f"{60 * hours:.1f} min" if hours < 1 else f"{hours:,.1f} h"
