"""A process of vLLM's does not outlive the one that started it, however that ends."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from rsd.engines.vllm_plugin import STARTED_BY, ending_with_this
from tests.conftest import environment

# What a process that vLLM starts does: says that it runs, and ends with its parent as it is asked to, or only when
# that is gone. Then it sleeps.
WORKER = """
import os, sys, time
from pathlib import Path
from rsd.engines.vllm_plugin import end_with_parent
folder, early = Path(sys.argv[1]), sys.argv[2] == "True"
parent = os.getppid()
if early:
    end_with_parent()
(folder / "started").write_text(str(os.getpid()))
while os.getppid() == parent:
    time.sleep(0.01)
end_with_parent()
(folder / "outlived").touch()
time.sleep(60)
"""
STARTS_A_WORKER = f"""
import subprocess, sys, time
from rsd.engines.vllm_plugin import ending_with_this
with ending_with_this():
    subprocess.Popen([sys.executable, "-c", {WORKER!r}, *sys.argv[1:]])
time.sleep(60)
"""


def ended(process: psutil.Process) -> bool:
    """Whether it ends within a while."""
    psutil.wait_procs([process], timeout=20)
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("early", [True, False])
def test_a_worker_ends_when_its_parent_is_killed_now_or_was_before(early: bool, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STARTS_A_WORKER, str(tmp_path), str(early)], env=environment()
    ) as parent:
        deadline = time.monotonic() + 60
        while not (tmp_path / "started").exists() or not (tmp_path / "started").read_text():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        worker = psutil.Process(int((tmp_path / "started").read_text()))
        parent.kill()
    assert ended(worker)
    assert not (tmp_path / "outlived").exists()


ENGINE = "import time; from rsd.engines.vllm_plugin import end_with_parent; end_with_parent(); time.sleep(60)"
SERVER = f"""
import subprocess, sys
from rsd.engines.vllm_plugin import end_with_parent
end_with_parent()
engine = subprocess.Popen([sys.executable, "-c", {ENGINE!r}])
print(engine.pid, flush=True)
engine.wait()
"""
SERVE = f"""
import os, subprocess, sys, time
server = subprocess.Popen([sys.executable, "-c", {SERVER!r}], env={{**os.environ, {STARTED_BY!r}: str(os.getpid())}})
print(server.pid, flush=True)
time.sleep(60)
"""


def test_a_server_and_its_engine_end_when_what_started_it_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SERVE], stdout=subprocess.PIPE, text=True, env=environment()
    ) as serving:
        assert serving.stdout is not None
        server, engine = (psutil.Process(int(serving.stdout.readline())) for _ in range(2))
        serving.kill()
    assert ended(server)
    assert ended(engine)


COMMAND = "from rsd.engines.vllm_plugin import end_with_parent; end_with_parent(); print('ran')"
STARTS_A_COMMAND = f"""
import subprocess, sys
from rsd.engines.vllm_plugin import end_with_parent
for _ in range(2):
    end_with_parent()
sys.exit(subprocess.call(["sh", "-c", 'true; "$0" "$@"; exit $?', sys.executable, "-c", {COMMAND!r}]))
"""


def test_a_command_that_a_server_starts_in_its_turn_runs() -> None:
    """vLLM looks at the class of a model that is new to a machine in such a command; here by way of a shell."""
    started = environment(**{STARTED_BY: str(os.getpid())})
    server = subprocess.run(
        [sys.executable, "-c", STARTS_A_COMMAND], env=started, capture_output=True, text=True, check=False
    )
    assert (server.returncode, server.stdout) == (0, "ran\n"), server.stderr


def test_only_what_is_started_for_a_run_ends_with_it() -> None:
    with ending_with_this(RSD_TEST="8"):
        assert os.environ[STARTED_BY] == str(os.getpid())
        assert os.environ["RSD_TEST"] == "8"
    assert not {STARTED_BY, "RSD_TEST"} & os.environ.keys()
