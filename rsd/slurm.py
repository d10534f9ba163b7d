"""What Slurm knows of jobs, and which job a run was given to.

    own_job()             # "12_1" within a job, None elsewhere
    job_state("12_1")     # JobState(phase="running", word="RUNNING")
    noted_jobs(folder)    # what job.json says, and where the job is

It is asked with ``squeue``, which needs no accounting: many clusters have that switched off. A job's name is that of
its array with its place in it, since the last element of an array shares its number with the whole.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

import orjson

from rsd.errors import StoreError

SQUEUE_TIMEOUT = 10.0  # seconds
SLOWEST_POLL = 30.0  # seconds between two questions about a job that takes long
FRESH = 2.0  # seconds for which an answer about a job may be shown again

# Of the states that squeue prints. What is neither, such as SUSPENDED or COMPLETING, may still have processes.
WAITING = {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT"}
ENDED = {
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED",
    "TIMEOUT", "unknown"
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class JobState:
    """Where a job is, and Slurm's own word for it; ``unknown`` where it has none (any more)."""

    phase: Literal["queued", "running", "gone"]
    word: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotedJob:
    """The Slurm job that a run, or a shard of it, was given to, the file that it logs to, and the solutions that it is
    asked for: what ``job.json`` or ``job-<shard>.json`` says until the job has come to the run's end."""

    job: str
    log: str
    asked: int


def own_job() -> str | None:
    """The job that this process runs in."""
    array, task = os.environ.get("SLURM_ARRAY_JOB_ID"), os.environ.get("SLURM_ARRAY_TASK_ID")
    return f"{array}_{task}" if array and task else os.environ.get("SLURM_JOB_ID")


def restarts() -> int:
    """How often the job that this process runs in was requeued."""
    return int(os.environ.get("SLURM_RESTART_COUNT", "0"))


def job_states(jobs: Collection[str]) -> dict[str, JobState] | None:
    """Where each of the jobs is; None where Slurm cannot be asked."""
    squeue = shutil.which("squeue")
    if squeue is None:
        return None
    command = [squeue, "--noheader", "--array", "--states=all", "--format=%i|%T", f"--jobs={','.join(jobs)}"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=SQUEUE_TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        return None
    if answer.returncode and "Invalid job id" not in answer.stderr:
        return None  # the scheduler's failure, not the job's
    words = dict(line.strip().split("|") for line in answer.stdout.splitlines() if "|" in line)
    return {job: _state(words.get(job, "unknown")) for job in jobs}


def _state(word: str) -> JobState:
    return JobState("queued" if word in WAITING else "gone" if word in ENDED else "running", word)


def job_state(job: str) -> JobState | None:
    """Where the job is; None where Slurm cannot be asked."""
    states = job_states([job])
    return None if states is None else states[job]


def wait_for(job: str) -> JobState:
    """Wait until Slurm is done with the job, and return its last state; a Slurm that cannot be asked is asked again."""
    began = time.monotonic()
    while (state := job_state(job)) is None or state.phase != "gone":
        time.sleep(min(SLOWEST_POLL, 1 + (time.monotonic() - began) / 10))
    return state


def noted_jobs(folder: Path) -> dict[str, tuple[NotedJob, JobState | None]]:
    """By name of the file, the jobs that the run in `folder` was given to, and where each is.

    Raises StoreError where a file is broken."""
    jobs = {}
    for path in sorted(folder.glob("job*.json")):
        try:
            note = NotedJob(**orjson.loads(path.read_bytes()))
        except FileNotFoundError:  # the job ended just now
            continue
        except (ValueError, TypeError) as error:
            raise StoreError(f"{path} does not name a Slurm job ({error}); delete it") from error
        jobs[path.name] = note, _lately(note.job, int(time.monotonic() / FRESH))
    return jobs


@lru_cache(maxsize=4096)  # the runs of one job are asked about in a row
def _lately(job: str, _: int) -> JobState | None:
    return job_state(job)
