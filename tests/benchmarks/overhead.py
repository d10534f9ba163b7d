"""What the harness itself costs: decided steps per second with models that answer at once.

Trajectories, the method, the runner and the records on disk are the real ones; nothing is computed by a network.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from rsd.engines.base import Completion, Context, Models, Reward, Sampling
from rsd.methods.decoding import Decoding, Limits, StepRule
from rsd.methods.rsd import RSD
from rsd.records import Problem, Usage
from rsd.weighting import Binary
from tests.benchmarks.figures import Figure, alternate
from tests.benchmarks.harness import whole_run

QUESTIONS = 500
STEPS = 5
STEP = tuple(range(2, 16))  # token ids of every step: 14 of them, as in tiny_chain
TEXT = "Tom has 2+301=303 books.\n\n"
EOS = 1


def measure() -> Iterator[Figure]:
    """Steps that were kept per second, a third of them the target's."""
    models = Models(draft=InstantPolicy(), target=InstantPolicy(), prm=InstantPRM())
    decoding = Decoding(temperature=0.0, top_p=1.0, limits=Limits(), step=StepRule(), seed=0)
    problems = [Problem(question_id=f"{i:012x}", question="How many?", answer="303") for i in range(QUESTIONS)]

    def speed() -> float:
        seconds, records = whole_run(RSD(weighting=Binary(delta=0.7)), models, decoding, problems)
        return sum(proposal.kept for record in records for proposal in record.proposals) / seconds

    (speeds,) = alternate(speed)
    yield Figure("harness with instant models", median(speeds), "decided steps/s", at_least=5000)


class InstantPolicy:
    """Writes the same step again and again, and EOS with the last of `STEPS`."""

    def prompt(self, question: str) -> tuple[int, ...]:
        return (2,) * 50

    async def generate(self, context: Context, sampling: Sampling) -> Completion:
        await asyncio.sleep(0)  # as a real engine, let the other questions ask before the answer comes
        last = len(context.response) == (STEPS - 1) * len(STEP)
        return Completion(
            text=TEXT.rstrip() if last else TEXT,
            token_ids=(*STEP[:-1], EOS) if last else STEP,
            logprob=-1.5,
            finish="eos" if last else "step",
            usage=Usage(generated=len(STEP), prompt=50 + len(context.response), cached=50, passes=len(STEP)),
        )


@dataclass
class InstantPRM:
    """Finds every third step wrong."""

    calls: int = 0

    async def score(self, question: str, steps: Sequence[str]) -> Reward:
        await asyncio.sleep(0)
        self.calls += 1
        return Reward(value=0.5 if self.calls % 3 == 0 else 0.9, usage=Usage(prompt=100, verified=14, passes=1))
