"""Grading stored runs again: into which file, with which verdicts, and what the audit of golds says."""

import json
import shutil
from pathlib import Path

import orjson
import pytest

from rsd.grade import audit, main
from rsd.plan import make_plan
from rsd.records import Problem
from rsd.store import read_grades
from tests.conftest import Run, compose_config


@pytest.fixture
def folder(run: Run, tmp_path: Path) -> Path:
    """A run of four questions, two samples each."""
    overrides = ("method=single", "method.role=draft", "limit=4", "samples=2", "sampling.temperature=0.7")
    run(*overrides)
    return make_plan(compose_config(f"results_dir={tmp_path}", *overrides)).folder


def test_grades_and_their_classes_come_back_the_same(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = read_grades(folder)
    assert len(first) == 8
    for question in {question for question, _ in first}:
        a, b = first[question, 0], first[question, 1]
        if a.extracted is not None and b.extracted is not None:
            assert (a.answer_class == b.answer_class) is (a.extracted == b.extracted)
    (folder / "grades.jsonl").unlink()
    assert main([str(folder)]) == 0
    again = read_grades(folder)
    assert {key: (g.correct, g.extracted, g.reason) for key, g in again.items()} == {
        key: (g.correct, g.extracted, g.reason) for key, g in first.items()
    }
    assert "of 8 right by default; 0 verdicts differ" in capsys.readouterr().out


def test_a_wrong_verdict_is_corrected_and_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [json.loads(line) for line in (folder / "grades.jsonl").read_text().splitlines()]
    right = [line["correct"] for line in lines]
    lines[0]["correct"] = not lines[0]["correct"]
    (folder / "grades.jsonl").write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    (folder / "summary.json").unlink()
    assert main([str(folder)]) == 0
    assert f"1 verdicts differ from before, first {lines[0]['question_id']}" in capsys.readouterr().out
    assert sum(grade.correct for grade in read_grades(folder).values()) == sum(right)
    assert json.loads((folder / "summary.json").read_text())["accuracy"] == sum(right) / len(right)


def test_another_grader_has_a_file_of_its_own(folder: Path) -> None:
    before = (folder / "grades.jsonl").read_bytes()
    assert main([str(folder), "--grader", "reference"]) == 0
    assert (folder / "grades.jsonl").read_bytes() == before
    assert read_grades(folder, "reference").keys() == read_grades(folder).keys()


def test_a_run_with_grader_reference_has_both(run: Run, tmp_path: Path) -> None:
    overrides = ("method=single", "method.role=draft", "limit=2", "grader=reference")
    run(*overrides)
    folder = make_plan(compose_config(f"results_dir={tmp_path}", *overrides)).folder
    assert folder == make_plan(compose_config(f"results_dir={tmp_path}", *overrides[:-1])).folder
    assert len(read_grades(folder)) == len(read_grades(folder, "reference")) == 2


def test_other_questions_than_those_answered_are_refused(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.jsonl"
    shutil.copy(Path(compose_config().benchmark["path"]), file)
    overrides = ("method=single", "method.role=draft", "limit=1", "benchmark=custom", f"benchmark.path={file}")
    run(*overrides)
    folder = make_plan(compose_config(f"results_dir={tmp_path}", *overrides)).folder
    file.write_text('{"question": "1+1?", "answer": "2"}\n')
    assert main([str(folder)]) == 2
    assert "answered other questions than custom holds now" in capsys.readouterr().err


def test_the_audit_names_what_cannot_be_graded(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    golds = [r"\frac{1}{2}", "", "3000 @ 11", "east"]
    problems = [Problem(question_id=str(n), question="?", answer=gold) for n, gold in enumerate(golds)]
    assert audit(problems).splitlines() == [
        "2 equal, 1 ungradable, 1 text",
        "  ungradable: row 1, 1: ''",
        "  text: row 2, 2: '3000 @ 11'",
    ]
    assert main([str(folder), "--audit"]) == 0
    assert capsys.readouterr().out == "tiny_chain: 500 equal\n"
