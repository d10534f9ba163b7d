"""Tables of strings as Markdown, and numbers as their cells show them.

    markdown(["method", "MATH500"], [["RSD", "84.6 [81.2, 87.5]"]])
"""

from collections.abc import Iterable, Sequence

Interval = tuple[float | None, float | None]


def markdown(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in GitHub's Markdown, its columns aligned for reading as plain text."""
    lines = [[_escaped(cell) for cell in row] for row in (headings, *rows)]
    widths = [max(3, *map(len, column)) for column in zip(*lines, strict=True)]
    padded = [" | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
    rule = " | ".join("-" * width for width in widths)
    return "\n".join(f"| {line} |" for line in (padded[0], rule, *padded[1:])) + "\n"


def _escaped(cell: str) -> str:
    """A cell that stays one: names come from configurations."""
    return cell.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def percent(share: float | None) -> str:
    """A share in percent, with one decimal; empty for none."""
    return "" if share is None else f"{100 * share:.1f}"


def points(difference: float | None) -> str:
    """A difference of shares, signed, in percentage points; a minus sign, no hyphen."""
    return "" if difference is None else f"{100 * difference:+.1f}".replace("-", "−")


def interval(low: float | None, high: float | None, show: "type[str] | None" = None) -> str:
    """An interval of shares, in percent; empty for none."""
    return "" if low is None or high is None else f" [{percent(low)}, {percent(high)}]"
