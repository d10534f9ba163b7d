"""The command that writes reports: what it says, refuses and leaves alone."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from rsd.report.__main__ import main
from rsd.report.tables.write import write_tables
from tests.report.wanted import FILES, RSD, TARGET, answers, golden, line, write


def test_the_command_writes_every_file_whatever_there_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, TARGET, {"a"}, answers("a"))
    assert main(["--results", str(tmp_path), "--preset", "tiny"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert {path.name for path in (tmp_path / "tables" / "tiny").iterdir()} == FILES
    figures = sorted((tmp_path / "figures" / "tiny").iterdir())
    assert {f"fig{name}.{kind}" for name in ("3", "4", "5", "6", "B1", "B2") for kind in ("png", "pdf")} <= {
        path.name for path in figures
    }
    assert told[0] == (
        f"preset=tiny: {len(FILES)} files in {tmp_path}/tables/tiny, {len(figures)} in {tmp_path}/figures/tiny."
    )
    assert "0 of its" in told[1]
    assert told[-1] == f"{tmp_path}/index.html shows all of it, and what each run did with every question."
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    (run,) = tmp_path.glob("runs/*/*")
    assert page.count(f'href="./traces/tiny_chain/{run.name}.html"') >= 2, "in the list of runs and in tables"
    assert 'id="tiny-table2"' in page
    assert 'id="tiny-omega"' in page
    assert main(["--results", str(tmp_path), "--preset", "huge"]) == 2
    assert capsys.readouterr().err == "--preset huge: there are paper, tiny.\n"


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("sede=1", "There is no key sede; did you mean seed?"),
        ("delta=much", "delta='much' is wrong: it should be a valid number"),
        ("delta=0.6,0.7", "delta=0.6,0.7: a report is of one value of each setting."),
        ("model=huge", "There is no model=huge; there are llama_8b"),
        ("tiny", "Error parsing override 'tiny' missing EQUAL"),
        ("preset=tiny", "preset=tiny: a report is told its preset as --preset tiny."),
    ],
)
def test_a_wrong_setting_is_one_sentence_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], word: str, told: str
) -> None:
    write(tmp_path, TARGET, {"a"}, answers("a"))
    assert main(["--results", str(tmp_path), word]) == 2
    output = capsys.readouterr()
    assert told in output.err
    assert output.err.count("\n") == 1
    assert not (tmp_path / "tables").exists()


def test_no_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = tmp_path / "tables" / "tiny" / "table2.csv"
    old.parent.mkdir(parents=True)
    old.write_text("kept")
    assert main(["--results", str(tmp_path)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "python -m rsd.run -m +experiment=table2" in told.err
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [old]
    assert old.read_text() == "kept"


def test_a_run_that_is_deleted_meanwhile_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = write(golden(tmp_path), RSD.format(0.8), {"a"}, answers("abc"))

    def deleting(*arguments: Any) -> Any:
        if gone.exists():
            shutil.rmtree(gone)
        return write_tables(*arguments)

    monkeypatch.setattr("rsd.report.tables.write.write_tables", deleting)
    assert main(["--results", str(tmp_path), "--preset", "tiny"]) == 0
    told = f"Left out: {gone} was deleted while the report was written, which begins anew without it.\n"
    assert capsys.readouterr().err.count(told) == 1
    assert gone.name not in (tmp_path / "index.html").read_text(encoding="utf-8")
    assert line(tmp_path, "table2", setting="delta=0.7", prm="tiny_s", target="m")["tiny_chain"] == "66.6667"
