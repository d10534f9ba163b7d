"""Files that are damaged, that change and that cannot be written: what `load` makes of them."""

import os
import shutil
from pathlib import Path

import orjson
import pandas as pd
import pytest

from rsd.records import dump
from rsd.report import cache, load
from rsd.report.cache import tell
from tests.stored import TARGET, manifest, proposal, record, store


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A run of RSD on two questions and an error, and the target alone on four."""
    tell.cache_clear()
    records = [
        record("a", proposal("draft", 4, 0.71, True), proposal("draft", 6, 0.9, True, step=1)),
        record("b", proposal("draft", 5, 0.2, False), proposal("target", 8), proposal("draft", 9, 0.9, True, step=1)),
        record("c", error="OSError: gone"),
    ]
    store(tmp_path, "rsd-1", records, {"a"})
    alone = [record(question, proposal("target", 20)) for question in "abcd"]
    store(tmp_path, "target-1", alone, {"a", "b"}, manifest(name="target alone", settings=TARGET))
    return tmp_path


def test_damaged_lines_are_named_once_and_the_rest_used(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = results / "runs/math500/rsd-1"
    lines = (folder / "records.jsonl").read_bytes().splitlines()
    (folder / "records.jsonl").write_bytes(b"\n".join([lines[0], b"garbage", b'{"schema":1}', lines[1]]) + b"\n")
    grades = (folder / "grades.jsonl").read_bytes()
    (folder / "grades.jsonl").write_bytes(b"[1]\n" + grades)
    assert load(results, run_id="rsd-1")["questions"][0] == 2
    told = capsys.readouterr().err
    assert [
        f"{name}, line {n} is broken" in told
        for name, n in (("records.jsonl", 2), ("records.jsonl", 3), ("grades.jsonl", 1))
    ] == [True] * 3
    assert len(load(results, rows="proposals", run_id="rsd-1")) == 5
    assert capsys.readouterr().err == "", "told once"
    tell.cache_clear()
    load(results)
    assert "line 2 is broken" in capsys.readouterr().err, "also from the cache"


def test_a_run_that_cannot_be_read_is_left_out(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (results / "runs/math500/rsd-1/manifest.json").write_text("{")
    assert list(load(results)["run_id"]) == ["target-1"]
    assert "rsd-1/manifest.json is not the manifest of a run" in capsys.readouterr().err


def test_values_of_another_type_cost_their_run_only(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = results / "runs/math500/rsd-1/records.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"reward":0.71', b'"reward":"0.71"'))
    assert list(load(results)["run_id"]) == ["target-1"]
    assert "rsd-1 holds a record with a value of another type" in capsys.readouterr().err


def test_the_cache_follows_the_files(results: Path) -> None:
    """A second reading takes nothing from the records; a new line, other grades and another manifest are seen."""
    folder = results / "runs/math500/rsd-1"
    before = load(results, run_id="rsd-1")
    path = folder / "records.jsonl"
    state, content = path.stat(), path.read_bytes()
    path.write_bytes(b"#" * len(content))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    pd.testing.assert_frame_equal(load(results, run_id="rsd-1"), before)
    path.write_bytes(content + dump(record("d", proposal("draft", 3, 0.9, True))) + b"\n")
    with (folder / "grades.jsonl").open("ab") as grades:
        grades.write(
            orjson.dumps({"question_id": "d", "sample": 0, "correct": True, "extracted": "", "reason": "equal"})
        )
        grades.write(b"\n")
    after = load(results, run_id="rsd-1")
    assert (after["questions"][0], after["accuracy"][0]) == (4, 0.5)
    assert len(load(results, rows="proposals", run_id="rsd-1")) == 6
    (folder / "manifest.json").write_bytes(orjson.dumps(manifest(size=9)))
    assert load(results, run_id="rsd-1")["size"][0] == 9


@pytest.mark.parametrize("content", [b"", b"PAR1 and so on"])
def test_a_broken_cache_is_made_anew(results: Path, content: bytes) -> None:
    before = load(results, rows="proposals")
    stored = sorted((results / "cache").rglob("*.parquet"))
    assert len(stored) == 4
    for path in stored:
        path.write_bytes(content)
    pd.testing.assert_frame_equal(load(results, rows="proposals"), before)


def test_results_that_cannot_be_written_are_read_all_the_same(results: Path) -> None:
    (results / "cache").write_text("not a folder")
    assert len(load(results)) == 2


def test_a_full_disk_leaves_nothing_out_of_date(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no space left")

    load(results, rows="solutions")
    monkeypatch.setattr("pyarrow.parquet.write_table", refuse)
    path = results / "runs/math500/target-1/records.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))
    assert len(load(results, rows="solutions", run_id="target-1")) == 3


def test_a_deleted_cache_is_made_anew(results: Path) -> None:
    before = load(results, rows="proposals")
    shutil.rmtree(results / "cache")
    pd.testing.assert_frame_equal(load(results, rows="proposals"), before)


def test_a_moved_folder_keeps_its_cache(results: Path, tmp_path: Path) -> None:
    load(results)
    moved = shutil.copytree(results, tmp_path / "moved")
    assert load(moved, method="rsd")["folder"][0] == str(moved / "runs/math500/rsd-1")


def test_shards_are_one_run(results: Path) -> None:
    folder = results / "runs/math500/rsd-1"
    assert load(results, run_id="rsd-1")["records"][0] == 3
    again = record("c", proposal("draft", 3, 0.9, True))  # what failed was tried again
    (folder / "records-1.jsonl").write_bytes(
        b"".join(dump(one) + b"\n" for one in (again, record("d", proposal("draft", 3))))
    )
    grades = [{"question_id": q, "sample": 0, "correct": True, "extracted": "1", "reason": "equal"} for q in "cd"]
    (folder / "grades-1.jsonl").write_bytes(b"".join(orjson.dumps(grade) + b"\n" for grade in grades))
    row = load(results, run_id="rsd-1").iloc[0]
    assert (row["records"], row["errors"], row["accuracy"], row["complete"]) == (4, 0, 0.75, True)


def test_half_a_last_line_is_one_that_is_being_written(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (results / "runs/math500/rsd-1/records.jsonl").open("ab") as file:
        file.write(b'{"schema":1,"question_id":"d"')
    assert load(results, run_id="rsd-1")["records"][0] == 3
    assert capsys.readouterr().err == ""


def test_much_is_read_by_several_processes(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They leave the cache behind, and what is wrong with a run is told by the process that asked."""
    store(results, "broken", [record("a", proposal("draft", 3))], {"a"})
    path = results / "runs/math500/broken/records.jsonl"
    path.write_bytes(b"garbage\n" + path.read_bytes().replace(b'"step":0', b'"step":"0"'))
    monkeypatch.setattr(cache, "MUCH", 0)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(cache, "_write", lambda *_: pytest.fail("read here, not by another process"))
    assert list(load(results)["run_id"]) == ["rsd-1", "target-1"]
    assert "broken holds a record with a value of another type" in capsys.readouterr().err
