"""One model alone: the draft or the target, in one go or step by step."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rsd.methods.trajectory import Trajectory
from rsd.records import PolicyRole, Role


@dataclass(frozen=True, kw_only=True)
class Single:
    """Answer with `role` alone. `stepwise` asks for one step at a time under RSD's own limits."""

    role: PolicyRole
    stepwise: bool = False

    @property
    def name(self) -> str:
        return f"{self.role} alone" + (" (stepwise)" if self.stepwise else "")

    @property
    def roles(self) -> tuple[Role, ...]:
        return (self.role,)

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"method": "single", "role": self.role, "stepwise": self.stepwise}

    async def solve(self, trajectory: Trajectory) -> None:
        while not trajectory.ended:
            if self.stepwise:
                proposal = await trajectory.propose_step(self.role)
            else:
                proposal = await trajectory.propose_rest(self.role)
            trajectory.keep(proposal)
