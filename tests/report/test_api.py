"""``docs/api.md`` lists the columns that there are, and its examples run."""

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

from rsd.report import load
from tests.conftest import ROOT
from tests.stored import TARGET, manifest, proposal, record, store

TEXT = (ROOT / "docs/api.md").read_text()


@pytest.mark.parametrize("rows", ["runs", "solutions", "proposals", "invocations"])
def test_every_column_is_documented(tmp_path: Path, rows: Any) -> None:
    part = TEXT.split(f'`rows="{rows}"`, one row')[1].split("\n\n")[1]
    cells = [line.split("|")[1] for line in part.splitlines()[2:]]
    assert [name for cell in cells for name in re.findall(r"`(\w+)`", cell)] == list(load(tmp_path, rows=rows).columns)


def test_functions_that_it_names_exist() -> None:
    for module in set(re.findall(r"`(rsd\.report\.\w+)", TEXT)):
        importlib.import_module(module)


def test_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {f"q{i}" for i in range(10)}
    for delta in (0.6, 0.7, 0.8, 0.9):
        told = manifest(
            size=10, model="qwen_math_7b", settings={"method": "rsd", "weighting": "binary", "delta": delta}
        )
        records = [record(question, proposal("draft", 3, 0.95, True)) for question in answers]
        store(tmp_path / "results", f"rsd-{delta}", records, {f"q{i}" for i in range(round(10 * delta))}, told)
    alone = [record(question, proposal("target", 3)) for question in answers]
    store(tmp_path / "results", "target", alone, {"q0"}, manifest(size=10, settings=TARGET))
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for example in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL):
        exec(example, names)
    assert (names["found"].won, names["found"].lost) == (6, 0)
    # Without q8, which only 0.9 has right, 0.8 is as good, and smaller: fitted, q8 is wrong.
    assert (names["star"].oracle_delta, names["star"].fitted_accuracy) == (0.9, 0.8)
