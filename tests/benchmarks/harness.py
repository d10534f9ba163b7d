"""A whole run as `rsd.run` makes it, records on disk included, with grading that answers at once."""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rsd.engines.base import Models
from rsd.grading.pool import Grade
from rsd.lock import RunLock
from rsd.methods.base import Method
from rsd.methods.decoding import Decoding
from rsd.records import Problem, Record
from rsd.runner import Runner, Told, decoder
from rsd.store import JsonLines, read_records


class InstantGrader:
    """Finds everything right. Grading has processes of its own and is not what is measured."""

    async def grade(self, *, gold: str, response: str, kind: str, choices: Sequence[str] | None) -> Grade:
        return Grade(True, gold, "equal")

    async def first_equal(self, answer: str, others: Sequence[str]) -> int | None:
        raise AssertionError("one sample of a question has nothing to be compared with")


def whole_run(
    method: Method, models: Models, decoding: Decoding, problems: Sequence[Problem], concurrency: int | None = None
) -> tuple[float, list[Record]]:
    """Seconds of the run, `concurrency` or all questions in flight, and its records in the order of `problems`."""
    return asyncio.run(run(method, models, decoding, problems, concurrency))


async def run(
    method: Method,
    models: Models,
    decoding: Decoding,
    problems: Sequence[Problem],
    concurrency: int | None = None,
    told: Told = lambda record, grade: None,
) -> tuple[float, list[Record]]:
    """As `whole_run`, by the clock of the event loop that it runs in."""
    with (
        tempfile.TemporaryDirectory() as name,
        RunLock(Path(name) / "lock.json") as lock,
        JsonLines(Path(name) / "records.jsonl") as records,
        JsonLines(Path(name) / "grades.jsonl") as grades,
    ):
        runner = Runner(
            solver=decoder(method, models, decoding),
            seed=decoding.seed,
            grader=InstantGrader(),
            records=records,
            grades=grades,
            lock=lock,
            invocation=1,
            concurrency=concurrency,
            told=told,
        )
        clock = asyncio.get_running_loop().time
        began = clock()
        await runner.run([(problem, 0) for problem in problems])
        seconds = clock() - began
        found = read_records(Path(name))
    return seconds, [found[problem.question_id, 0] for problem in problems]
