"""Policies that draw whole steps from known distributions, and the test of what a method made of them::

found = draws(RSD(weighting=Constant(p=0.5)), models, count=20_000)
assert fit(Counter(...), mixture(omega, draft, target)) > SIGNIFICANCE
"""

import asyncio
import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

import numpy as np
from scipy.stats import chisquare

from rsd.engines.base import Completion, Context, Logprobs, Models, Sampling
from rsd.methods.base import Method
from rsd.methods.decoding import Decoding, Limits, StepRule
from rsd.methods.trajectory import Trajectory
from rsd.records import PolicyRole, Problem, Usage

SIGNIFICANCE = 1e-3  # the seeds are fixed, so a test that passes does so each time
Distribution = Mapping[str, float]
Written = tuple[tuple[PolicyRole, str], ...]  # who wrote each kept step, and the step
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class CategoricalPolicy:
    """Draws its next step from ``steps[response so far]`` with the request's own seed, a token per character."""

    steps: Mapping[str, Distribution]

    def prompt(self, question: str) -> tuple[int, ...]:
        return (1,)

    async def generate(self, context: Context, sampling: Sampling) -> Completion:
        known = self.steps[_text(context.response)]
        text = Random(sampling.seed).choices(list(known), list(known.values()))[0]
        assert len(text) <= sampling.max_tokens
        return Completion(
            text=text,
            token_ids=tuple(map(ord, text)),
            logprob=math.log(known[text]),
            finish="step" if text.endswith("\n\n") else "length",
            usage=Usage(generated=len(text), prompt=1 + len(context.response), passes=len(text)),
        )

    async def logprobs(self, context: Context, continuation: Sequence[int]) -> Logprobs:
        share = self.steps[_text(context.response)].get(_text(continuation), 0.0)
        value = math.log(share) / len(continuation) if share else -math.inf
        return Logprobs(values=(value,) * len(continuation), usage=Usage(verified=len(continuation), passes=1))


def draws(method: Method, models: Models, *, count: int, **limits: int) -> Counter[Written]:
    """How often each response came out of `count` questions, each with its own id, at temperature 1."""
    decoding = Decoding(temperature=1.0, top_p=1.0, limits=Limits(**{"steps": 1, **limits}), step=StepRule(), seed=0)

    async def solve() -> Counter[Written]:
        found: Counter[Written] = Counter()
        for number in range(count):
            problem = Problem(question_id=str(number), question="How many?", answer="6")
            trajectory = Trajectory(problem, 0, models=models, decoding=decoding, clock=lambda: 0.0)
            await method.solve(trajectory)
            found[tuple((p.origin, p.text) for p in trajectory.solution().proposals if p.kept)] += 1
        return found

    return asyncio.run(solve())


def first_steps(found: Mapping[Written, int]) -> Counter[str]:
    """How often each step came first, whoever wrote it."""
    counts: Counter[str] = Counter()
    for written, count in found.items():
        counts[written[0][1]] += count
    return counts


def rejected(omega: Mapping[K, float], draft: Mapping[K, float]) -> float:
    """ν = 1 - E_{P_m}[ω], the share of steps that the target writes."""
    return 1.0 - math.fsum(omega[step] * share for step, share in draft.items())


def mixture(omega: Mapping[K, float], draft: Mapping[K, float], target: Mapping[K, float]) -> dict[K, float]:
    """P_RSD(y) = ω(y) P_m(y) + ν P_M(y)."""
    nu = rejected(omega, draft)
    return {
        step: omega.get(step, 0.0) * draft.get(step, 0.0) + nu * target.get(step, 0.0)
        for step in dict.fromkeys([*draft, *target])
    }


def fit(counts: Mapping[K, int], expected: Mapping[K, float]) -> float:
    """p-value of the chi-square test that `counts` were drawn from `expected`; 0 where the impossible came out."""
    possible = [outcome for outcome, share in expected.items() if share > 0]
    total = sum(counts.values())
    if total > sum(counts.get(outcome, 0) for outcome in possible):
        return 0.0
    shares = np.array([expected[outcome] for outcome in possible])
    assert abs(shares.sum() - 1) < 1e-9, "the expected shares are no distribution"
    assert shares.min() * total >= 5, "a cell is too rare for chi-square"
    observed = [counts.get(outcome, 0) for outcome in possible]
    return float(chisquare(observed, shares / shares.sum() * total).pvalue)


def _text(ids: Sequence[int]) -> str:
    return "".join(map(chr, ids))
