"""Table 1's weighting functions and the acceptance criterion."""

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsd.weighting import (
    Binary,
    Clipping,
    Constant,
    Evidence,
    LikelihoodRatio,
    Logistic,
    RewardRatio,
    Sigmoidal,
    Weighting,
    decide,
)

ALL: list[Weighting] = [
    Binary(delta=0.7),
    Constant(p=0.6),
    Clipping(),
    Sigmoidal(),
    Logistic(alpha=1.0, delta=0.6),
]


@pytest.mark.parametrize(
    ("weighting", "reward", "omega"),
    [
        (Binary(delta=0.7), 0.7, 1.0),
        (Binary(delta=0.7), 0.6999999999, 0.0),
        (Constant(p=0.6), 0.1, 0.6),
        (Clipping(), -3.0, 0.0),
        (Clipping(), 0.25, 0.25),
        (Clipping(), 7.0, 1.0),
        (Sigmoidal(), 0.5, 1 / 3),
        (Sigmoidal(), -0.5, 0.0),
        (Sigmoidal(), -2.0, 0.0),  # r / (1 + r) is 2 there, which is no weight
        (Logistic(alpha=1.0, delta=0.6), 0.6, 0.5),
        (Logistic(alpha=1.0, delta=0.6), 1.0, 1 / (1 + math.exp(-0.4))),
        (Logistic(alpha=10.0, delta=0.6), 0.5, 1 / (1 + math.exp(1.0))),
    ],
)
def test_table_1(weighting: Weighting, reward: float, omega: float) -> None:
    assert weighting.omega(Evidence(reward=reward)) == pytest.approx(omega, abs=1e-15)


@pytest.mark.parametrize("weighting", ALL, ids=lambda w: type(w).__name__)
@given(a=st.floats(allow_nan=False, allow_infinity=False), b=st.floats(allow_nan=False, allow_infinity=False))
def test_every_weight_is_a_probability_and_does_not_fall_with_the_reward(
    weighting: Weighting, a: float, b: float
) -> None:
    low, high = sorted((a, b))
    assert 0.0 <= weighting.omega(Evidence(reward=low)) <= weighting.omega(Evidence(reward=high)) <= 1.0


@given(st.floats(0, 1), st.floats(0, 1, exclude_max=True))
def test_certain_weights_draw_no_number(p: float, u: float) -> None:
    verdict = decide(Constant(p=p), Evidence(reward=0.5), u)
    if p in (0.0, 1.0):
        assert (verdict.accepted, verdict.u) == (p == 1.0, None)
    else:
        assert (verdict.accepted, verdict.u) == (u <= p, u)


def test_the_share_of_accepted_steps_is_omega() -> None:
    rng = Random(0)
    accepted = sum(decide(Constant(p=0.3), Evidence(), rng.random()).accepted for _ in range(20_000))
    assert accepted / 20_000 == pytest.approx(0.3, abs=4 * math.sqrt(0.3 * 0.7 / 20_000))


def test_without_a_reward_only_a_weighting_that_reads_none_may_reject() -> None:
    for weighting in ALL:
        if weighting.reads_reward:
            assert decide(weighting, Evidence(), 0.99).accepted
    assert not decide(Constant(p=0.6), Evidence(), 0.99).accepted


@pytest.mark.parametrize(
    ("weighting", "evidence", "omega"),
    [
        (LikelihoodRatio(alpha=1.0, normalised=False), Evidence(log_ratio=math.log(0.25), tokens=2), 0.25),
        (LikelihoodRatio(alpha=1.0, normalised=True), Evidence(log_ratio=math.log(0.25), tokens=2), 0.5),
        (LikelihoodRatio(alpha=3.0, normalised=False), Evidence(log_ratio=math.log(0.25)), 0.75),
        (LikelihoodRatio(alpha=1.0, normalised=False), Evidence(log_ratio=5000.0), 1.0),
        (LikelihoodRatio(alpha=1.0, normalised=False), Evidence(log_ratio=-5000.0), 0.0),
        (RewardRatio(beta=1.0, normalised=False), Evidence(reward=0.5, log_ratio=math.log(0.5)), 0.25),
        (RewardRatio(beta=4.0, normalised=True), Evidence(reward=0.5, log_ratio=math.log(0.0625), tokens=4), 1.0),
        (RewardRatio(beta=1.0, normalised=False), Evidence(reward=0.0, log_ratio=5.0), 0.0),
        (RewardRatio(beta=1.0, normalised=False), Evidence(reward=-1.0, log_ratio=5.0), 0.0),
    ],
)
def test_the_ratios_of_section_2_4(weighting: Weighting, evidence: Evidence, omega: float) -> None:
    assert weighting.omega(evidence) == pytest.approx(omega, rel=1e-12)


def test_eos_alone_is_accepted_by_what_reads_the_reward_and_decided_by_what_reads_likelihoods() -> None:
    eos = Evidence(log_ratio=math.log(0.5))
    assert decide(RewardRatio(beta=1.0, normalised=False), eos, 0.99).accepted
    assert not decide(LikelihoodRatio(alpha=1.0, normalised=False), eos, 0.99).accepted


def test_a_ratio_that_nobody_measured_is_an_error_and_no_verdict() -> None:
    with pytest.raises(ValueError, match="no probability"):
        decide(LikelihoodRatio(alpha=1.0, normalised=False), Evidence(), 0.5)
