"""The files of all tables for one preset: ``table2.csv`` for programs, ``table2.md`` for people, and so on.

write_tables(stored, "tiny", overrides=(), folder=Path("results/tables/tiny"))
"""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from rsd.report.tables.cells import Stored
from rsd.report.tables.fill import fill
from rsd.report.tables.layout import PAPER, TABLES, columns, rows
from rsd.report.tables.open_ended import headings as headings_of_open_ended
from rsd.report.tables.open_ended import open_ended
from rsd.report.tables.page import page
from rsd.report.tables.sheet import csv_of
from rsd.report.tables.text import markdown
from rsd.report.tables.weightings import weightings
from rsd.store import write_error

JUDGED = """\
Win rates in percent are given by AlpacaEval's own judge, which no run here calls: those of the `leaderboard.csv` and
`annotations.json` that it has left in the run's folder, a line for each judge.
"""


def write_tables(stored: Stored, preset: str, overrides: Sequence[str], folder: Path) -> list[Path]:
    """Write every table of the paper with the models and benchmarks of `preset`, and return the files.

    Raises StoreError where they cannot be written.
    """
    texts = {}
    chosen = " ".join([f"preset={preset}", *overrides])
    for name, layout in TABLES.items():
        headings = columns(layout, preset)
        lines = fill(rows(layout, preset, overrides), headings, stored)
        texts[f"{name}.csv"] = csv_of(layout, headings, lines)
        texts[f"{name}.md"] = page(layout, headings, lines, chosen=chosen)
    return [_written(folder / name, text) for name, text in {**texts, **_plain(stored, preset, overrides)}.items()]


def _plain(stored: Stored, preset: str, overrides: Sequence[str]) -> dict[str, str]:
    """Tables that hold no accuracies."""
    first, sixth, columns = weightings(), open_ended(preset, stored, overrides), headings_of_open_ended()
    plot = "../figures/omega.png" if preset == PAPER else f"../../figures/{preset}/omega.png"
    shown = [column for column in columns if not column.endswith("_minus_paper")]
    return {
        "table1.csv": _csv(list(first[0]), first),
        "table1.md": f"# Table 1. Weighting functions\n\n{_markdown(list(first[0]), first)}\n![ω(r)]({plot})\n",
        "table6.csv": _csv(columns, sixth),
        "table6.md": f"# Table 6. Open-ended questions (AlpacaEval)\n\n{JUDGED}\n{_markdown(shown, sixth)}",
    }


def _csv(headings: Sequence[str], lines: Sequence[Mapping[str, str]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, headings, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


def _markdown(headings: Sequence[str], lines: Sequence[Mapping[str, str]]) -> str:
    return markdown(headings, ([line.get(heading, "") for heading in headings] for line in lines))


def _written(path: Path, text: str) -> Path:
    """Replace a file at once: whoever reads it sees the old text or the new."""
    temporary = path.with_name(f".{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        raise write_error(path, error) from error
    return path
