"""The results that come with the project: whole, what the shipped runs say, and what README shows of them."""

import csv
from pathlib import Path

import pytest

from rsd.report.figures import FIGURES
from rsd.report.tables.cells import Stored
from rsd.report.tables.layout import TABLES
from rsd.report.tables.write import write_tables
from rsd.sweep.compose import configuration
from tests.conftest import ROOT

RESULTS = ROOT / "results"
REPRODUCED = RESULTS / "reproduced"
MEASURED = (
    "",
    "_low",
    "_high",
    "_n",
    "_won",
    "_lost",
    "_acceptance",
    "_draft_only",
    "_flops_passes",
    "_flops_positions",
)


def rows_of(table: Path) -> dict[tuple[str, ...], dict[str, str]]:
    """Rows of a table by what they are of."""
    with table.open(encoding="utf-8", newline="") as file:
        return {tuple(row[key] for key in list(row)[:6]): row for row in csv.DictReader(file)}


def cells_of(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|\n").split("|")]


def test_every_table_and_figure_is_there_and_whole() -> None:
    for name in TABLES:
        assert (REPRODUCED / "tables" / "tiny" / f"{name}.md").is_file()
    for name in FIGURES:
        assert {path.suffix for path in (REPRODUCED / "figures" / "tiny").glob(f"{name}.*")} == {".csv", ".pdf", ".png"}
    for name in ("table2", "table3", "table4", "table5", "tableB1", "tableB2", "tableB3"):
        for row in rows_of(REPRODUCED / "tables" / "tiny" / f"{name}.csv").values():
            for size in (key for key in row if key.endswith("_size")):
                assert row[size.replace("_size", "_n")] == "500", f"{name}: {row['setting']}"


@pytest.mark.parametrize("name", ["table2", "table3", "table5"])
def test_the_tables_say_what_the_shipped_runs_say(name: str, tmp_path: Path) -> None:
    with configuration():
        write_tables(Stored.read(RESULTS / "shipped"), "tiny", [], tmp_path)
    committed, found = rows_of(REPRODUCED / "tables" / "tiny" / f"{name}.csv"), rows_of(tmp_path / f"{name}.csv")
    compared = 0
    for of, row in found.items():
        for column in (f"{benchmark}{kind}" for benchmark in ("tiny_chain", "tiny_story") for kind in MEASURED):
            if row.get(column):
                assert row[column] == committed[of][column], f"{of}, {column}"
                compared += 1
    assert compared >= 10


def test_readme_shows_rows_of_table_2() -> None:
    headings, _, *rows = (cells_of(line) for line in lines_of(REPRODUCED / "tables" / "tiny" / "table2.md", "| family"))
    shown, _, *parts = (cells_of(line) for line in lines_of(ROOT / "README.md", "| family"))
    places = [headings.index(heading) for heading in shown]
    known = [[row[place] for place in places] for row in rows]
    assert len(parts) >= 12
    assert [part for part in parts if part not in known] == []


def lines_of(page: Path, beginning: str) -> list[str]:
    """The first table of a page whose heading begins so."""
    lines = page.read_text(encoding="utf-8").splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith(beginning))
    end = next(i for i in range(first, len(lines)) if not lines[i].startswith("|"))
    return lines[first:end]
