"""Reward-Guided Speculative Decoding (Algorithm 1)."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rsd.errors import PRMContextError
from rsd.methods.trajectory import Trajectory
from rsd.records import Role
from rsd.weighting import Weighting, decide


@dataclass(frozen=True, kw_only=True)
class RSD:
    """Keep the draft's step where ω(reward) accepts it, else let the target write the step."""

    weighting: Weighting

    @property
    def name(self) -> str:
        parameters = " ".join(f"{key}={value:g}" for key, value in self._parameters.items())
        return f"rsd {type(self.weighting).__name__.lower()} {parameters}".rstrip()

    @property
    def roles(self) -> tuple[Role, ...]:
        return ("draft", "target", "prm") if self.weighting.reads_reward else ("draft", "target")

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"method": "rsd", "weighting": type(self.weighting).__name__.lower(), **self._parameters}

    @property
    def _parameters(self) -> dict[str, float]:
        return asdict(self.weighting)  # type: ignore[call-overload, no-any-return]

    async def solve(self, trajectory: Trajectory) -> None:
        while not trajectory.ended:
            proposal = await trajectory.propose_step("draft")
            if self.weighting.reads_reward:
                try:
                    proposal = await trajectory.score(proposal)
                except PRMContextError:
                    trajectory.end("prm_context", proposal)
                    break
            verdict = decide(self.weighting, proposal.reward, trajectory.uniform())
            if verdict.accepted:
                trajectory.keep(proposal, verdict)
            else:
                trajectory.reject(proposal, verdict)
                trajectory.keep(await trajectory.propose_step("target"))
