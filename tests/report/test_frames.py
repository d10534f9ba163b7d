"""What `load` gives of stored runs: values counted by hand, those of the summary, and what becomes of bad input."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pandas as pd
import pytest

from rsd.errors import StoreError
from rsd.report import load
from rsd.report.cache import read_run, tell
from tests.conftest import ROOT
from tests.stored import RSD, TARGET, manifest, proposal, record, store

RECORDS = [
    record(
        "a",
        proposal("draft", 4, 0.71, True, t0=1.0, t1=2.0),
        proposal("draft", 6, 0.9, True, step=1, t0=2.0, t1=3.5),
    ),
    record(
        "b",
        proposal("draft", 5, 0.2, False, t0=0.5, t1=1.0),
        proposal("target", 8, t0=1.0, t1=4.0),
        proposal("draft", 12, 0.95, True, step=1, t0=4.0, t1=4.5),
        end_reason="max_steps",
    ),
    record("c", error="OSError: gone"),
]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A run of RSD that answered three of four questions, and the target alone, which answered all."""
    store(tmp_path, "rsd-1", RECORDS, {"a"})
    alone = [record(question, proposal("target", 20)) for question in "abcd"]
    store(tmp_path, "target-1", alone, {"a", "b"}, manifest(name="target alone", settings=TARGET))
    return tmp_path


def test_a_run_by_hand(results: Path) -> None:
    runs = load(results, method="rsd")
    assert len(runs) == 1
    row = runs.iloc[0]
    assert (row["run_id"], row["benchmark"], row["model"], row["draft"], row["target"], row["prm"]) == (
        "rsd-1", "math500", "pair", "small", "large", "judge",
    )  # fmt: skip
    assert row["folder"] == str(results / "runs/math500/rsd-1")
    assert (row["weighting"], row["delta"], row["settings"], row["limits"]) == (
        "binary", 0.7, RSD, {"total_tokens": 512},
    )  # fmt: skip
    assert (row["questions"], row["size"], row["records"], row["errors"], row["samples"]) == (3, 4, 3, 1, 1)
    assert not row["complete"]
    assert row["accuracy"] == pytest.approx(1 / 3)
    assert row["acceptance"] == 3 / 4
    assert row["acceptance_tokens"] == 22 / 27
    assert row["draft_only"] == pytest.approx(1 / 3)  # a; c failed
    assert row["steps"] == pytest.approx(4 / 3)
    assert row["response_tokens"] == pytest.approx(30 / 3)
    assert row["wasted_tokens"] == pytest.approx(5 / 3)
    assert row["prm_calls"] == pytest.approx(4 / 3)
    assert row["near_delta"] == 1  # 0.71
    assert row["beyond_context"] == 1  # 10 + 12 tokens, of 20
    assert (row["end_eos"], row["end_max_steps"], row["end_error"], row["end_prm_context"]) == (1, 1, 1, 0)
    # passes: 27 of the draft's, 8 of the target's, 4 calls of the PRM
    assert row["flops_passes"] == pytest.approx(2 * (27 * 1_000 + 8 * 7_000 + 4 * 3_000) / 3)
    assert row["tokens_draft"] == pytest.approx(27 / 3)
    assert row["tokens_target"] == pytest.approx(8 / 3)
    assert row["tokens_prm"] == pytest.approx(27 / 3)


def test_a_run_without_a_prm_or_a_threshold(results: Path) -> None:
    row = load(results, method="single").iloc[0]
    assert (row["role"], row["complete"], row["accuracy"]) == ("target", True, 0.5)
    assert (row["low"], row["high"]) == pytest.approx((0.1500, 0.8500), abs=5e-4)  # Wilson, 2 of 4
    assert all(pd.isna(row[name]) for name in ("prm", "weighting", "delta", "near_delta", "beyond_context", "n"))
    assert pd.isna(row["acceptance"])


def test_solutions_by_hand(results: Path) -> None:
    solutions = load(results, rows="solutions", run_id="rsd-1").set_index("question_id")
    assert list(solutions.index) == ["a", "b", "c"]
    assert list(solutions["correct"]) == [True, False, False]
    assert list(solutions["graded"]) == [True, True, True], "an error counts as wrong"
    a, b, c = (solutions.loc[question] for question in "abc")
    assert (a["lowest_accepted"], b["lowest_accepted"]) == (0.71, 0.95)
    assert pd.isna(c["lowest_accepted"])
    assert (b["draft_tokens_kept"], b["target_tokens_kept"], b["response_tokens"], b["steps"]) == (12, 8, 20, 2)
    assert (a["draft_only"], b["draft_only"], c["draft_only"]) == (True, False, False)
    assert (b["t0"], b["t1"], b["end_reason"], c["error"]) == (0.5, 4.5, "max_steps", "OSError: gone")
    assert (a["near_delta"], b["near_delta"]) == (1, 0)


def test_proposals_by_hand(results: Path) -> None:
    proposals = load(results, rows="proposals", run_id="rsd-1")
    assert list(proposals["question_id"]) == ["a", "a", "b", "b", "b"]
    assert list(proposals["origin"]) == ["draft", "draft", "draft", "target", "draft"]
    assert list(proposals["tokens"]) == [4, 6, 5, 8, 12]
    assert list(proposals["kept"]) == [True, True, False, True, True]
    assert proposals["accepted"].isna().tolist() == [False, False, False, True, False]
    assert proposals["accepted"].sum() == 3
    assert proposals["reward"][0] == 0.71
    assert pd.isna(proposals["reward"][3])


def test_filters(results: Path) -> None:
    assert set(load(results)["run_id"]) == {"rsd-1", "target-1"}
    assert list(load(results, delta=0.7)["run_id"]) == ["rsd-1"]
    assert list(load(results, delta=[0.6, 0.9])["run_id"]) == []
    assert list(load(results, delta=None)["run_id"]) == ["target-1"]
    assert list(load(results, settings=TARGET)["run_id"]) == ["target-1"]
    both = load(results, method=["rsd", "single"], benchmark="math500")["run_id"]
    assert set(load(results, rows="solutions", run_id=both)["run_id"]) == {"rsd-1", "target-1"}
    with pytest.raises(StoreError, match="no column metod; did you mean method"):
        load(results, metod="rsd")
    with pytest.raises(StoreError, match="choose one of runs, solutions"):
        load(results, rows="run")  # type: ignore[arg-type]
    with pytest.raises(StoreError, match="grader='math': choose one of default, math_verify"):
        load(results, grader="math")


@pytest.mark.parametrize("rows", ["runs", "solutions", "proposals", "invocations"])
def test_no_runs_have_the_columns_of_some(results: Path, tmp_path: Path, rows: Any) -> None:
    nothing = load(tmp_path / "elsewhere", rows=rows)
    assert len(nothing) == 0
    assert list(nothing.columns) == list(load(results, rows=rows).columns)


def test_methods_are_told_apart(tmp_path: Path) -> None:
    settings = {
        "process_best_of_n": {"method": "beam", "width": 1, "expansion": 8, "generator": "draft"},
        "beam": {"method": "beam", "width": 4, "expansion": 4, "generator": "draft"},
        "rsd_speculative": {**RSD, "num_speculative_tokens": 7},
        "majority": {"method": "majority", "role": "draft", "n": 16},
    }
    for name, told in settings.items():
        store(tmp_path, name, [record("a", proposal("draft", 3))], {"a"}, manifest(settings=told))
    runs = load(tmp_path).set_index("run_id")
    assert all(name == row["method"] for name, row in runs.iterrows())
    assert dict(runs["n"].dropna()) == {"process_best_of_n": 8, "beam": 4, "majority": 16}
    assert dict(runs["role"].dropna()) == {"process_best_of_n": "draft", "beam": "draft", "majority": "draft"}


def test_solutions_that_wait_for_a_grade_do_not_count(tmp_path: Path) -> None:
    """A run that is going on: b is answered and not graded yet."""
    store(tmp_path, "going", [record(q, proposal("target", 5)) for q in "ab"], {"a": True}, manifest(size=2))
    row = load(tmp_path).iloc[0]
    assert (row["questions"], row["accuracy"], row["complete"]) == (1, 1.0, False)
    assert list(load(tmp_path, rows="solutions")["whole"]) == [True, False]
    two = [record("a", proposal("target", 5)), record("b", proposal("target", 5))]
    store(tmp_path, "third", [*two, record("b", proposal("target", 5), sample=1)], {"a"}, manifest(size=2))
    row = load(tmp_path, run_id="third").iloc[0]
    assert (row["questions"], row["samples"], row["complete"]) == (2, 2, False), "a has one sample, b two"


def test_text_that_nobody_grades_has_no_accuracy(tmp_path: Path) -> None:
    folder = store(tmp_path, "text", [record("a", proposal("target", 5))], {"a"}, manifest(size=1))
    grades = folder / "grades.jsonl"
    grades.write_bytes(grades.read_bytes().replace(b'"equal"', b'"not graded"'))
    row = load(tmp_path).iloc[0]
    assert pd.isna(row["accuracy"])
    assert row["complete"]


def test_another_grader_has_columns_of_its_own(results: Path) -> None:
    folder = results / "runs/math500/rsd-1"
    shutil.copy(folder / "grades.jsonl", folder / "grades-reference.jsonl")
    grades = folder / "grades-reference.jsonl"
    grades.write_bytes(grades.read_bytes().replace(b'"correct":false', b'"correct":true'))
    runs = load(results, grader="reference")
    assert list(runs["run_id"]) == ["rsd-1"], "the other run was not graded by it"
    assert list(runs["grader"]) == ["reference"]
    assert runs["accuracy"][0] == pytest.approx(2 / 3)
    assert load(results, run_id="rsd-1")["accuracy"][0] == pytest.approx(1 / 3)


def test_invocations(tmp_path: Path) -> None:
    begun = {
        "invocation": 1, "start": "2026-01-01T00:00:00+00:00", "engine": {"_target_": "a.b.Engine"}, "host": "h",
        "cores": 2, "concurrency": "auto", "questions": 1, "solutions": 1, "prm_check": None,
    }  # fmt: skip
    ended = {
        **begun, "end": "2026-01-01T00:00:09+00:00", "seconds": 9.0, "records": 1, "stopped": None,
        "totals": {"draft": {"tokens": 5, "padding": 0, "forwards": 1, "seconds": 0.5}},
    }  # fmt: skip
    second = {**ended, "invocation": 2, "concurrency": 1, "memo": True}
    store(tmp_path, "run", [record("a", proposal("target", 5))], {"a"}, manifest(), [begun, ended, begun, second])
    found = load(tmp_path, rows="invocations")
    assert list(found["invocation"]) == [1, 2], "those that ended"
    assert list(found["memo"]) == [False, True], "a line without memo is older than it"
    assert list(found["concurrency"]) == [1, 1], "all questions, where it is auto"
    assert (found["engine"][0], found["seconds"][0], found["run_tokens_draft"][0]) == ("Engine", 9.0, 5)


def test_a_real_run_has_levels(run: Any, tmp_path: Path) -> None:
    """Of the tiny family, whose rows tell levels; numbers are those of the run's own summary."""
    records = run("limit=12", "progress=off")
    solutions = load(tmp_path, rows="solutions")
    assert solutions["level"].isin([str(level) for level in range(1, 9)]).all()
    assert solutions["subject"].isna().all()
    row = load(tmp_path).iloc[0]
    (path,) = tmp_path.glob("runs/*/*/summary.json")
    summary = orjson.loads(path.read_bytes())
    assert (row["accuracy"], row["acceptance"], row["flops_full"]) == (
        summary["accuracy"], summary["acceptance_rate"], summary["flops"]["full"],
    )  # fmt: skip
    assert len(load(tmp_path, rows="proposals")) == sum(len(one.proposals) for one in records.values())
    assert read_run(path.parent).invocations[0]["records"] == 12


def test_levels_of_a_benchmark_that_is_gone(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tell.cache_clear()
    told = manifest()
    told["identity"]["benchmark"] = {"name": "math500", "data": "0"}
    told["config"]["benchmark"] = {"_target_": "rsd.benchmarks.jsonl.JsonLinesBenchmark", "name": "m", "path": "gone"}
    (results / "runs/math500/rsd-1/manifest.json").write_bytes(orjson.dumps(told))
    for _ in range(2):
        solutions = load(results, rows="solutions")
        assert solutions["level"].isna().all()
    first, second = sorted(capsys.readouterr().err.splitlines())
    assert "manifests do not say which data" in first + second
    assert "cannot read gone" in first + second


def test_importing_the_package_leaves_pandas_alone() -> None:
    """A run sums itself up without it; ``--help`` of a command does not wait for it."""
    code = "import sys, rsd.report, rsd.report.summary, rsd.compare; sys.exit('pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_what_was_too_long_for_the_prm(tmp_path: Path) -> None:
    """RSD ends there; a search drops the proposal; Best-of-N gives the sample no value. EOS alone has none either."""
    cut = record(
        "a", proposal("draft", 5, 0.9, True), proposal("draft", 9, step=1, kept=False), end_reason="prm_context"
    )
    store(tmp_path, "rsd", [cut, record("b", proposal("draft", 5, 0.9, True))], {"b"})
    beams = [proposal("draft", 5, 0.9), *(proposal("draft", n, candidate=n, kept=False) for n in (4, 9, 1))]
    search = {"method": "beam", "width": 2, "expansion": 2, "generator": "draft"}
    store(tmp_path, "beam", [record("a", *beams)], {"a"}, manifest(settings=search, prm="judge"))
    samples = [proposal("draft", 5, 0.9), proposal("draft", 50, candidate=1, kept=False)]
    best = {"method": "best_of_n", "role": "draft", "n": 2, "aggregate": "last"}
    store(tmp_path, "best", [record("a", *samples)], {"a"}, manifest(settings=best, prm="judge"))
    store(tmp_path, "target", [record("a", proposal("target", 5))], {"a"}, manifest(settings=TARGET))
    assert dict(load(tmp_path).set_index("run_id")["unscored"]) == {"rsd": 1, "beam": 2, "best": 1, "target": 0}
