"""`python -m rsd.report` of a million proposals, from cold and again: time and memory of its process.

The runs are those of Table 2 for the tiny family, with proposals in number and length like those of large models.
"""

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import orjson

from rsd.manifest import write_manifest
from rsd.plan import Plan, make_plan
from rsd.records import Problem, Proposal, Record, dump
from tests.benchmarks.figures import Figure
from tests.conftest import compose_config
from tests.stored import SHAPES, proposal, record

PROPOSALS = 1_000_000
MODELS, PRMS, BENCHMARKS, DELTAS = ("tiny", "tiny_l"), ("tiny_s", "tiny_m"), ("tiny_chain", "tiny_story"), (6, 7, 8, 9)
TOKENS, TEXT = 40, "So the sum of the first $n$ terms is $\\frac{n(n+1)}{2}$, which we need to be less than 2026.\n\n"


def measure() -> Iterator[Figure]:
    """Every table and figure, each time by a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder))
        for name, most in (("from cold", 60), ("again, from the cache", None)):
            began = time.perf_counter()
            command = [sys.executable, "-m", "rsd.report", "--results", folder]
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            _, status, used = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - began
            assert os.waitstatus_to_exitcode(status) == 0, "the report failed"
            yield Figure(f"Report of {PROPOSALS:,} proposals {name}", seconds, "s", at_most=most)
            yield Figure(f"Report of {PROPOSALS:,} proposals {name}, memory", used.ru_maxrss / 2**20, "GiB", at_most=4)


def generate(results: Path) -> None:
    """Write the runs below `results`."""
    runs = list(product(MODELS, PRMS, BENCHMARKS, DELTAS))
    for number, (model, prm, benchmark, tenths) in enumerate(runs):
        words = f"model={model}", f"prm={prm}", f"benchmark={benchmark}", f"delta={tenths / 10}"
        plan = make_plan(compose_config(*words, f"results_dir={results}"))
        share = PROPOSALS * (number + 1) // len(runs) - PROPOSALS * number // len(runs)
        _write(plan, share, random.Random(number))


def _write(plan: Plan, proposals: int, draw: random.Random) -> None:
    """A run of `proposals`, spread over its questions."""
    plan.folder.mkdir(parents=True)
    write_manifest(plan, SHAPES, [])
    assert plan.delta is not None
    questions = len(plan.problems)
    with (plan.folder / "records.jsonl").open("wb") as records, (plan.folder / "grades.jsonl").open("wb") as grades:
        for number, problem in enumerate(plan.problems):
            share = proposals * (number + 1) // questions - proposals * number // questions
            records.write(dump(_record(problem, share, plan.delta, draw)) + b"\n")
            grade = {"question_id": problem.question_id, "sample": 0, "correct": draw.random() < 0.7}
            grades.write(orjson.dumps({**grade, "extracted": "1", "reason": "equal", "answer_class": 0}) + b"\n")


def _record(problem: Problem, proposals: int, delta: float, draw: random.Random) -> Record:
    made: list[Proposal] = []
    while len(made) < proposals:
        reward, now = draw.random() ** 0.3, float(len(made))
        tokens = tuple(draw.choices(range(150_000), k=TOKENS))
        told = {"token_ids": tokens, "text": TEXT, "step": len(made), "t0": now, "t1": now + draw.random()}
        if made and made[-1].accepted is False:
            made.append(proposal("target", TOKENS, **told))
        else:
            made.append(proposal("draft", TOKENS, reward, reward >= delta, omega=float(reward >= delta), **told))
    return record(problem.question_id, *made)
