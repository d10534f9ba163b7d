"""Weighting functions ω(r) of Table 1 and the acceptance criterion of Algorithm 2.

    weighting = Binary(delta=0.7)
    verdict = decide(weighting, reward=0.82, u=0.4)   # accepted: 0.82 >= 0.7

A weighting function is a class with `omega` and `reads_reward`, and one YAML in ``conf/weighting/``.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Protocol

from annotated_types import Ge, Gt, Le
from pydantic import FiniteFloat

from rsd.sigmoid import sigmoid


class Weighting(Protocol):
    """ω: how likely a draft step with a given reward is kept."""

    @property
    def reads_reward(self) -> bool:
        """Whether ω depends on the reward; if not, no PRM is needed."""
        ...

    def omega(self, reward: float) -> float:
        """Probability in [0, 1] of keeping a step of `reward`."""
        ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """The criterion's decision. `u` is None where ω alone decided."""

    accepted: bool
    omega: float
    u: float | None


@dataclass(frozen=True, kw_only=True)
class Binary:
    """ω(r) = 1(r >= δ); the paper's choice (δ = 0.7), compared in float64, `delta` included.

    By Proposition 2.3 the best ω under a budget of target calls has this form.
    """

    delta: FiniteFloat
    reads_reward = True

    def omega(self, reward: float) -> float:
        return 1.0 if reward >= self.delta else 0.0


@dataclass(frozen=True, kw_only=True)
class Constant:
    """ω(r) = p, whatever the reward; reads none."""

    p: Annotated[float, Ge(0), Le(1)]
    reads_reward = False

    def omega(self, reward: float) -> float:
        return self.p


@dataclass(frozen=True, kw_only=True)
class Clipping:
    """ω(r) = min(1, max(0, r))."""

    reads_reward = True

    def omega(self, reward: float) -> float:
        return min(1.0, max(0.0, reward))


@dataclass(frozen=True, kw_only=True)
class Sigmoidal:
    """ω(r) = max(0, r / (1 + r)), as Table 1 prints it; 0 for every r <= 0, r < -1 included."""

    reads_reward = True

    def omega(self, reward: float) -> float:
        return reward / (1.0 + reward) if reward > 0 else 0.0


@dataclass(frozen=True, kw_only=True)
class Logistic:
    """ω(r) = 1 / (1 + exp(-α(r - δ))) with a δ of its own (Figure 6: α = 1, δ = 0.6)."""

    alpha: Annotated[FiniteFloat, Gt(0)]
    delta: FiniteFloat
    reads_reward = True

    def omega(self, reward: float) -> float:
        return sigmoid(self.alpha * (reward - self.delta))


def decide(weighting: Weighting, reward: float | None, u: float) -> Verdict:
    """Accept when ω = 1, reject when ω = 0, else accept iff u <= ω (Algorithm 2), u in [0, 1).

    `reward` is None for a piece that no PRM scores (EOS alone): a weighting that reads rewards
    accepts it, any other decides it as it decides every step.
    """
    if reward is None:
        omega = 1.0 if weighting.reads_reward else weighting.omega(math.nan)
    else:
        omega = weighting.omega(reward)
    if omega in (0.0, 1.0):
        return Verdict(accepted=omega == 1.0, omega=omega, u=None)
    return Verdict(accepted=u <= omega, omega=omega, u=u)
