"""Tables, figures and statistics: pure functions of records.

from rsd.report import load

load("results", rows="runs", method="rsd")
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rsd.report.frames import load

__all__ = ["load"]


def __getattr__(name: str) -> Any:
    """`load`, which brings pandas along, on first use."""
    if name == "load":
        from rsd.report.frames import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
