"""One model alone: the draft or the target, in one go, step by step, sampled, or with a drafter."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from annotated_types import Ge

from rsd.errors import ConfigError
from rsd.methods.base import Method
from rsd.methods.decoding import Limits
from rsd.methods.trajectory import Trajectory
from rsd.records import PolicyRole, Role


@dataclass(frozen=True, kw_only=True)
class Single(Method):
    """Answer with `role` alone. `stepwise` asks for one step at a time under RSD's own limits.

    `n`: samples of each question (``method=sample``). `num_speculative_tokens`: the target writes by speculative
    decoding, with so many tokens of the draft at a time (``method=speculative``; 0: it does not).
    """

    role: PolicyRole
    stepwise: bool = False
    n: Annotated[int, Ge(1)] = 1
    num_speculative_tokens: Annotated[int, Ge(0)] = 0

    @property
    def name(self) -> str:
        if self.num_speculative_tokens:
            return f"speculative {self.num_speculative_tokens}"
        return f"{self.role} alone" + (" (stepwise)" if self.stepwise else "")

    @property
    def roles(self) -> tuple[Role, ...]:
        return (self.role,)

    @property
    def settings(self) -> Mapping[str, Any]:
        settings: dict[str, Any] = {"method": "single", "role": self.role, "stepwise": self.stepwise}
        if self.num_speculative_tokens:
            settings |= {"method": "speculative", "num_speculative_tokens": self.num_speculative_tokens}
        return settings

    @property
    def draws(self) -> int:
        return self.n

    def check(self, limits: Limits) -> None:
        if self.num_speculative_tokens and self.role == "draft":
            raise ConfigError("method.role=draft: only the target has a drafter; set method.role=target.")

    async def solve(self, trajectory: Trajectory) -> None:
        while not trajectory.ended:
            if self.stepwise:
                proposal = await trajectory.propose_step(self.role)
            else:
                proposal = await trajectory.propose_rest(self.role)
            trajectory.keep(proposal)
