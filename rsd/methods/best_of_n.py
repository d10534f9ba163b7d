"""Best-of-N: of sampled solutions, the one that the PRM values most."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Annotated, Any, Literal

from annotated_types import Ge

from rsd.methods.base import Candidate, Selection
from rsd.records import PolicyRole, Role

Aggregate = Literal["last", "min", "prod", "mean"]


@dataclass(frozen=True, kw_only=True)
class BestOfN(Selection):
    """Of `n` samples of `role`, the one whose steps' rewards, taken together by `aggregate`, are highest.

    ``last`` (the paper) is the last step's. A sample without a value (its steps exceed the PRM's context, or
    it has none but EOS) is chosen only if no other has one; of equals the first.
    """

    n: Annotated[int, Ge(1)]
    role: PolicyRole
    aggregate: Aggregate

    @property
    def name(self) -> str:
        return f"best-of-{self.n} {self.role} {self.aggregate}"

    @property
    def roles(self) -> tuple[Role, ...]:
        return (self.role, "prm")

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"method": "best_of_n", "role": self.role, "n": self.n, "aggregate": self.aggregate}

    @property
    def needs_unit_reward(self) -> bool:
        return self.aggregate == "prod"

    def choose(self, candidates: Sequence[Candidate]) -> int:
        """Index of the first sample of the highest value."""
        values = [self.value(candidate) for candidate in candidates]
        return max(range(len(values)), key=lambda i: (values[i] is not None, values[i] or 0.0))

    def value(self, candidate: Candidate) -> float | None:
        """The aggregate of the sample's rewards; None where it has none."""
        return aggregated(candidate.rewards, self.aggregate) if candidate.rewards else None


def aggregated(rewards: Sequence[float], how: Aggregate) -> float:
    """One value from the rewards of a solution's steps (one or more)."""
    match how:
        case "last":
            return rewards[-1]
        case "min":
            return min(rewards)
        case "prod":
            return math.prod(rewards)
        case "mean":
            return fmean(rewards)
