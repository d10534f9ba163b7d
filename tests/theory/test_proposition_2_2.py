"""Proposition 2.2: a target that is better on average makes RSD better than its draft, by any non-decreasing ω.

What RSD gains over its draft is, exactly, what ω selects and what the target adds::

    E_RSD[r] - E_m[r] = Cov_m(ω, r) + (1 - E_m[ω]) (E_M[r] - E_m[r])
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

from hypothesis import assume, given
from hypothesis import strategies as st

from rsd.weighting import Binary, Clipping, Constant, Evidence, Logistic, Sigmoidal, Weighting
from tests.categorical import Distribution, mixture

finite = st.floats(-5, 5)
WEIGHTINGS: st.SearchStrategy[Weighting] = st.one_of(
    finite.map(lambda delta: Binary(delta=delta)),
    st.floats(0, 1).map(lambda p: Constant(p=p)),
    st.just(Clipping()),
    st.just(Sigmoidal()),
    st.builds(lambda alpha, delta: Logistic(alpha=alpha, delta=delta), st.floats(0.1, 20), finite),
)


class Context(NamedTuple):
    """One context: each step's reward, and its probability under draft and target."""

    reward: Mapping[str, float]
    draft: Distribution
    target: Distribution


def expectation(values: Mapping[str, float], distribution: Distribution) -> float:
    return math.fsum(values[step] * share for step, share in distribution.items())


@st.composite
def contexts(draw: st.DrawFn) -> Context:
    """Two to six steps; their shares may be anything, zero included."""
    names = "abcdef"[: draw(st.integers(2, 6))]

    def shares() -> dict[str, float]:
        weights = [draw(st.integers(0, 100)) for _ in names]
        assume(sum(weights) > 0)
        return {step: weight / sum(weights) for step, weight in zip(names, weights, strict=True)}

    return Context({step: draw(finite) for step in names}, shares(), shares())


def weights(weighting: Weighting, reward: Mapping[str, float]) -> dict[str, float]:
    return {step: weighting.omega(Evidence(reward=value)) for step, value in reward.items()}


def gain(omega: Mapping[str, float], context: Context) -> float:
    """E_RSD[r] - E_m[r], from the distribution of RSD's steps."""
    reward, draft, target = context
    return expectation(reward, mixture(omega, draft, target)) - expectation(reward, draft)


@given(contexts(), st.data())
def test_the_gain_is_what_omega_selects_and_what_the_target_adds(context: Context, data: st.DataObject) -> None:
    reward, draft, target = context
    omega = {step: data.draw(st.floats(0, 1)) for step in reward}  # any ω at all, monotone or not
    products = {step: omega[step] * reward[step] for step in reward}
    covariance = expectation(products, draft) - expectation(omega, draft) * expectation(reward, draft)
    added = expectation(reward, target) - expectation(reward, draft)
    assert abs(gain(omega, context) - (covariance + (1 - expectation(omega, draft)) * added)) < 1e-9


@given(contexts(), WEIGHTINGS)
def test_rsd_is_no_worse_than_its_draft_where_the_target_is_not(context: Context, weighting: Weighting) -> None:
    assume(expectation(context.reward, context.target) >= expectation(context.reward, context.draft))
    assert gain(weights(weighting, context.reward), context) >= -1e-9


@given(contexts(), st.lists(st.floats(0, 1), min_size=6, max_size=6).map(sorted))
def test_so_it_is_with_every_non_decreasing_weight(context: Context, ladder: list[float]) -> None:
    assume(expectation(context.reward, context.target) >= expectation(context.reward, context.draft))
    values = sorted(set(context.reward.values()))
    omega = {step: ladder[values.index(value)] for step, value in context.reward.items()}
    assert gain(omega, context) >= -1e-9


def test_both_conditions_are_needed() -> None:
    reward, draft = {"a": 0.0, "b": 1.0}, {"a": 0.5, "b": 0.5}
    falling = {"a": 1.0, "b": 0.0}
    assert gain(falling, Context(reward, draft, target=draft)) < 0
    worse = {"a": 1.0, "b": 0.0}
    assert gain(weights(Constant(p=0.5), reward), Context(reward, draft, target=worse)) < 0
