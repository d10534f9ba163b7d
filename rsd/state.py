"""How far a run is, from its own files: what it still lacks, whether somebody works on it, what ended it.

jobs, ungraded = missing(plan)
state = state_of(plan)          # of what this plan asks for
state = stored_state(folder)    # of what the run was last asked for
print(state.text)               # done, 40 of 500, missing, failed
"""

import traceback
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import orjson

from rsd.errors import RSDError, StoppedError, StoreError, described
from rsd.lock import live_holder
from rsd.plan import Plan
from rsd.records import Problem, Record
from rsd.store import Key, failed_attempts, is_error, read_grades, read_records, write_json

RETRIES = 3  # how often a failed question is tried again, over invocations
STATUS, LOG = "status.json", "error.log"

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
    records, grades, failures = read_records(plan.folder), read_grades(plan.folder), failed_attempts(plan.folder)
    waiting = {problem.question_id for problem, _ in missing(plan.drawn)[0]} if plan.drawn else set()
    jobs, ungraded = [], []
    for problem in plan.problems:
        for sample in range(plan.samples):
            key = problem.question_id, sample
            record = records.get(key)
            if record is None or (is_error(record) and (plan.config.retry_failed or failures[key] <= RETRIES)):
                if problem.question_id not in waiting:
                    jobs.append((problem, sample))
            elif not is_error(record) and key not in grades:
                ungraded.append((problem, record))
    return jobs, ungraded


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
    records, grades = read_records(folder), read_grades(folder)
    chosen = [record for key, record in records.items() if keys is None or key in keys]
    errors = sum(map(is_error, chosen))
    try:
        status = orjson.loads((folder / STATUS).read_bytes())
    except FileNotFoundError:
        status = {"asked": len(records), "error": None}
    except ValueError as error:
        raise StoreError(f"{folder / STATUS} is not JSON ({error}); delete it") from error
    return State(
        done=sum(record.key in grades and not is_error(record) for record in chosen),
        errors=errors,
        asked=status["asked"] if keys is None else len(keys),
        error=status["error"],
        log=folder / LOG if status["error"] else None,
        holder=live_holder(folder / "lock.json"),
    )


@contextmanager
def noted(plan: Plan) -> Iterator[None]:
    """Note in the run's folder what it is asked for, and what ended it where something but a signal did."""
    path, asked = plan.folder / STATUS, len(plan.problems) * plan.samples
    write_json(path, {"asked": asked, "error": None})
    try:
        yield
    except StoppedError:
        raise
    except Exception as error:
        with suppress(StoreError, OSError):  # a full disk may be what happened: that error is the one to tell
            (plan.folder / LOG).write_text(traceback.format_exc(), encoding="utf-8")
            write_json(path, {"asked": asked, "error": told(error)})
        raise


def told(error: Exception) -> str:
    """An error in one sentence."""
    return str(error) if isinstance(error, RSDError) else f"unexpected {described(error)}."
