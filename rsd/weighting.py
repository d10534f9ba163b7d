"""Weighting functions ω and the acceptance criterion of Algorithm 2.

    weighting = Binary(delta=0.7)
    verdict = decide(weighting, Evidence(reward=0.82), u=0.4)   # accepted: 0.82 >= 0.7

Table 1's read the reward; those of Section 2.4 also how likely the step is under target and draft. A
weighting function is a class with `omega` and what it reads, and one YAML in ``conf/weighting/``.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Protocol

from annotated_types import Ge, Gt, Le
from pydantic import FiniteFloat

from rsd.sigmoid import sigmoid


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is known of a draft step. `reward`: the PRM's, NaN where it gave none. `log_ratio`:
    ln P_M(y|z) - ln P_m(y|z) in nats, of target and draft at temperature 1 and top-p 1, over all its `tokens`,
    delimiter and EOS included; NaN where the target was not asked."""

    reward: float = math.nan
    log_ratio: float = math.nan
    tokens: int = 1


class Weighting(Protocol):
    """ω: how likely a draft step is kept."""

    reads_reward: bool
    """Whether ω depends on the reward; if not, no PRM is needed."""
    reads_likelihoods: bool = False
    """Whether ω depends on the step's likelihoods; the target then reads every draft step."""
    needs_unit_reward: bool = False
    """Whether ω makes sense for rewards in [0, 1] only."""

    def omega(self, step: Evidence) -> float:
        """Probability in [0, 1] of keeping the step."""
        ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """The criterion's decision. `u` is None where ω alone decided."""

    accepted: bool
    omega: float
    u: float | None


@dataclass(frozen=True, kw_only=True)
class Binary(Weighting):
    """ω(r) = 1(r >= δ); the paper's choice (δ = 0.7), compared in float64, `delta` included.

    By Proposition 2.3 the best ω under a budget of target calls has this form, in any one context.
    """

    delta: FiniteFloat
    reads_reward = True

    def omega(self, step: Evidence) -> float:
        return 1.0 if step.reward >= self.delta else 0.0


@dataclass(frozen=True, kw_only=True)
class Constant(Weighting):
    """ω(r) = p, whatever the reward; reads none."""

    p: Annotated[float, Ge(0), Le(1)]
    reads_reward = False

    def omega(self, step: Evidence) -> float:
        return self.p


@dataclass(frozen=True, kw_only=True)
class Clipping(Weighting):
    """ω(r) = min(1, max(0, r))."""

    reads_reward = True
    needs_unit_reward = True

    def omega(self, step: Evidence) -> float:
        return min(1.0, max(0.0, step.reward))


@dataclass(frozen=True, kw_only=True)
class Sigmoidal(Weighting):
    """ω(r) = max(0, r / (1 + r)), as Table 1 prints it; 0 for every r <= 0, r < -1 included."""

    reads_reward = True
    needs_unit_reward = True

    def omega(self, step: Evidence) -> float:
        return step.reward / (1.0 + step.reward) if step.reward > 0 else 0.0


@dataclass(frozen=True, kw_only=True)
class Logistic(Weighting):
    """ω(r) = 1 / (1 + exp(-α(r - δ))) with a δ of its own (Figure 6: α = 1, δ = 0.6)."""

    alpha: Annotated[FiniteFloat, Gt(0)]
    delta: FiniteFloat
    reads_reward = True

    def omega(self, step: Evidence) -> float:
        return sigmoid(self.alpha * (step.reward - self.delta))


@dataclass(frozen=True, kw_only=True)
class LikelihoodRatio(Weighting):
    """ω = min(1, α·P_M(y|z)/P_m(y|z)) (Section 2.4), in log space; `normalised`: (P_M/P_m)^(1/tokens) instead.

    With α = 1, not normalised, this is speculative sampling's acceptance probability
    (arXiv:2211.17192, section 2.3). Its output is not P_M all the same, unless a rejected step is drawn
    from the residual (``method.fallback=residual``).
    """

    alpha: Annotated[FiniteFloat, Gt(0)]
    normalised: bool
    reads_reward = False
    reads_likelihoods = True

    def omega(self, step: Evidence) -> float:
        return math.exp(min(math.log(self.alpha) + _ratio(step, self.normalised), 0.0))


@dataclass(frozen=True, kw_only=True)
class RewardRatio(Weighting):
    """ω = min(1, β·r·P_M(y|z)/P_m(y|z)) (Section 2.4), 0 for r <= 0; `normalised` as in `LikelihoodRatio`."""

    beta: Annotated[FiniteFloat, Gt(0)]
    normalised: bool
    reads_reward = True
    reads_likelihoods = True
    needs_unit_reward = True

    def omega(self, step: Evidence) -> float:
        if step.reward <= 0:
            return 0.0
        return math.exp(min(math.log(self.beta * step.reward) + _ratio(step, self.normalised), 0.0))


def decide(weighting: Weighting, step: Evidence, u: float) -> Verdict:
    """Accept when ω = 1, reject when ω = 0, else accept iff u <= ω (Algorithm 2), u in [0, 1).

    A piece that no PRM scores (EOS alone) has no reward: a weighting that reads rewards accepts it,
    any other decides it as it decides every step. Raises ValueError when ω is no probability.
    """
    omega = 1.0 if weighting.reads_reward and math.isnan(step.reward) else weighting.omega(step)
    if not 0.0 <= omega <= 1.0:
        raise ValueError(f"{type(weighting).__name__} gave ω = {omega} for {step}, which is no probability")
    if omega in (0.0, 1.0):
        return Verdict(accepted=omega == 1.0, omega=omega, u=None)
    return Verdict(accepted=u <= omega, omega=omega, u=u)


def _ratio(step: Evidence, normalised: bool) -> float:
    """ln P_M/P_m of the step, per token where `normalised`."""
    return step.log_ratio / step.tokens if normalised else step.log_ratio
