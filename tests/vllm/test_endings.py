"""Runs with the vLLM engine that are broken off, each in a process of its own."""

import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.conftest import ROOT, command, environment
from tests.vllm.conftest import CACHE, orphans

pytestmark = pytest.mark.vllm


@pytest.mark.parametrize("end", ["failure", "interrupt", "kill"])
def test_no_worker_outlives_a_run_that_is_broken_off(end: str, tmp_path: Path) -> None:
    """Not even a process of its own, as each of several GPUs of one model has."""
    option = "no_such_option: 1" if end == "failure" else "distributed_executor_backend: mp"
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
