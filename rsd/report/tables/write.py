"""The files of all tables for one preset: ``table2.csv`` for programs, ``table2.md`` for people, and so on.

write_tables(stored, "tiny", overrides=(), folder=Path("results/tables/tiny"))
"""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rsd.report.tables.cells import Stored
from rsd.report.tables.fill import fill
from rsd.report.tables.layout import PAPER, TABLES, Layout, columns, rows
from rsd.report.tables.open_ended import headings as headings_of_open_ended
from rsd.report.tables.open_ended import open_ended
from rsd.report.tables.page import Section, page, sections
from rsd.report.tables.sheet import csv_of
from rsd.report.tables.text import markdown
from rsd.report.tables.weightings import weightings
from rsd.store import create_folder, write_file

JUDGED = "Win rates are given by AlpacaEval's own judge, which no run here calls.\n"


@dataclass(frozen=True, slots=True)
class Table:
    """A table as it was written: its files, and what its page consists of."""

    layout: Layout
    files: Sequence[Path]
    sections: Sequence[Section]


def write_tables(stored: Stored, preset: str, overrides: Sequence[str], folder: Path) -> tuple[list[Table], list[Path]]:
    """Write every table of the paper with the models and benchmarks of `preset`; return those that are made of runs,
    and the files of all.

    Raises StoreError where they cannot be written.
    """
    tables = []
    chosen = " ".join([f"preset={preset}", *overrides])
    for name, layout in TABLES.items():
        headings = columns(layout, preset)
        lines = fill(rows(layout, preset, overrides), headings, stored)
        shown = sections(layout, headings, lines)
        texts = {"csv": csv_of(layout, headings, lines), "md": page(layout, shown, chosen=chosen)}
        tables.append(Table(layout, [_written(folder / f"{name}.{end}", text) for end, text in texts.items()], shown))
    plain = [_written(folder / name, text) for name, text in _plain(preset).items()]
    return tables, [*(path for table in tables for path in table.files), *plain]


def _plain(preset: str) -> dict[str, str]:
    """Tables that are not made of runs on benchmarks."""
    first, sixth, columns = weightings(), open_ended(preset), headings_of_open_ended()
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
    write_file(create_folder(path.parent) / path.name, text.encode())
    return path
