r"""Grade responses from asyncio, as many at once as there are worker processes::

    with Grader(workers=2, time_limit=5.0) as grader:
        grade = await grader.grade(gold="7", response=r"... \boxed{7}")  # Grade(correct=True, ...)
        index = await grader.first_equal("7.0", ["8", "7"])  # 1

Only answers that differ from the gold as text go to a process, and of these no whole numbers.
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import LifoQueue
from typing import Literal, ParamSpec, Self, TypeVar

from rsd.grading.choices import extract_choice
from rsd.grading.extract import extract_answer, extract_boxed
from rsd.grading.judge import GraderName, first_equal, judge
from rsd.grading.reference import reference_answer
from rsd.grading.worker import GradingError, Worker
from rsd.records import Kind

Reason = Literal["equal", "different", "no answer", "ungradable gold", "not graded", "timeout", "crash"]
INTEGER = re.compile(r"0|-?[1-9]\d*", re.ASCII)
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Grade:
    """Whether a response is right, the answer that it gave (None: none), and why.

    Reasons: `equal` and `different` compare answer and gold; `no answer`: the response gives none; `ungradable gold`:
    the gold is blank; `not graded`: the question is of kind `text`; `timeout` and `crash`: the answer broke a limit.
    """

    correct: bool
    extracted: str | None
    reason: Reason


class Grader:
    """Worker processes that grade responses; golds and responses are both untrusted.

    `name` is the grader: `default`, `math_verify` (the plain library) or `reference` (the rules behind the paper's
    numbers). `time_limit` is in seconds per answer, `memory_limit` in bytes of address space per process. A process
    starts when first needed. Close the grader, or use it as a context manager.
    """

    def __init__(
        self, workers: int = 1, time_limit: float = 5.0, memory_limit: int = 2 * 2**30, name: GraderName = "default"
    ) -> None:
        self.name: GraderName = name
        self._workers = [Worker(time_limit, memory_limit) for _ in range(workers)]
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="grading")
        self._poisoned: set[str] = set()  # answers that have broken a limit in a comparison with more than one other
        self._idle: LifoQueue[Worker] = LifoQueue()  # the last to finish goes first: processes are not started in vain
        for worker in self._workers:
            self._idle.put(worker)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    async def grade(
        self, *, gold: str, response: str, kind: Kind = "math", choices: Sequence[str] | None = None
    ) -> Grade:
        """Grade one response; may be called any number of times at once, from any event loop.

        An answer that breaks a limit or its process is not correct, and its reason says which: never an exception.
        Raises RSDError when no process can be started at all.
        """
        early = self._without_process(gold, response, kind, choices)
        if isinstance(early, Grade):
            return early
        return await asyncio.get_running_loop().run_in_executor(
            self._threads, self._judge, gold.strip(), early, kind, choices
        )

    def grade_now(
        self, *, gold: str, response: str, kind: Kind = "math", choices: Sequence[str] | None = None
    ) -> Grade:
        """`grade`, for callers without an event loop."""
        early = self._without_process(gold, response, kind, choices)
        return early if isinstance(early, Grade) else self._judge(gold.strip(), early, kind, choices)

    def equivalent(self, a: str, b: str) -> bool:
        """Whether two answers are equal; one that breaks a limit equals only its own text."""
        if a.strip() == b.strip():
            return True
        return self._first_equal(b, [a]) == 0

    async def first_equal(self, answer: str, others: Sequence[str]) -> int | None:
        """The index of the first of `others` that equals `answer`; None where none does. An answer that breaks a limit
        equals none, and is compared no further."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._first_equal, answer, others)

    def close(self) -> None:
        """End the processes at once; whoever still awaits a grade is cancelled."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for worker in self._workers:
            worker.close()

    def _without_process(self, gold: str, response: str, kind: Kind, choices: Sequence[str] | None) -> Grade | str:
        """The grade, where it takes no comparison; else the answer to compare."""
        extracted = self._extracted(response, kind, choices)
        if kind == "text":
            return Grade(False, extracted, "not graded")
        if not gold.strip():
            return Grade(False, extracted, "ungradable gold")
        if extracted is None or not extracted.strip():
            return Grade(False, extracted, "no answer")
        if extracted.strip() == gold.strip():
            return Grade(True, extracted, "equal")
        if kind == "math" and self._are_integers(extracted, gold):
            return Grade(False, extracted, "different")
        return extracted

    def _are_integers(self, *answers: str) -> bool:
        """Whether all are whole numbers as they are usually written, which are equal only where their texts are."""
        return self.name == "default" and all(INTEGER.fullmatch(answer.strip()) for answer in answers)

    def _extracted(self, response: str, kind: Kind, choices: Sequence[str] | None) -> str | None:
        if self.name == "reference":
            return reference_answer(response, kind)
        if self.name == "math_verify":
            return extract_boxed(response)
        if kind == "choice":
            return extract_choice(response, **({"count": len(choices)} if choices else {}))
        return extract_answer(response)

    def _judge(self, gold: str, answer: str, kind: Kind, choices: Sequence[str] | None) -> Grade:
        try:
            reason, understood = self._run(
                judge, self.name, gold=gold, answer=answer.strip(), kind=kind, choices=choices
            )
        except GradingError as error:
            return Grade(False, answer, error.reason)
        return Grade(reason == "equal", understood if kind == "choice" else answer, reason)

    def _first_equal(self, answer: str, others: Sequence[str]) -> int | None:
        if self._are_integers(answer, *others):
            return next((index for index, other in enumerate(others) if other.strip() == answer.strip()), None)
        sound = [index for index, other in enumerate(others) if other not in self._poisoned]
        if answer in self._poisoned or not sound:
            return None
        try:
            found = self._run(first_equal, self.name, answer, [others[index] for index in sound])
            return None if found is None else sound[found]
        except GradingError:
            if len(others) == 1 or self._breaks_a_limit(answer):
                self._poisoned |= {answer} if len(others) > 1 else set()
                return None
        for index in sound:  # one of the others does: each by itself
            if self._breaks_a_limit(others[index]):
                self._poisoned.add(others[index])
            elif self._first_equal(answer, [others[index]]) is not None:
                return index
        return None

    def _breaks_a_limit(self, answer: str) -> bool:
        try:
            self._run(first_equal, self.name, answer, ["0"])
        except GradingError:
            return True
        return False

    def _run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        worker = self._idle.get()
        try:
            return worker.run(function, *args, **kwargs)
        finally:
            self._idle.put(worker)
