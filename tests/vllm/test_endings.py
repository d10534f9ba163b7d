"""Runs with the vLLM engine that are broken off, each in a process of its own."""

import re
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from rsd.store import is_error, read_records
from tests.conftest import ROOT, command, environment
from tests.vllm.conftest import CACHE, orphans

pytestmark = pytest.mark.vllm


@pytest.mark.parametrize("end", ["failure", "interrupt", "kill"])
def test_no_worker_outlives_a_run_that_is_broken_off(end: str, tmp_path: Path) -> None:
    """Not even a process of its own, as each of several GPUs of one model has."""
    option = "max_num_seqs: 0" if end == "failure" else "distributed_executor_backend: mp"
    overrides = ["engine=vllm", CACHE, "method=single", "method.role=draft", f"engine.draft.args={{{option}}}"]
    overrides += [f"results_dir={tmp_path}"]
    started = subprocess.Popen(
        command(*overrides), cwd=ROOT, env=environment(), start_new_session=True, stderr=subprocess.PIPE, text=True
    )
    if end != "failure":
        while not any(path.stat().st_size for path in tmp_path.glob("runs/tiny_chain/*/records.jsonl")):
            assert started.poll() is None
            time.sleep(0.2)
        started.send_signal(signal.SIGINT if end == "interrupt" else signal.SIGKILL)
    _, errors = started.communicate(timeout=300)
    assert (started.returncode, "".join(errors.splitlines()[-1:])[:25]) == {
        "failure": (2, "Error: model.draft.path: "),
        "interrupt": (130, "Error: Stopped by SIGINT;"),
        "kill": (-signal.SIGKILL, ""),
    }[end]
    assert not orphans(started.pid)


def test_no_engine_outlives_a_run_that_is_killed_while_it_starts(tmp_path: Path) -> None:
    """At that time it waits for its configuration."""
    overrides = ["engine=vllm", CACHE, "method=single", "method.role=draft", f"results_dir={tmp_path}"]
    with subprocess.Popen(
        command(*overrides), cwd=ROOT, env=environment(), start_new_session=True, stderr=subprocess.DEVNULL
    ) as started:
        engine_of(started)
        started.kill()
    assert not orphans(started.pid, within=15)


def test_an_engine_that_is_killed_ends_the_run_in_one_sentence(tmp_path: Path) -> None:
    """No question fails for it, so that the same command goes on."""
    overrides = ["engine=vllm", CACHE, "method=single", "method.role=draft", f"results_dir={tmp_path}"]
    with subprocess.Popen(
        command(*overrides), cwd=ROOT, env=environment(), start_new_session=True, stderr=subprocess.PIPE, text=True
    ) as started:
        while not any(path.stat().st_size for path in tmp_path.glob("runs/tiny_chain/*/records.jsonl")):
            assert started.poll() is None
            time.sleep(0.02)
        engine_of(started).kill()
        _, errors = started.communicate(timeout=60)
    (folder,) = (tmp_path / "runs" / "tiny_chain").iterdir()
    assert started.returncode == 2
    assert re.fullmatch(
        rf"Error: engine\.draft: vLLM, which served .*/weights/s, has ended \(it was ended by SIGKILL, .*\); see "
        rf"{folder}/vllm-draft\.log\.",
        errors.splitlines()[-1],
    ), errors
    assert "Traceback" not in errors
    assert not any(is_error(record) for record in read_records(folder).values())
    assert not orphans(started.pid)


def engine_of(run: "subprocess.Popen[str]") -> psutil.Process:
    """The process of the run's engine, as soon as there is one."""
    while True:
        assert run.poll() is None
        for process in psutil.Process(run.pid).children():
            with suppress(psutil.NoSuchProcess):
                if any(sign in word for word in process.cmdline() for sign in ("spawn_main", "VLLM::")):
                    return process
        time.sleep(0.05)
