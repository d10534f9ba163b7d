"""A process of vLLM's does not outlive the one that started it, however that ends."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from rsd.engines.vllm_plugin import STARTED_BY, end_with_parent
from tests.conftest import environment


def start_worker(folder: Path, early: bool) -> None:
    """Start a worker that asks to end with this process, `early` or only once this process is gone."""
    multiprocessing.get_context("spawn").Process(target=work, args=(folder, early)).start()


def work(folder: Path, early: bool) -> None:
    parent = os.getppid()
    if early:
        end_with_parent()
    (folder / "started").write_text(str(os.getpid()))
    while os.getppid() == parent:
        time.sleep(0.01)
    if not early:
        end_with_parent()
    (folder / "outlived").touch()


@pytest.mark.parametrize("early", [True, False])
def test_a_worker_ends_when_its_parent_is_killed_now_or_was_before(early: bool, tmp_path: Path) -> None:
    parent = multiprocessing.get_context("spawn").Process(target=start_worker, args=(tmp_path, early))
    parent.start()
    deadline = time.monotonic() + 60
    while not (tmp_path / "started").exists() or not (tmp_path / "started").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    worker = psutil.Process(int((tmp_path / "started").read_text()))
    assert parent.pid is not None
    os.kill(parent.pid, signal.SIGKILL)
    parent.join()
    psutil.wait_procs([worker], timeout=20)
    assert not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE
    assert not (tmp_path / "outlived").exists()


SERVER = "import time; from rsd.engines.vllm_plugin import end_with_parent; end_with_parent(); time.sleep(60)"
SERVE = f"""
import os, subprocess, sys, time
server = subprocess.Popen([sys.executable, "-c", {SERVER!r}], env={{**os.environ, {STARTED_BY!r}: str(os.getpid())}})
print(server.pid, flush=True)
time.sleep(60)
"""


def test_a_server_ends_when_what_started_it_is_killed() -> None:
    command = [sys.executable, "-c", SERVE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment()) as serving:
        assert serving.stdout is not None
        server = psutil.Process(int(serving.stdout.readline()))
        serving.kill()
    psutil.wait_procs([server], timeout=20)
    assert not server.is_running() or server.status() == psutil.STATUS_ZOMBIE


COMMAND = "from rsd.engines.vllm_plugin import end_with_parent; end_with_parent(); print('ran')"
STARTS_A_COMMAND = f"""
import subprocess, sys
from rsd.engines.vllm_plugin import end_with_parent
for _ in range(2):
    end_with_parent()
sys.exit(subprocess.call([sys.executable, "-c", {COMMAND!r}]))
"""


def test_a_command_that_a_server_starts_in_its_turn_runs() -> None:
    """vLLM looks at the class of a model that is new to a machine in such a command."""
    started = environment(**{STARTED_BY: str(os.getpid())})
    server = subprocess.run(
        [sys.executable, "-c", STARTS_A_COMMAND], env=started, capture_output=True, text=True, check=False
    )
    assert (server.returncode, server.stdout) == (0, "ran\n"), server.stderr
