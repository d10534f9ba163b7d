"""How far a run is, from its own files: what it still lacks, who works on it or will, what ended it.

jobs, ungraded = missing(plan)
state = state_of(plan)          # of what this plan asks for
state = stored_state(folder)    # of what the run was last asked for
print(state.text)               # done, 40 of 500, missing, failed, queued
"""

import traceback
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Literal

import orjson

from rsd.errors import RSDError, StoppedError, StoreError, described
from rsd.lock import live_holders
from rsd.plan import Plan
from rsd.records import Problem, Record
from rsd.slurm import JobState, NotedJob, noted_jobs
from rsd.store import Attempts, Key, create_folder, read_attempts, read_grades, read_records, write_json

RETRIES = 3  # how often a failed question is tried again, over invocations

StateName = Literal["done", "running", "queued", "gone", "partial", "missing", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Of `asked` solutions, `done` are recorded and graded and `errors` failed; `questions` have an answer. `error`:
    what ended the last invocation before its time, and `log` the file that tells more; `holder`: the process that works
    on the run; `jobs`: the Slurm jobs that were given the run and have not come to its end, and where each is."""

    done: int
    errors: int
    asked: int
    questions: int = 0
    error: str | None = None
    log: Path | None = None
    holder: str | None = None
    jobs: tuple[tuple[NotedJob, JobState | None], ...] = ()

    @property
    def name(self) -> StateName:
        """The state in a word."""
        if self.holder:
            return "running"
        if self.waiting and self.done < self.asked:
            return "queued"
        if self.error or (self.errors and self.done + self.errors >= self.asked):
            return "failed"
        if self.done >= self.asked > 0:
            return "done"
        if any(state is not None for _, state in self.jobs):
            return "gone"
        return "partial" if self.done + self.errors else "missing"

    @property
    def text(self) -> str:
        """The state in a few words, for a table."""
        far = f"{self.done:,} of {self.asked:,}"
        match self.name:
            case "partial":
                return far
            case "running":
                return f"running, {far}"
            case "failed" | "queued" | "gone" as name if self.done:
                return f"{name}, {far}"
            case name:
                return name

    @property
    def waiting(self) -> bool:
        """Whether Slurm has a job that will come to the run."""
        return any(state is not None and state.phase != "gone" for _, state in self.jobs)


def missing(plan: Plan) -> tuple[list[tuple[Problem, int]], list[tuple[Problem, Record]]]:
    """The samples without a record, or with a failed one to try again; and the records without a grade.

    A selection waits for all samples that it chooses among.
    """
    attempts, grades = read_attempts(plan.folder), read_grades(plan.folder)
    waiting = {problem.question_id for problem, _ in missing(plan.drawn)[0]} if plan.drawn else set()
    retries = inf if plan.config.retry_failed else RETRIES
    jobs, ungraded = [], []
    for problem in plan.problems:
        for sample in range(plan.samples):
            key = problem.question_id, sample
            attempt = attempts.get(key, Attempts())
            if attempt.answered and key not in grades:
                ungraded.append((problem, key))
            elif not attempt.answered and attempt.failures <= retries and problem.question_id not in waiting:
                jobs.append((problem, sample))
    records = read_records(plan.folder) if ungraded else {}
    return jobs, [(problem, records[key]) for problem, key in ungraded]


def complete(plan: Plan) -> bool:
    """Whether the same command again would do nothing."""
    return not any(missing(plan)) and (plan.drawn is None or complete(plan.drawn))


def state_of(plan: Plan) -> State:
    """The state of the run with respect to the solutions that `plan` asks for."""
    keys = {(problem.question_id, sample) for problem in plan.problems for sample in range(plan.samples)}
    return _state(plan.folder, keys)


def stored_state(folder: Path) -> State:
    """The state of the run with respect to what its last invocation asked for. Raises StoreError."""
    return _state(folder, None)


def asked_of(folder: Path) -> int | None:
    """How many solutions the last invocation of the run asked for; None where that is not noted. Raises StoreError."""
    return _asked(_notes(folder), noted_jobs(folder))


def _state(folder: Path, keys: Collection[Key] | None) -> State:
    attempts, grades = read_attempts(folder), read_grades(folder)
    answered = {key: attempt.answered for key, attempt in attempts.items() if keys is None or key in keys}
    notes, jobs = _notes(folder), noted_jobs(folder)
    failed = next((note for note in notes.values() if note.error), None)
    asked = _asked(notes, jobs)
    return State(
        done=sum(key in grades for key, is_answered in answered.items() if is_answered),
        errors=sum(not is_answered for is_answered in answered.values()),
        asked=len(keys) if keys is not None else len(attempts) if asked is None else asked,
        questions=len({question for (question, _), is_answered in answered.items() if is_answered}),
        error=failed.error if failed else None,
        log=folder / failed.log if failed else None,
        holder=", ".join(live_holders(folder)) or None,
        jobs=tuple(jobs.values()),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Note:
    """What stands in ``status.json`` about the last invocation of a run, or of one of its shards."""

    asked: int
    error: str | None
    log: str


def _notes(folder: Path) -> dict[str, _Note]:
    return {path.name: _read_note(path) for path in sorted(folder.glob("status*.json"))}


def _asked(notes: Mapping[str, _Note], jobs: Mapping[str, tuple[NotedJob, JobState | None]]) -> int | None:
    """The solutions asked for by invocations, of the run or of its shards, and by jobs that will begin one."""
    asked = {name: note.asked for name, note in notes.items()}
    asked |= {name.replace("job", "status"): note.asked for name, (note, _) in jobs.items()}
    return sum(asked.values()) if asked else None


def _read_note(path: Path) -> _Note:
    try:
        return _Note(**orjson.loads(path.read_bytes()))
    except (ValueError, TypeError) as error:
        raise StoreError(f"{path} is not the status of a run ({error}); delete it") from error


@contextmanager
def noted(plan: Plan) -> Iterator[None]:
    """Note in the run's folder what it is asked for, and what ended it where something but a signal did."""
    path, log = plan.own(plan.folder / "status.json"), plan.own(plan.folder / "error.log")
    note = _Note(asked=len(plan.problems) * plan.samples, error=None, log=log.name)
    _clear_notes(plan.folder, plan.config.shard, plan.config.shards)
    write_json(path, note)
    try:
        yield
    except StoppedError:
        raise
    except Exception as error:
        with suppress(StoreError, OSError):  # a full disk may be what happened: that error is the one to tell
            log.write_text(traceback.format_exc(), encoding="utf-8")
            write_json(path, replace(note, error=told(error)))
        raise


def note_job(plan: Plan, shard: int | None, job: str, log: Path) -> None:
    """Note in the run's folder, and in that of the samples it needs, that a Slurm job was given it or a shard of it."""
    for one in (one for one in (plan.drawn, plan) if one is not None):
        create_folder(one.folder)
        _clear_notes(one.folder, shard, one.config.shards)
        problems = one.problems if shard is None else one.problems[shard :: one.config.shards]
        note = NotedJob(job=job, log=str(log), asked=len(problems) * one.samples)
        write_json(one.folder / _job_file(shard), note)


def forget_job(plan: Plan) -> None:
    """The job that this process runs in has come to the end of the run, or of its shard: the run's own files tell."""
    for one in (one for one in (plan.drawn, plan) if one is not None):
        (one.folder / _job_file(one.config.shard)).unlink(missing_ok=True)


def given_to(plan: Plan, shard: int | None) -> str | None:
    """A job that Slurm has, and that was given the run or the shard, or the samples that it needs."""
    for one in (one for one in (plan.drawn, plan) if one is not None):
        for name, (note, state) in noted_jobs(one.folder).items():
            others = shard is not None and name not in (_job_file(None), _job_file(shard))
            if not others and state is not None and state.phase != "gone":
                return note.job
    return None


def _job_file(shard: int | None) -> str:
    return "job.json" if shard is None else f"job-{shard}.json"


def _clear_notes(folder: Path, shard: int | None, shards: int) -> None:
    """Delete what was noted of invocations and jobs that divided the run in another way."""
    endings = {""} if shard is None else {f"-{i}" for i in range(shards)}
    for path in (*folder.glob("status*.json"), *folder.glob("job*.json")):
        if path.stem.removeprefix("status").removeprefix("job") not in endings:
            path.unlink(missing_ok=True)


def told(error: Exception) -> str:
    """An error in one sentence."""
    return str(error) if isinstance(error, RSDError) else f"unexpected {described(error)}."
