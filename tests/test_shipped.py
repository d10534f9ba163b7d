"""The records that come with the project, packed by gzip, are read as any others."""

import gzip
import shutil
from pathlib import Path

import pytest

from rsd.errors import StoreError
from rsd.grade import problems_of
from rsd.records import dump
from rsd.report import load
from rsd.store import JsonLines, read_grades, read_records
from tests.conftest import ROOT
from tests.stored import proposal, record

RUN = "rsd-binary-delta=0.7-tiny-tiny-m-b38879a28f"
SHIPPED = ROOT / "results" / "shipped" / "runs" / "tiny_chain" / RUN


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SHIPPED, tmp_path / "runs" / "tiny_chain" / RUN))


def test_a_packed_run_is_loaded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the public functions, with its questions, from whatever folder."""
    monkeypatch.chdir(folder)
    results = folder.parents[2]
    (row,) = load(results).to_dict("records")
    assert (row["complete"], row["accuracy"], row["judged"]) == (True, 0.892, 2000)
    solutions = load(results, rows="solutions")
    assert solutions["level"].notna().all()
    assert len(problems_of(folder)) == len(solutions) == 500


def test_what_is_appended_stands_beside_what_is_packed(folder: Path) -> None:
    before = read_records(folder)
    question = next(iter(before))[0]
    with JsonLines(folder / "records.jsonl") as records:
        records.append(dump(record("new", proposal("draft", 3))))
    grades = gzip.decompress((folder / "grades.jsonl.gz").read_bytes()).splitlines()
    grade = next(line for line in grades if question.encode() in line)
    (folder / "grades.jsonl").write_bytes(grade.replace(b"true", b"false") + b"\n")
    assert read_records(folder).keys() == before.keys() | {("new", 0)}
    assert read_grades(folder)[question, 0].correct is False, "a grade that was given later counts"


def test_a_damaged_package_is_named(folder: Path) -> None:
    path = folder / "records.jsonl.gz"
    content = path.read_bytes()
    for damaged in (content[:1000], content[:1000] + bytes(100) + content[1100:], b"no gzip"):
        path.write_bytes(damaged)
        with pytest.raises(StoreError, match=r"cannot read .*records\.jsonl\.gz: "):
            read_records(folder)
