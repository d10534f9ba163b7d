"""Answer the questions that a run still lacks: all in flight at once, each recorded when done::

runner = Runner(solver=decoder(method, models, decoding), seed=0, grader=grader, …)
outcome = await runner.run(jobs)
"""

import asyncio
import signal
import time
import types
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import orjson

from rsd.engines.base import Models
from rsd.errors import EngineError, StoreError, described
from rsd.grading import Grader
from rsd.grading.records import classes_of, grade_record
from rsd.lock import RunLock
from rsd.methods.base import Method
from rsd.methods.decoding import Decoding
from rsd.methods.trajectory import Trajectory
from rsd.records import Problem, Record, Solution, dump
from rsd.signals import STOPPING, interrupted
from rsd.store import GradeRecord, JsonLines, is_error

Job = tuple[Problem, int]  # a question and the index of its sample
NOTHING = Solution(prompt_tokens=0, end_reason="error", response="", proposals=())
Told = Callable[[Record, GradeRecord | None], None]
Clock = Callable[[], float]
# Of a question and the index of its sample: what was decoded, and what went wrong where something did.
Solver = Callable[[Problem, int, Clock], Awaitable[tuple[Solution, str | None]]]


def decoder(method: Method, models: Models, decoding: Decoding) -> Solver:
    """Solve by decoding with `method`."""

    async def solve(problem: Problem, sample: int, clock: Clock) -> tuple[Solution, str | None]:
        trajectory = message = None
        try:
            trajectory = Trajectory(problem, sample, models=models, decoding=decoding, clock=clock)
            await method.solve(trajectory)
        except EngineError:  # of all questions
            raise
        except Exception as error:  # listed, counted as wrong, and tried again by the next invocation
            message = described(error)
        return trajectory.solution(failed=message is not None) if trajectory else NOTHING, message

    return solve


@dataclass(slots=True)
class Outcome:
    """What one invocation did. `stopped` names the signal that ended it early."""

    records: int = 0
    seconds: float = 0.0
    stopped: str | None = None


class Runner:
    """Solves questions, writing records and grades as they come.

    `seed` is the run's. `concurrency` bounds the questions in flight (None: all). `told` hears of every record
    and its grade, None where decoding failed. `graded` are earlier grades of the run, whose answer
    classes go on.
    """

    def __init__(
        self,
        *,
        solver: Solver,
        seed: int,
        grader: Grader,
        records: JsonLines,
        grades: JsonLines,
        lock: RunLock,
        invocation: int,
        concurrency: int | None,
        told: Told,
        graded: Iterable[GradeRecord] = (),
    ) -> None:
        self._solver = solver
        self._seed = seed
        self._grader = grader
        self._records = records
        self._grades = grades
        self._classes = classes_of(grader, graded)
        self._lock = lock
        self._invocation = invocation
        self._slots = nullcontext() if concurrency is None else asyncio.Semaphore(concurrency)
        self._told = told
        self._outcome = Outcome()
        self._began = time.monotonic()

    async def run(self, jobs: Sequence[Job], ungraded: Iterable[tuple[Problem, Record]] = ()) -> Outcome:
        """Answer `jobs` and grade `ungraded`; on a stop signal (`rsd.signals`) stop at once and record nothing more.

        Raises StoreError when results cannot be written, EngineError when a model's engine has ended; what was written
        before stays.
        """
        self._began = time.monotonic()
        self._outcome = outcome = Outcome()
        tasks = [asyncio.create_task(self._grade(problem, record)) for problem, record in ungraded]
        tasks += [asyncio.create_task(self._answer(problem, sample)) for problem, sample in jobs]
        loop = asyncio.get_running_loop()

        def cancel() -> None:
            for task in tasks:
                task.cancel()

        # Not the loop's own handlers, which come after what is ready then: a signal to all processes of a job may have
        # ended models and graders, and what comes of that is no result.
        def stop(number: int, _: types.FrameType | None) -> None:
            outcome.stopped = signal.Signals(number).name
            loop.call_soon_threadsafe(cancel)

        before = {number: signal.signal(number, stop) for number in STOPPING}
        if interrupted():  # while models were loaded, and whatever was loading them has caught the exception
            outcome.stopped = interrupted()
            cancel()
        try:
            await asyncio.gather(*tasks)
        except (asyncio.CancelledError, EngineError):  # the signal may have ended an engine as well
            if outcome.stopped is None:
                raise
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for number, handler in before.items():
                signal.signal(number, handler)
            outcome.seconds = time.monotonic() - self._began
        return outcome

    async def _answer(self, problem: Problem, sample: int) -> None:
        async with self._slots:
            record = await self._solve(problem, sample)
        if self._lock.lost:
            raise StoreError(f"{self._lock.path} was taken over by another process, so this one stops writing.")
        self._append(self._records, dump(record))
        self._outcome.records += 1
        if is_error(record):
            self._told(record, None)
        else:
            await self._grade(problem, record)

    async def _solve(self, problem: Problem, sample: int) -> Record:
        """One record. Whatever goes wrong with this question is written down as its error."""
        solution, message = await self._solver(problem, sample, self._clock)
        return Record(
            question_id=problem.question_id,
            sample=sample,
            seed=self._seed,
            invocation=self._invocation,
            prompt_tokens=solution.prompt_tokens,
            end_reason=solution.end_reason,
            response=solution.response,
            proposals=solution.proposals,
            error=message,
        )

    def _clock(self) -> float:
        return time.monotonic() - self._began

    async def _grade(self, problem: Problem, record: Record) -> None:
        grade = await grade_record(self._grader, self._classes, problem, record)
        self._append(self._grades, orjson.dumps(grade))
        self._told(record, grade)

    def _append(self, file: JsonLines, line: bytes) -> None:
        if self._outcome.stopped:
            raise asyncio.CancelledError
        file.append(line)
