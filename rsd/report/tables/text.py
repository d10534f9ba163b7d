"""Tables of strings as Markdown, and how their cells show numbers.

markdown(["method", "MATH500"], [["RSD", "84.6 [81.2, 87.5]"]])
"""

from collections.abc import Iterable, Sequence

MINUS = "−"


def markdown(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in GitHub's Markdown, its columns padded so that it reads well as plain text."""
    lines = [[_escaped(cell) for cell in row] for row in (headings, *rows)]
    widths = [max(3, *map(len, column)) for column in zip(*lines, strict=True)]
    padded = [" | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
    rule = " | ".join("-" * width for width in widths)
    return "".join(f"| {line} |\n" for line in (padded[0], rule, *padded[1:]))


def _escaped(cell: str) -> str:
    """A cell that stays one whatever is in a name: some come from configurations."""
    return " ".join(cell.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").split())


def percent(share: float | None) -> str:
    """A share in percent, with one decimal; empty for none."""
    return "" if share is None else f"{100 * share:.1f}"


def points(difference: float | None) -> str:
    """A difference of shares in percentage points, with its sign; empty for none."""
    return "" if difference is None else signed(100 * difference)


def signed(value: float) -> str:
    """A number with one decimal and its sign."""
    return f"{value:+.1f}".replace("-", MINUS).replace(f"{MINUS}0.0", "+0.0")


def with_interval(value: str, low: str, high: str) -> str:
    """``84.6 [81.2, 87.5]``; without an interval, the value alone."""
    return f"{value} [{low}, {high}]" if low and high else value
