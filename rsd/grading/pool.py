r"""Grade responses from asyncio, as many at once as there are worker processes::

    with Grader(workers=2, time_limit=5.0) as grader:
        grade = await grader.grade(gold="7", response=r"... \boxed{7}")  # Grade(correct=True, ...)

Only answers that differ from the gold as text go to a process.
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import LifoQueue
from typing import Self

from rsd.grading.classes import answer_classes
from rsd.grading.extract import extract_boxed
from rsd.grading.worker import Reason, Worker


@dataclass(frozen=True, slots=True)
class Grade:
    """Whether a response is right, the answer that it gave (None: no balanced box), and why."""

    correct: bool
    extracted: str | None
    reason: Reason


class Grader:
    """Worker processes that grade responses; golds and responses are both untrusted.

    `time_limit` is in seconds per comparison, `memory_limit` in bytes of address space per process. A process starts
    when first needed. Close the grader, or use it as a context manager.
    """

    def __init__(self, workers: int = 1, time_limit: float = 5.0, memory_limit: int = 2 * 2**30) -> None:
        self._workers = [Worker(time_limit, memory_limit) for _ in range(workers)]
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="grading")
        self._idle: LifoQueue[Worker] = LifoQueue()  # the last to finish goes first: processes are not started in vain
        for worker in self._workers:
            self._idle.put(worker)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    async def grade(self, *, gold: str, response: str) -> Grade:
        """Grade one response; may be called any number of times at once, from any event loop.

        An answer that breaks a limit or its process is not correct, and its reason says which: never an exception.
        Raises RSDError when no process can be started at all.
        """
        gold = gold.strip()
        extracted = extract_boxed(response)
        if not gold:
            return Grade(False, extracted, "ungradable gold")
        answer = (extracted or "").strip()
        if not answer:
            return Grade(False, extracted, "no answer")
        if answer == gold:
            return Grade(True, extracted, "equal")
        reason = await asyncio.get_running_loop().run_in_executor(self._threads, self._compare, gold, answer)
        return Grade(reason == "equal", extracted, reason)

    async def classes(self, answers: Sequence[str | None]) -> list[int | None]:
        """Sort the answers of one question into classes (`answer_classes`); two that break a limit are not equal."""

        def equal(a: str, b: str) -> bool:
            return self._compare(a, b) == "equal"

        return await asyncio.get_running_loop().run_in_executor(self._threads, answer_classes, answers, equal)

    def close(self) -> None:
        """End the processes at once; whoever still awaits a grade is cancelled."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for worker in self._workers:
            worker.close()

    def _compare(self, gold: str, answer: str) -> Reason:
        worker = self._idle.get()
        try:
            return worker.compare(gold, answer)
        finally:
            self._idle.put(worker)
