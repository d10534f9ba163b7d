"""Reward-Guided Speculative Decoding (Algorithm 1)."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from annotated_types import Ge

from rsd.errors import ConfigError, PRMContextError
from rsd.methods.base import Method
from rsd.methods.decoding import Limits
from rsd.methods.trajectory import Trajectory
from rsd.records import Proposal, Role
from rsd.weighting import Evidence, LikelihoodRatio, Weighting, decide


@dataclass(frozen=True, kw_only=True)
class RSD(Method):
    """Keep the draft's step where ω accepts it, else let the target write the step.

    `fallback`: ``target`` writes a rejected step unconditionally (the paper); ``residual`` draws it from
    (P_M - P_m)₊, which with likelihood_ratio and α = 1 makes the output P_M's own. `num_speculative_tokens`:
    the target writes by speculative decoding, with so many tokens drafted at a time (Section 4; 0: it does not).
    `score_target`: the PRM also scores the target's step, outside every cost: where the draft's was ``rejected``,
    or always (``all``: where it was accepted, the target writes one that is not kept).
    """

    weighting: Weighting
    score_target: Literal["rejected", "all"] | None = None
    fallback: Literal["target", "residual"] = "target"
    num_speculative_tokens: Annotated[int, Ge(0)] = 0

    @property
    def name(self) -> str:
        values = " ".join(f"{key}={value:g}" for key, value in self._parameters.items() if value is not False)
        words = ["rsd", "speculative" if self.num_speculative_tokens else "", self._weighting, values]
        return " ".join(filter(None, [*words, "residual" if self.fallback == "residual" else ""]))

    @property
    def roles(self) -> tuple[Role, ...]:
        scored = self.weighting.reads_reward or self.score_target
        return ("draft", "target", "prm") if scored else ("draft", "target")

    @property
    def settings(self) -> Mapping[str, Any]:
        options = {
            "fallback": self.fallback if self.fallback != "target" else None,
            "score_target": self.score_target,
            "num_speculative_tokens": self.num_speculative_tokens or None,
        }
        told = {key: value for key, value in options.items() if value is not None}
        return {"method": "rsd", "weighting": self._weighting, **self._parameters, **told}

    @property
    def reads_likelihoods(self) -> bool:
        return self.weighting.reads_likelihoods

    @property
    def needs_unit_reward(self) -> bool:
        return self.weighting.needs_unit_reward

    @property
    def _weighting(self) -> str:
        return type(self.weighting).__name__.lower()

    @property
    def _parameters(self) -> dict[str, float]:
        return asdict(self.weighting)  # type: ignore[call-overload, no-any-return]

    def check(self, limits: Limits) -> None:
        if self.fallback == "target":
            return
        if self.weighting != LikelihoodRatio(alpha=1.0, normalised=False):
            raise ConfigError(
                "method.fallback=residual is what weighting=likelihood_ratio with weighting.alpha=1 and "
                "weighting.normalised=false leaves over; set these, or method.fallback=target."
            )
        if limits.step_tokens != 1:
            raise ConfigError("method.fallback=residual is for steps of one token; set limits.step_tokens=1.")

    async def solve(self, trajectory: Trajectory) -> None:
        while not trajectory.ended:
            proposal = await trajectory.propose_step("draft")
            if self.weighting.reads_likelihoods:
                proposal = await trajectory.judge(proposal)
            if self.weighting.reads_reward:
                try:
                    proposal = await trajectory.score(proposal)
                except PRMContextError:
                    trajectory.ended = "prm_context"
                    break
            verdict = decide(self.weighting, _evidence(proposal), trajectory.uniform())
            proposal = trajectory.decide(proposal, verdict)
            if verdict.accepted:
                if self.score_target == "all":
                    await trajectory.contrast(proposal)
                trajectory.keep(proposal)
            else:
                step = await self._rewritten(trajectory)
                if self.score_target:
                    await trajectory.contrast(proposal, step)
                trajectory.keep(step)

    async def _rewritten(self, trajectory: Trajectory) -> Proposal:
        """The step in place of a rejected one.

        From (P_M - P_m)₊ = P_M·(1 - P_m/P_M)₊ by rejection: steps of the target, each taken with the probability
        in brackets. Steps are rejected as often as one of these is taken, so it costs one target step on average.
        """
        candidate = 0
        step = await trajectory.propose_step("target")
        while self.fallback == "residual":
            step = await trajectory.judge(step)
            candidate += 1
            if trajectory.uniform(candidate) >= math.exp(-_evidence(step).log_ratio):
                break
            step = await trajectory.propose_step("target", candidate)
        return step


def _evidence(proposal: Proposal) -> Evidence:
    draft, target = proposal.logprob_draft, proposal.logprob_target
    return Evidence(
        reward=math.nan if proposal.reward is None else proposal.reward,
        log_ratio=math.nan if draft is None or target is None else target - draft,
        tokens=len(proposal.token_ids),
    )
