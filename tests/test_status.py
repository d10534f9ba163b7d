"""Status tells the truth from the runs' own files."""

import os
from pathlib import Path

import orjson
import pytest

from rsd.invocation import invoke
from rsd.lock import RunLock
from rsd.plan import make_plan
from rsd.status import main
from tests.conftest import compose_config


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    config = compose_config(f"results_dir={tmp_path}", "method=single", "limit=4")
    invoke(config)
    return make_plan(config).folder


def shown(tmp_path: Path, capsys: pytest.CaptureFixture[str], *filters: str) -> str:
    capsys.readouterr()
    assert main([*filters, "--results", str(tmp_path)]) == 0
    return capsys.readouterr().out


def row_of(folder: Path, output: str) -> list[str]:
    """The words behind the run's name in the table."""
    name = f"tiny_chain/{folder.name}"
    return next(line for line in output.splitlines() if line.startswith(name)).removeprefix(name).split()


def test_a_whole_run_is_done(tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"tiny_chain/{folder.name}   done" in shown(tmp_path, capsys)


def test_what_was_lost_is_missing_whatever_was_noted(
    tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("records.jsonl", "grades.jsonl"):
        lines = (folder / name).read_bytes().splitlines(keepends=True)
        (folder / name).write_bytes(b"".join(lines[:3]))
    assert f"{folder.name}   3 of 4" in shown(tmp_path, capsys)


def test_a_run_is_running_while_its_holder_lives(
    tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with RunLock(folder / "lock.json"):
        output = shown(tmp_path, capsys)
        assert "running, 4 of 4" in output
        assert f"process {os.getpid()} on" in output
        lock = orjson.loads((folder / "lock.json").read_bytes())
        (folder / "lock.json").write_bytes(orjson.dumps({**lock, "started": 1.0}))  # of a process that is gone
        assert f"{folder.name}   done" in shown(tmp_path, capsys)


def test_a_failure_is_told_with_its_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "config.json").write_text("{")
    config = compose_config(f"results_dir={tmp_path}", "method=single", f"model.target.path={broken}")
    with pytest.raises(Exception, match="cannot read the weights"):
        invoke(config)
    output = shown(tmp_path, capsys, "status=failed")
    assert "failed" in output
    assert "cannot read the weights" in output
    assert f"Log: {make_plan(config).folder / 'error.log'}" in output


@pytest.mark.parametrize(
    ("squeue", "state", "told"),
    [
        ("echo '81_2|PENDING'", "queued, 4 of 9", "Slurm job 81_2 is queued (PENDING). Log: job.out"),
        (
            "echo '82_2|RUNNING'",
            "queued, 4 of 9",
            "Slurm job 82_2 is running (RUNNING) and has not come to this run yet.",
        ),
        ("echo '83_2|OUT_OF_MEMORY'", "gone, 4 of 9", "Slurm job 83_2 is gone (OUT_OF_MEMORY)"),
        ("echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1", "gone, 4 of 9", "gone (unknown)"),
        ("exit 1", "4 of 9", "Slurm job 85_2 cannot be asked about"),
        (None, "4 of 9", "Slurm job 86_2 cannot be asked about"),
    ],
)
def test_a_run_that_a_slurm_job_was_given_is_what_slurm_says(
    tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest, squeue: str | None, state: str, told: str,
) -> None:  # fmt: skip
    commands = tmp_path / "bin"
    commands.mkdir()
    if squeue is not None:
        (commands / "squeue").write_text(f"#!/bin/sh\n{squeue}\n")
        (commands / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", str(commands))
    job = f"8{request.node.callspec.indices['state'] + 1}_2"
    (folder / "job.json").write_bytes(orjson.dumps({"job": job, "log": "job.out", "asked": 9}))
    output = shown(tmp_path, capsys)
    assert f"{folder.name}   {state} " in output
    assert told in output


def test_filters_are_words_that_all_occur(tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    invoke(compose_config(f"results_dir={tmp_path}", "delta=0.6", "limit=2"))
    assert folder.name not in shown(tmp_path, capsys, "delta=0.6")
    assert folder.name in shown(tmp_path, capsys, "benchmark=tiny_chain", "status=done", "target")
    assert main(["benchmark=tiny_story", "--results", str(tmp_path)]) == 0, "as where none has failed"
    assert "None of 2 runs has the words benchmark=tiny_story." in capsys.readouterr().err


def test_a_file_that_cannot_be_read_is_that_runs_failure(
    tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (folder / "records.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "records.jsonl").write_bytes(b"nonsense\n" + b"".join(lines))
    output = shown(tmp_path, capsys)
    assert "line 1 is broken" in output
    assert row_of(folder, output) == ["failed", "–", "–"], "no accuracy of what cannot be read"


@pytest.mark.parametrize("content", [b"{half", b"[]", b"{}", None])
def test_a_run_whose_manifest_cannot_be_read_has_failed(
    tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str], content: bytes | None
) -> None:
    manifest = folder / "manifest.json"
    manifest.unlink()
    if content is not None:
        manifest.write_bytes(content)
    output = shown(tmp_path, capsys, "status=failed")
    assert row_of(folder, output) == ["failed", "–", "–"]
    assert f"{folder.name}: {folder if content is None else manifest} is not" in output


def test_the_accuracy_is_that_of_all_that_was_asked_for(
    tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert row_of(folder, shown(tmp_path, capsys))[-1].endswith("%")
    summary = (folder / "summary.json").read_bytes()
    for wrong in (b"{half", orjson.dumps({**orjson.loads(summary), "records": 3})):  # broken, and older than a record
        (folder / "summary.json").write_bytes(wrong)
        assert row_of(folder, shown(tmp_path, capsys)) == ["done", "4/500", "–"]
    (folder / "summary.json").write_bytes(summary)
    status = orjson.loads((folder / "status.json").read_bytes())
    (folder / "status.json").write_bytes(orjson.dumps({**status, "asked": 9}))  # and the command was killed
    assert row_of(folder, shown(tmp_path, capsys)) == ["4", "of", "9", "4/500", "–"]


def test_no_runs_are_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--results", str(tmp_path)]) == 2
    assert "There are no runs in" in capsys.readouterr().err


def test_questions_are_counted_of_the_benchmark_not_of_what_was_asked_for(
    tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = shown(tmp_path, capsys)
    assert f"{folder.name}   done" in output
    assert "4/500" in output
