"""The step that RSD keeps is distributed as P_RSD = ω P_m + ν P_M with ν = 1 - E_{P_m}[ω], for every ω."""

import math
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import pytest
from omegaconf import OmegaConf

from rsd.engines.base import Models
from rsd.methods.rsd import RSD
from rsd.weighting import (
    Binary,
    Clipping,
    Constant,
    LikelihoodRatio,
    Logistic,
    RewardRatio,
    Sigmoidal,
    Weighting,
)
from tests.categorical import SIGNIFICANCE, CategoricalPolicy, draws, first_steps, fit, mixture, rejected
from tests.conftest import ROOT
from tests.toys import ScriptedPRM

REWARD = {"n\n\n": -0.5, "oh\n\n": 0.2, "hm\n\n": 0.65, "so\n\n": 0.7, "it is 6\n\n": 0.9, "6\n\n": 1.3}
DRAFT = dict(zip(REWARD, (0.15, 0.25, 0.20, 0.15, 0.15, 0.10), strict=True))
TARGET = dict(zip(REWARD, (0.05, 0.10, 0.15, 0.20, 0.20, 0.30), strict=True))


class Case(NamedTuple):
    """`omega`: the weight as the paper prints it, of a step's reward, P_M/P_m and number of tokens."""

    weighting: Weighting
    omega: Callable[[float, float, int], float]


CASES = [
    Case(Binary(delta=0.7), lambda r, ratio, n: float(r >= 0.7)),
    Case(Constant(p=0.6), lambda r, ratio, n: 0.6),
    Case(Clipping(), lambda r, ratio, n: min(1, max(0, r))),
    Case(Sigmoidal(), lambda r, ratio, n: max(0, r / (1 + r))),
    Case(Logistic(alpha=4.0, delta=0.6), lambda r, ratio, n: 1 / (1 + math.exp(-4 * (r - 0.6)))),
    Case(LikelihoodRatio(alpha=0.5, normalised=False), lambda r, ratio, n: min(1, 0.5 * ratio)),
    Case(LikelihoodRatio(alpha=0.7, normalised=True), lambda r, ratio, n: min(1, 0.7 * ratio ** (1 / n))),
    Case(RewardRatio(beta=1.5, normalised=False), lambda r, ratio, n: min(1, max(0, 1.5 * r * ratio))),
    Case(RewardRatio(beta=0.8, normalised=True), lambda r, ratio, n: min(1, max(0, 0.8 * r * ratio ** (1 / n)))),
]


def name(case: Case) -> str:
    return RSD(weighting=case.weighting).name.removeprefix("rsd ").replace(" ", "-")


def test_every_weighting_function_that_can_be_chosen_is_proven_here() -> None:
    proven = {f"rsd.weighting.{type(case.weighting).__name__}" for case in CASES}
    chosen = {OmegaConf.load(path)._target_ for path in (ROOT / "conf" / "weighting").glob("*.yaml")}
    assert chosen == proven


@pytest.mark.parametrize("case", CASES, ids=name)
def test_the_first_step_is_distributed_as_the_mixture(case: Case) -> None:
    omega = {step: case.omega(REWARD[step], TARGET[step] / DRAFT[step], len(step)) for step in REWARD}
    found = draws(
        RSD(weighting=case.weighting),
        Models(
            draft=CategoricalPolicy({"": DRAFT}),
            target=CategoricalPolicy({"": TARGET}),
            prm=ScriptedPRM(REWARD.__getitem__),
        ),
        count=20_000,
    )
    steps = first_steps(found)
    assert fit(steps, mixture(omega, DRAFT, TARGET)) > SIGNIFICANCE
    assert fit(steps, DRAFT) < SIGNIFICANCE
    assert fit(steps, TARGET) < SIGNIFICANCE

    # and each of the two terms by itself: a step is the draft's own with ω P_m, the target's with ν P_M
    nu = rejected(omega, DRAFT)
    terms = {("draft", step): omega[step] * DRAFT[step] for step in REWARD}
    terms |= {("target", step): nu * TARGET[step] for step in REWARD}
    assert fit(Counter({written[0]: count for written, count in found.items()}), terms) > SIGNIFICANCE


def test_every_later_step_is_distributed_as_the_mixture_after_what_was_kept() -> None:
    """Two steps, whose second distributions differ with the first step: P_RSD(y1) P_RSD(y2 | y1)."""
    reward = {"good\n\n": 0.9, "fair\n\n": 0.5, "poor\n\n": 0.1}
    draft = {"": (0.2, 0.3, 0.5), "good\n\n": (0.5, 0.3, 0.2), "fair\n\n": (0.3, 0.4, 0.3), "poor\n\n": (0.1, 0.2, 0.7)}
    target = {
        "": (0.5, 0.3, 0.2),
        "good\n\n": (0.8, 0.1, 0.1),
        "fair\n\n": (0.4, 0.4, 0.2),
        "poor\n\n": (0.3, 0.2, 0.5),
    }
    policies = [
        {so_far: dict(zip(reward, shares, strict=True)) for so_far, shares in table.items()}
        for table in (draft, target)
    ]
    models = Models(
        draft=CategoricalPolicy(policies[0]),
        target=CategoricalPolicy(policies[1]),
        prm=ScriptedPRM(reward.__getitem__),
    )
    found = draws(RSD(weighting=Clipping()), models, count=10_000, steps=2)
    pairs: Counter[tuple[str, str]] = Counter()
    for ((_, one), (_, two)), count in found.items():
        pairs[one, two] += count
    step = {so_far: mixture(reward, policies[0][so_far], policies[1][so_far]) for so_far in policies[0]}
    expected = {(one, two): step[""][one] * step[one][two] for one in reward for two in reward}
    assert fit(pairs, expected) > SIGNIFICANCE
