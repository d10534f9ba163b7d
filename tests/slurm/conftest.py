"""What the tests on a real Slurm share: the command, the scheduler's word, and the records of local runs to compare."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rsd.invocation import invoke
from rsd.plan import make_plan
from rsd.records import Record
from rsd.slurm import job_state
from rsd.store import Key, read_records
from tests.conftest import ROOT, command, compose_config, environment
from tests.same import assert_same

HOME = "/tmp/rsd-slurm"
SLURM = ("-m", "hydra/launcher=slurm", "hydra.launcher.cpus_per_task=1", "progress=off")
MANY = 32
SLOW = ("concurrency=1", f"limit={MANY}")  # slow enough for something to happen in the middle

Sweep = Callable[..., "subprocess.Popen[str]"]
Local = Callable[..., dict[Key, Record]]


@pytest.fixture(scope="session", autouse=True)
def slurm() -> Iterator[None]:
    """The cluster of this session; jobs inherit nothing of pytest's."""
    script = ROOT / "tests" / "slurm" / "cluster.sh"
    subprocess.run([script, "start", HOME], check=True)
    os.environ |= {"SLURM_CONF": f"{HOME}/slurm.conf", "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    yield
    subprocess.run([script, "stop", HOME], check=True)


@pytest.fixture
def sweep(tmp_path: Path) -> Iterator[Sweep]:
    """Begin a sweep on Slurm in a process of its own, with results below the test's own folder."""
    begun = []

    def sweep(*arguments: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            command(*SLURM, f"results_dir={tmp_path}", *arguments), cwd=ROOT, env=environment(),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        begun.append(process)
        return process

    yield sweep
    for process in begun:
        process.kill()
        process.communicate()
    run("scancel", "--me")


@pytest.fixture(scope="session")
def local(tmp_path_factory: pytest.TempPathFactory) -> Local:
    """The records of that many questions that the run has in this process, without Slurm; computed once."""
    folder = tmp_path_factory.mktemp("local")

    def local(count: int, *overrides: str) -> dict[Key, Record]:
        config = compose_config(f"results_dir={folder}", f"limit={count}", *overrides)
        invoke(config)
        plan = make_plan(config)
        asked = {problem.question_id for problem in plan.problems}  # of them; another test may have asked for more
        return {key: record for key, record in read_records(plan.folder).items() if key[0] in asked}

    return local


def ended(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    """Exit status, output and errors."""
    output, errors = process.communicate(timeout=240)
    return process.returncode, output, errors


def run(*arguments: str) -> str:
    """What a command prints."""
    return subprocess.run(arguments, capture_output=True, text=True, check=True, cwd=ROOT, timeout=60).stdout


def jobs(form: str = "%i|%T") -> list[str]:
    """All jobs that Slurm remembers, by default as name|state."""
    return run("squeue", "--me", "-h", "-r", "-t", "all", "-o", form).split()


def running() -> str:
    """The one job that runs."""
    (job,) = [line.split("|")[0] for line in jobs() if line.endswith("|RUNNING")]
    return job


def state(job: str) -> str:
    """Slurm's word for the job's state; none where it gives no answer just now."""
    known = job_state(job)
    return known.word if known else ""


def until(condition: Callable[[], object], process: "subprocess.Popen[str] | None" = None) -> None:
    """Wait for the condition; a `process` that ends before has failed."""
    deadline = time.monotonic() + 180
    while not condition():
        assert time.monotonic() < deadline
        if process is not None and process.poll() is not None:
            raise AssertionError(process.communicate())
        time.sleep(0.3)


def lines(folder: Path) -> int:
    """Whole lines of the run's records."""
    return sum(path.read_bytes().count(b"\n") for path in folder.glob("records*.jsonl"))


def assert_equal(folder: Path, alone: dict[Key, Record]) -> None:
    """The run has the records of a local run, each once."""
    assert lines(folder) == len(alone)
    assert_same(read_records(folder), alone, cached=False)
