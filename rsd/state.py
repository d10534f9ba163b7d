"""How far a run is, from its own files: what it still lacks, whether somebody works on it, what ended it.

jobs, ungraded = missing(plan)
state = state_of(plan)          # of what this plan asks for
state = stored_state(folder)    # of what the run was last asked for
print(state.text)               # done, 40 of 500, missing, failed
"""

import traceback
from collections.abc import Collection, Iterator
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
from rsd.store import Attempts, Key, read_attempts, read_grades, read_records, write_json

RETRIES = 3  # how often a failed question is tried again, over invocations

StateName = Literal["done", "running", "partial", "missing", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Of `asked` solutions, `done` are recorded and graded and `errors` failed. `error`: what ended the last
    invocation before its time, and `log` the file that tells more; `holder`: the process that works on the run."""

    done: int
    errors: int
    asked: int
    error: str | None = None
    log: Path | None = None
    holder: str | None = None

    @property
    def name(self) -> StateName:
        """The state in a word."""
        if self.holder:
            return "running"
        if self.error or (self.errors and self.done + self.errors >= self.asked):
            return "failed"
        if self.done >= self.asked > 0:
            return "done"
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
            case "failed" if self.done:
                return f"failed, {far}"
            case name:
                return name


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


def _state(folder: Path, keys: Collection[Key] | None) -> State:
    attempts, grades = read_attempts(folder), read_grades(folder)
    answered = {key: attempt.answered for key, attempt in attempts.items() if keys is None or key in keys}
    notes = [_read_note(path) for path in sorted(folder.glob("status*.json"))]
    failed = next((note for note in notes if note.error), None)
    return State(
        done=sum(key in grades for key, is_answered in answered.items() if is_answered),
        errors=sum(not is_answered for is_answered in answered.values()),
        asked=len(keys) if keys is not None else sum(note.asked for note in notes) if notes else len(attempts),
        error=failed.error if failed else None,
        log=folder / failed.log if failed else None,
        holder=", ".join(live_holders(folder)) or None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Note:
    """What stands in ``status.json`` about the last invocation of a run, or of one of its shards."""

    asked: int
    error: str | None
    log: str


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
    _clear_notes(plan)
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


def _clear_notes(plan: Plan) -> None:
    """Delete what other invocations noted that divided the run in another way."""
    shard, shards = plan.config.shard, plan.config.shards
    kept = {"status.json"} if shard is None else {f"status-{i}.json" for i in range(shards)}
    for path in plan.folder.glob("status*.json"):
        if path.name not in kept:
            path.unlink(missing_ok=True)


def told(error: Exception) -> str:
    """An error in one sentence."""
    return str(error) if isinstance(error, RSDError) else f"unexpected {described(error)}."
