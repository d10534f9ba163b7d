"""Nothing done is lost: kills, signals, second processes, failures, and the same command again."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

import rsd.signals
from rsd.errors import QuestionsFailedError, StoppedError, StoreError
from rsd.invocation import invoke
from rsd.lock import RunLock
from rsd.methods.rsd import RSD
from rsd.plan import make_plan
from rsd.records import same_outcome
from rsd.rewards.chat import ChatPRM
from rsd.store import read_grades, read_records
from tests.conftest import ROOT, Run, command, compose_config, environment

SHORT = ("limit=40", "concurrency=1", "delta=0.9")


def folder_of(results: Path, *overrides: str) -> Path:
    return make_plan(compose_config(f"results_dir={results}", *overrides)).folder


def start(results: Path, *overrides: str, start_new_session: bool = False) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(*overrides, f"results_dir={results}"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=environment(),
        start_new_session=start_new_session,
    )


def wait_for_records(folder: Path, count: int) -> None:
    path = folder / "records.jsonl"
    deadline = time.monotonic() + 120
    while not path.exists() or path.read_bytes().count(b"\n") < count:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_killed_at_ten_random_moments_it_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    start(whole, *SHORT).communicate()
    expected = read_records(folder_of(whole, *SHORT))
    folder = folder_of(broken, *SHORT)
    seed = time.time_ns()
    print(f"kill moments drawn with Random({seed})")
    rng = Random(seed)
    killed_while_decoding = 0
    for _ in range(10):
        done = len(read_records(folder)) if folder.exists() else 0
        process = start(broken, *SHORT)
        if done < len(expected) - 4:  # wait until it decodes, then let it go on for a moment
            wait_for_records(folder, done + 1)
        time.sleep(rng.uniform(0, 0.15))
        process.kill()
        process.communicate()
        killed_while_decoding += done < len(read_records(folder)) < len(expected)
    assert killed_while_decoding >= 3, "the kills must fall into the decoding to show anything"
    last = start(broken, *SHORT)
    _, errors = last.communicate()
    assert last.returncode == 0, errors
    found = read_records(folder)
    assert found.keys() == expected.keys()
    assert len(found) == 40
    assert all(same_outcome(found[key], expected[key]) for key in expected)
    lines = (folder / "records.jsonl").read_bytes().splitlines()
    assert len(lines) == 40, "a record was written twice"
    assert read_grades(folder).keys() == found.keys()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 130)])
def test_a_stop_signal_ends_at_once_and_keeps_what_is_done(tmp_path: Path, number: signal.Signals, status: int) -> None:
    folder = folder_of(tmp_path, *SHORT)
    process = start(tmp_path, *SHORT)
    wait_for_records(folder, 3)
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    done = len(read_records(folder))
    assert process.returncode == status
    assert f"Stopped by {number.name}; {done} of 40 solutions are kept in {folder}" in errors
    assert "Traceback" not in errors
    assert 3 <= done < 40
    invocations = [json.loads(line) for line in (folder / "invocations.jsonl").read_text().splitlines()]
    assert invocations[-1]["stopped"] == number.name
    assert invocations[-1]["devices"] == {"draft": [0], "target": [0], "prm": [0]}
    assert not (folder / "lock.json").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("delay", [0.0, 0.7, 1.4])
def test_a_stop_signal_at_any_moment_is_one_line(tmp_path: Path, number: signal.Signals, delay: float) -> None:
    """While models load, while it decodes, while grading processes start; Ctrl-C reaches those too."""
    process = start(tmp_path, "limit=500", start_new_session=True)
    folder = folder_of(tmp_path, "limit=500")
    deadline = time.monotonic() + 60
    while not (folder / "lock.json").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(delay)
    os.killpg(process.pid, number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert len(errors.strip().splitlines()) == 1, errors
    assert "the same command" in errors
    assert not (folder / "lock.json").exists()


def test_a_stop_signal_that_a_library_has_swallowed_stops_the_run_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rsd.signals, "_came", [signal.SIGTERM])
    with pytest.raises(StoppedError, match="Stopped by SIGTERM"):
        invoke(compose_config(f"results_dir={tmp_path}", "limit=5"))
    assert not read_records(folder_of(tmp_path, "limit=5"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2])
def test_nothing_is_recorded_after_a_signal_even_if_it_is_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """A signal to all processes of a job may have ended models or graders: what comes of that is no result."""
    solve, solved = RSD.solve, []

    async def stopped_at_the_third(self: RSD, trajectory: object) -> None:
        await solve(self, trajectory)
        solved.append(trajectory)
        if len(solved) == 3:
            os.kill(os.getpid(), number)

    monkeypatch.setattr(RSD, "solve", stopped_at_the_third)
    config = compose_config(f"results_dir={tmp_path}", "limit=6", "concurrency=1")
    with pytest.raises(StoppedError, match=f"Stopped by {number.name}; 2 of 6"):
        invoke(config)
    folder = make_plan(config).folder
    assert len(read_records(folder)) == len(read_grades(folder)) == 2


def test_one_stop_signal_ends_a_multirun(tmp_path: Path) -> None:
    process = start(tmp_path, "-m", "delta=0.9,0.8", "limit=40", "concurrency=1")
    wait_for_records(folder_of(tmp_path, *SHORT), 2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Stopped by SIGINT" in errors
    assert not folder_of(tmp_path, "delta=0.8").exists(), "the second run was started"


def test_the_same_command_again_does_nothing_and_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = compose_config(f"results_dir={tmp_path}", "limit=10")
    first = invoke(config)
    folder = make_plan(config).folder
    before = (folder / "records.jsonl").read_bytes()

    def refuse(*_: object) -> None:
        raise AssertionError("a model was loaded although nothing is missing")

    monkeypatch.setattr("rsd.equipment.load_models", refuse)
    assert invoke(config) == first
    assert (folder / "records.jsonl").read_bytes() == before


def test_a_larger_limit_and_more_samples_extend_the_same_run(run: Run) -> None:
    sampled = "sampling.temperature=1.0"
    small = run("limit=5", sampled)
    large = run("limit=8", "samples=2", sampled)
    assert len(small) == 5
    assert len(large) == 16
    assert all(large[key] == record for key, record in small.items())


def test_offset_and_ids_choose_questions_of_the_same_run(run: Run) -> None:
    six = run("limit=6")
    chosen = sorted(six)[2][0]
    assert set(run("offset=4", "limit=4")) > set(six)
    assert len(run(f"ids=[{chosen}]")) == 8


def test_a_failed_question_counts_is_listed_and_is_tried_three_times_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = compose_config(f"results_dir={tmp_path}", "limit=4")
    folder = make_plan(config).folder
    question = make_plan(config).problems[1]
    solve = RSD.solve
    attempts = []

    async def failing(self: RSD, trajectory: object) -> None:
        if trajectory.problem.question_id == question.question_id:
            attempts.append(1)
            raise RuntimeError("out of luck")
        await solve(self, trajectory)

    monkeypatch.setattr(RSD, "solve", failing)
    for expected in (1, 2, 3, 4, 4):
        with pytest.raises(QuestionsFailedError, match=r"1 of 4 solutions failed and count as wrong.*out of luck"):
            invoke(config)
        assert len(attempts) == expected
    assert len(read_records(folder)) == 4
    summary = json.loads((folder / "summary.json").read_text())
    assert (summary["questions"], summary["errors"]) == (4, 1)
    monkeypatch.setattr(RSD, "solve", solve)
    with pytest.raises(QuestionsFailedError):
        invoke(config)
    invoke(compose_config(f"results_dir={tmp_path}", "limit=4", "retry_failed=true"))
    assert all(record.error is None for record in read_records(folder).values())


def test_a_nan_reward_is_an_error_of_its_question_never_a_rejection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = compose_config(f"results_dir={tmp_path}", "limit=20")
    value = ChatPRM.value

    def sometimes_nan(self: ChatPRM, logits: Sequence[float]) -> float:
        reward = value(self, logits)
        return reward if reward >= 0.7 else float("nan")

    monkeypatch.setattr(ChatPRM, "value", sometimes_nan)
    with pytest.raises(QuestionsFailedError, match=r"gave nan for step \d, which is no reward in \[0, 1\]"):
        invoke(config)
    records = read_records(make_plan(config).folder)
    assert {record.end_reason for record in records.values()} == {"error", "eos"}
    for record in records.values():
        *decided, last = record.proposals
        assert all(p.accepted for p in decided), "NaN is not below delta"
        # the step whose score failed is kept in the record, left out of the response, and was not decided
        assert (last.accepted, last.kept) == ((None, False) if record.error else (True, True))


def test_a_second_process_is_refused_while_the_first_one_runs(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, *SHORT)
    first = start(tmp_path, *SHORT)
    wait_for_records(folder, 1)
    second = start(tmp_path, *SHORT)
    _, errors = second.communicate(timeout=60)
    assert second.returncode == 2 or first.poll() is not None
    assert f"is held by process {first.pid}" in errors
    assert len(errors.strip().splitlines()) == 1
    first.communicate(timeout=120)
    assert first.returncode == 0
    assert len(read_records(folder)) == 40


def test_a_run_whose_lock_was_taken_over_stops_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunLock, "lost", property(lambda self: True))
    config = compose_config(f"results_dir={tmp_path}", "limit=3")
    with pytest.raises(StoreError, match="taken over by another process"):
        invoke(config)
    assert read_records(make_plan(config).folder) == {}


def test_records_without_a_grade_are_graded_without_decoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = compose_config(f"results_dir={tmp_path}", "limit=6")
    accuracy = invoke(config)
    folder = make_plan(config).folder
    lines = (folder / "grades.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "grades.jsonl").write_bytes(b"".join(lines[:2]))
    monkeypatch.setattr("rsd.equipment.load_models", None)
    assert invoke(config) == accuracy
    assert len(read_grades(folder)) == 6
