"""A million proposals read by `rsd.report.load`, from cold and again: time and memory, in a process of its own.

python -m tests.benchmarks.reports RESULTS    # seconds and GiB of reading the runs in a folder
"""

import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rsd.records import PolicyRole, Proposal, Record, Role, Usage
from tests.benchmarks.figures import Figure
from tests.stored import RSD, manifest, record, store

PROPOSALS = 1_000_000
RUNS, QUESTIONS, STEPS = 40, 500, 50  # of each run, and proposals of each question
TOKENS, TEXT = 40, "So the sum of the first $n$ terms is $\\frac{n(n+1)}{2}$, which we need to be less than 2026.\n\n"


def measure() -> Iterator[Figure]:
    """Reading runs, solutions and proposals; the machine may be busy with nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder))
        for name, most in (("from cold", 60), ("again, from the cache", None)):
            command = [sys.executable, "-m", "tests.benchmarks.reports", folder]
            told = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
            read, seconds, gib = int(told[0]), float(told[1]), float(told[2])
            assert read == PROPOSALS
            yield Figure(f"Reports: {PROPOSALS:,} proposals {name}", seconds, "s", at_most=most)
            yield Figure(f"Reports: {PROPOSALS:,} proposals {name}, memory", gib, "GiB", at_most=4)


def generate(results: Path) -> None:
    """Runs of RSD at several thresholds, with as many proposals of a length like real models'."""
    for number in range(RUNS):
        delta = number / RUNS
        draw = random.Random(number)
        told = manifest(f"benchmark_{number % 4}", QUESTIONS, settings={**RSD, "delta": delta})
        right = {f"q{i}" for i in range(QUESTIONS) if draw.random() < 0.7}
        store(results, f"rsd-{number}", (_record(f"q{i}", delta, draw) for i in range(QUESTIONS)), right, told)


def _record(question: str, delta: float, draw: random.Random) -> Record:
    proposals = []
    step, context = 0, 120
    while len(proposals) < STEPS:
        reward = draw.random() ** 0.3
        usage = {
            "draft": Usage(generated=TOKENS, prompt=context, cached=context - 1, passes=TOKENS),
            "prm": Usage(prompt=context + TOKENS, cached=context, verified=TOKENS, passes=1),
        }
        proposals.append(_proposal("draft", step, usage, draw, reward=reward, accepted=reward >= delta))
        if reward < delta and len(proposals) < STEPS:
            usage = {"target": Usage(generated=TOKENS, prompt=context, cached=context - 1, passes=TOKENS)}
            proposals.append(_proposal("target", step, usage, draw))
        step, context = step + 1, context + TOKENS
    return record(question, *proposals)


def _proposal(origin: PolicyRole, step: int, usage: dict[Role, Usage], draw: random.Random, **values: Any) -> Proposal:
    told = {"reward": None, "accepted": None, **values}
    return Proposal(
        step=step, origin=origin, kept=told["accepted"] is not False, finish="step", text=TEXT, usage=usage,
        token_ids=tuple(draw.choices(range(150_000), k=TOKENS)), omega=1.0, logprob_draft=-draw.random(),
        t0=float(step), t1=step + draw.random(), **told,
    )  # fmt: skip


def main(results: str) -> None:
    """Read everything that there is, and print the number of proposals, seconds and GiB."""
    began = time.perf_counter()
    from rsd.report import load

    frames = [load(results, rows=rows) for rows in ("runs", "solutions", "proposals")]
    seconds = time.perf_counter() - began
    print(len(frames[-1]), seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)


if __name__ == "__main__":
    main(sys.argv[1])
