"""likelihood_ratio with α = 1 accepts as speculative sampling does, and yet RSD does not sample from P_M.

Speculative sampling draws a rejected token from the residual (P_M - P_m)₊, RSD a rejected step from P_M itself::

    P_RSD = min(P_m, P_M) + ν P_M,   ν = Σ (P_m - P_M)₊

With ``fallback=residual`` the second term is what P_M lacks, and steps of one token come from P_M.
"""

import math
from collections.abc import Mapping

import pytest

from rsd.engines.base import Models
from rsd.methods.rsd import RSD
from rsd.weighting import Evidence, LikelihoodRatio
from tests.categorical import SIGNIFICANCE, CategoricalPolicy, draws, first_steps, fit, mixture, rejected

DRAFT = {"a": 0.4, "b": 0.3, "c": 0.2, "d": 0.1}  # d is the draft's alone, e the target's
TARGET = {"a": 0.1, "b": 0.3, "c": 0.45, "e": 0.15}
OVERLAP = {"a": 0.1, "b": 0.3, "c": 0.2, "d": 0.0, "e": 0.0}  # min(P_m, P_M), 0.6 in all
WITH_FALLBACK_TO_TARGET = {"a": 0.14, "b": 0.42, "c": 0.38, "d": 0.0, "e": 0.06}
SPECULATIVE = LikelihoodRatio(alpha=1.0, normalised=False)


def omega() -> dict[str, float]:
    """ω of each step that the draft may write."""
    ratio = {step: math.log(TARGET[step] / share) if step in TARGET else -math.inf for step, share in DRAFT.items()}
    return {step: SPECULATIVE.omega(Evidence(log_ratio=value)) for step, value in ratio.items()}


def tokens_of(method: RSD) -> Mapping[str, int]:
    models = Models(draft=CategoricalPolicy({"": DRAFT}), target=CategoricalPolicy({"": TARGET}))
    return first_steps(draws(method, models, count=20_000, step_tokens=1))


def test_in_closed_form_the_fallback_to_the_target_is_not_the_target() -> None:
    assert {step: omega()[step] * share for step, share in DRAFT.items()} == pytest.approx(
        {step: OVERLAP[step] for step in DRAFT}
    )
    assert rejected(omega(), DRAFT) == pytest.approx(0.4)
    assert mixture(omega(), DRAFT, TARGET) == pytest.approx(WITH_FALLBACK_TO_TARGET)
    assert pytest.approx({**TARGET, "d": 0.0}) != WITH_FALLBACK_TO_TARGET


def test_in_closed_form_the_residual_makes_up_for_what_was_rejected() -> None:
    lacking = {step: max(share - DRAFT.get(step, 0.0), 0.0) for step, share in TARGET.items()}
    residual = {step: share / sum(lacking.values()) for step, share in lacking.items()}
    assert mixture(omega(), DRAFT, residual) == pytest.approx({**TARGET, "d": 0.0})


def test_rsd_draws_tokens_from_its_own_mixture_and_not_from_the_target() -> None:
    tokens = tokens_of(RSD(weighting=SPECULATIVE))
    assert fit(tokens, WITH_FALLBACK_TO_TARGET) > SIGNIFICANCE
    assert fit(tokens, TARGET) < SIGNIFICANCE


def test_with_the_residual_its_tokens_are_the_targets() -> None:
    tokens = tokens_of(RSD(weighting=SPECULATIVE, fallback="residual"))
    assert fit(tokens, TARGET) > SIGNIFICANCE
    assert fit(tokens, WITH_FALLBACK_TO_TARGET) < SIGNIFICANCE
