"""The paper's numbers: as printed, consistent with each other but for the slips that are noted."""

import csv
import tomllib
from decimal import Decimal

import pytest
from hydra import compose, initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser

from rsd.report.paper import BENCHMARKS, FOLDER, Row, numbers, slips
from tests.conftest import ROOT, SHARED

TABLES = ["table2", "table3", "table4", "table5", "table6", "tableB1", "tableB2", "tableB3"]
FIGURES = ["fig4", "fig5", "fig6", "figB1"]
SIZES = {
    "MATH500": 500, "GSM8K": 1319, "GaoKao2023En": 385, "OlympiadBench": 675, "GPQA_Diamond": 198, "MMLU_STEM": 3018,
    "Minerva_Math": 272, "CN_Middle_School_24": 101, "College_Math": 2818,
}  # fmt: skip


@pytest.mark.parametrize("name", ["table1", *TABLES, *FIGURES, "delta_star"])
def test_every_number_is_as_it_was_read_from_the_paper(name: str) -> None:
    path = SHARED / "paper" / f"{'delta_star_derived' if name == 'delta_star' else name}.csv"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    with path.open(encoding="utf-8", newline="") as file:
        assert [{k: v for k, v in row.items() if k != "run"} for row in numbers(name)] == list(csv.DictReader(file))


def faults(name: str, row: Row) -> set[str]:
    """Columns of a row that are no share of their benchmark's questions, or no mean of the others."""
    found = {column for column, size in SIZES.items() if row.get(column) and not is_share(row[column], size)}
    values = [Decimal(row[column]) for column in BENCHMARKS if row.get(column)]
    average = row.get("Avg")
    if average and values and abs(sum(values) / len(values) - Decimal(average)) > Decimal("0.0501"):
        found.add("Avg")
    return found


def is_share(printed: str, size: int) -> bool:
    """Whether some k of `size` are `printed` percent, rounded to one decimal either way at a half."""
    near = round(float(printed) * size / 100)
    return any(abs(100 * k / size - float(printed)) <= 0.05 + 1e-9 for k in (near - 1, near, near + 1))


@pytest.mark.parametrize("name", TABLES)
def test_the_slips_are_all_that_is_inconsistent(name: str) -> None:
    found = {(row["run"], column) for row in numbers(name) for column in faults(name, row)}
    assert found == {(slip.run, slip.column) for slip in slips(name)}


@pytest.mark.parametrize("name", ["table2", "table4", "table5", "tableB3"])
def test_differences_are_those_of_the_averages(name: str) -> None:
    alone = Decimal(0)
    for row in numbers(name):
        if row["diff_vs_single_target"]:
            assert Decimal(row["Avg"]) - alone == Decimal(row["diff_vs_single_target"]), row
        else:
            alone = Decimal(row["Avg"])


def test_delta_star_is_the_best_threshold_of_table_b2() -> None:
    """Each of Table 2's 48 cells, and the thresholds that reach it."""
    key = ("family", "target", "draft", "prm")
    starred = {tuple(row[k] for k in key): row for row in numbers("table2") if row["setting"] == "delta*"}
    thresholds = {tuple(row[k] for k in key): row for row in numbers("delta_star")}
    assert starred.keys() == thresholds.keys()
    cells = 0
    for pair, row in starred.items():
        swept = [r for r in numbers("tableB2") if tuple(r[k] for k in key) == pair]
        for column in list(BENCHMARKS)[:6]:
            best = max(Decimal(r[column]) for r in swept)
            assert Decimal(row[column]) == best
            assert thresholds[pair][column] == "/".join(r["delta"] for r in swept if Decimal(r[column]) == best)
            cells += 1
    assert cells == 48


def test_rows_name_configurations_that_exist_and_every_row_its_own() -> None:
    groups = {path.parent.name: {p.stem for p in path.parent.glob("*.yaml")} for path in ROOT.glob("conf/*/*.yaml")}
    with initialize_config_dir(config_dir=str(ROOT / "conf"), version_base="1.3"):
        compose("config")  # the parser needs Hydra
        for name in TABLES:
            runs = [row["run"] for row in numbers(name) if row["run"]]
            assert len(set(runs)) == len(runs)
            for run in runs:
                for override in OverridesParser.create().parse_overrides(run.split()):
                    if override.key_or_group in groups:
                        assert override.value() in groups[override.key_or_group], run


def test_unknown_table() -> None:
    with pytest.raises(KeyError):
        numbers("table7")


def test_every_file_is_packaged() -> None:
    packaged = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["rsd"]
    assert "report/paper/*.csv" in packaged
    assert {path.suffix for path in FOLDER.iterdir() if path.is_file()} <= {".py", ".csv"}
