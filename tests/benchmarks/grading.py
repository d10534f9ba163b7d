"""Grading: ordinary responses a second with two worker processes; answer classes of maj@64 over 500 questions."""

import asyncio
import json
import random
import time
from collections.abc import Iterator

from rsd.grading import Grader
from rsd.grading.classes import AnswerClasses
from tests.benchmarks.figures import Figure
from tests.conftest import SHARED

QUESTIONS, SAMPLES = 500, 64


def measure() -> Iterator[Figure]:
    """Both, the start of the processes excluded."""
    with Grader(workers=2) as grader:
        asyncio.run(_warm(grader))
        yield Figure("Grading: responses to MATH questions, two processes", _responses(grader), "1/s", at_least=500)
        seconds = asyncio.run(_classes(grader))
        yield Figure(f"Grading: classes of {SAMPLES} answers to {QUESTIONS} questions", seconds, "s", at_most=180)


async def _warm(grader: Grader) -> None:
    await asyncio.gather(
        *(grader.grade(gold="0.5", response=rf"\boxed{{\frac{{{n}}}{{{2 * n}}}}}") for n in range(1, 50))
    )


def _responses(grader: Grader) -> float:
    """Responses a second: 400 real ones, twice over with golds written otherwise so that none is decided as text."""
    rows = [json.loads(line) for line in (SHARED / "grading/responses.jsonl").read_text().splitlines()]
    jobs = [(row["gold"], row["response"]) for row in rows] + [(f"{{{row['gold']}}}", row["response"]) for row in rows]

    async def grade_all() -> float:
        began = time.perf_counter()
        await asyncio.gather(*(grader.grade(gold=gold, response=response) for gold, response in jobs))
        return time.perf_counter() - began

    return len(jobs) / asyncio.run(grade_all())


async def _classes(grader: Grader) -> float:
    """Seconds: answers of each question are its gold in several forms, and wrong ones, twelve different in all."""
    golds = [json.loads(line)["answer"] for line in (SHARED / "benchmarks/math500.jsonl").read_text().splitlines()]
    classes, draw = AnswerClasses(grader.first_equal), random.Random(0)
    began = time.perf_counter()

    async def one(number: int) -> None:
        gold = golds[number]
        forms = [gold, f"${gold}$", rf"{{{gold}}}", gold.replace(r"\frac", r"\dfrac"), *(f"{k}" for k in range(4)),
                 *(rf"\frac{{{number + k}}}{{7}}" for k in range(4))]  # fmt: skip
        for answer in draw.choices(forms, k=SAMPLES):
            await classes.place(str(number), answer)

    await asyncio.gather(*map(one, range(QUESTIONS)))
    return time.perf_counter() - began
