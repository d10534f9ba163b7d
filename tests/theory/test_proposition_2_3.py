"""Proposition 2.3: in one context, the best ω under a budget ν <= γ of target calls is a threshold on the reward.

With R = E_M[r] and q the γ-quantile of r under P_m, ω is 1 above δ = min(R, q) and 0 below. Where q < R, steps of
reward q itself are kept at random such that ν = γ; else no more steps are worse than R than the budget pays for.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rsd.weighting import Binary, Evidence
from tests.thresholds import SOLVED, Steps, contexts, cut, instance, optimum, quantile


@settings(deadline=None)
@given(contexts(1), st.floats(0, 1))
def test_in_one_context_the_best_weight_is_a_threshold(steps: Steps, budget: float) -> None:
    worth = float(steps.alternative[0])
    q = quantile(steps, steps.reward, budget)
    omega = cut(steps, steps.reward, min(worth, q), budget)
    assert steps.calls(omega) <= budget + 1e-9
    if q < worth:
        assert steps.calls(omega) == pytest.approx(budget, abs=1e-9)
    assert steps.value(omega) == pytest.approx(optimum(steps, budget), abs=SOLVED)


@settings(deadline=None)
@given(contexts(1), st.integers(0, 10))
def test_where_the_budget_is_slack_binary_with_the_targets_own_reward_is_best(steps: Steps, tenth: int) -> None:
    """No step is kept at random there, even at r = R, where both are worth the same."""
    steps = steps._replace(alternative=steps.alternative * 0 + tenth / 10)
    omega = [Binary(delta=tenth / 10).omega(Evidence(reward=float(r))) for r in steps.reward]
    value = steps.value(steps.reward * 0 + omega)
    assert value == pytest.approx(optimum(steps, budget=1.0), abs=SOLVED)


def test_a_slack_budget_is_not_used_up() -> None:
    steps = instance([1, 1, 2], [0.1, 0.5, 0.9], [0.3] * 3)
    omega = cut(steps, steps.reward, 0.3, budget=0.6)
    assert omega.tolist() == [0, 1, 1]  # to reject more would only cost: the target is worth 0.3
    assert steps.calls(omega) == 0.25
    assert steps.value(omega) == pytest.approx(optimum(steps, budget=0.6))


def test_a_budget_that_ends_within_an_atom_is_used_up_by_chance() -> None:
    steps = instance([1, 2, 1], [0.1, 0.5, 0.9], [0.8] * 3)
    omega = cut(steps, steps.reward, 0.5, budget=0.5)
    assert omega.tolist() == [0, 0.5, 1]
    assert steps.value(omega) == pytest.approx(optimum(steps, budget=0.5))
    keeps, rejects = (cut(steps, steps.reward, delta, budget=0.5) for delta in (0.3, 0.7))
    assert steps.value(keeps) < optimum(steps, budget=0.5)
    assert steps.calls(rejects) > 0.5
