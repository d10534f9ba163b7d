"""Which ω is best under a budget of target calls: by a threshold, and by a linear programme that knows of none::

steps = instance(weights=[1, 1, 2], rewards=[0.1, 0.5, 0.9], alternative=[0.3, 0.3, 0.3])
omega = cut(steps, steps.reward, delta=0.3, budget=0.6)
assert steps.value(omega) == optimum(steps, budget=0.6)
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st
from scipy.optimize import linprog

from rsd.weighting import Binary, Evidence

SOLVED = 1e-7  # how far the linear programme's solution may be off


class Steps(NamedTuple):
    """Steps that the draft may write, in one context or in several. `share`: P(z) P_m(y|z); `reward`: r(y|z);
    `alternative`: E_M[r|z], what the target's step is worth in place of this one."""

    share: np.ndarray
    reward: np.ndarray
    alternative: np.ndarray

    def value(self, omega: np.ndarray) -> float:
        """E_RSD[r]."""
        return float(self.share @ (omega * self.reward + (1 - omega) * self.alternative))

    def calls(self, omega: np.ndarray) -> float:
        """ν, the share of steps that the target writes."""
        return float(self.share @ (1 - omega))


def instance(weights: Sequence[int], rewards: Sequence[float], alternative: Sequence[float]) -> Steps:
    """Steps as likely as their `weights` say."""
    return Steps(np.array(weights) / sum(weights), np.array(rewards), np.array(alternative))


@st.composite
def contexts(draw: st.DrawFn, number: int) -> Steps:
    """`number` contexts of one to five steps each; rewards are tenths, so that steps often share one."""
    sizes = [draw(st.integers(1, 5)) for _ in range(number)]
    total = sum(sizes)
    return instance(
        [draw(st.integers(1, 20)) for _ in range(total)],
        [draw(st.integers(0, 10)) / 10 for _ in range(total)],
        np.repeat([draw(st.floats(0, 1)) for _ in sizes], sizes).tolist(),
    )


def optimum(steps: Steps, budget: float) -> float:
    """The greatest E_RSD[r] of any ω in [0, 1] with ν <= `budget`."""
    gain = steps.share * (steps.reward - steps.alternative)
    solved = linprog(-gain, A_ub=-steps.share[None], b_ub=[budget - 1], bounds=(0, 1))
    assert solved.success, solved.message
    return float(steps.share @ steps.alternative - solved.fun)


def quantile(steps: Steps, key: np.ndarray, budget: float) -> float:
    """The `budget`-quantile of `key` under P_m."""
    return float(next((k for k in np.unique(key) if steps.share[key <= k].sum() >= budget - 1e-12), key.max()))


def cut(steps: Steps, key: np.ndarray, delta: float, budget: float) -> np.ndarray:
    """ω = 1 where `key` is above `delta`, 0 below, and at it as small as the budget allows."""
    omega = np.array([Binary(delta=delta).omega(Evidence(reward=float(k))) for k in key])
    atom = key == delta
    if atom.any():
        left = max(0.0, budget - steps.calls(omega))
        omega[atom] = 1 - min(1.0, left / steps.share[atom].sum())
    return omega
