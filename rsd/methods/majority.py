"""Majority voting over the answers of sampled solutions (self-consistency, arXiv:2203.11171)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from annotated_types import Ge

from rsd.methods.base import Candidate, Selection
from rsd.records import PolicyRole, Role


@dataclass(frozen=True, kw_only=True)
class Majority(Selection):
    """Of `n` samples of `role`, the first one of the class of answers that has the most.

    Classes of equivalent answers vote, not strings; of classes with equally many, the one that came first wins. A
    sample without an answer abstains; without any, the first sample stands, and is wrong.
    """

    n: Annotated[int, Ge(1)]
    role: PolicyRole

    @property
    def name(self) -> str:
        return f"majority@{self.n} {self.role}"

    @property
    def roles(self) -> tuple[Role, ...]:
        return (self.role,)

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"method": "majority", "role": self.role, "n": self.n}

    def choose(self, candidates: Sequence[Candidate]) -> int:
        """Index of the first sample in the largest class."""
        classes = [candidate.answer_class for candidate in candidates]
        votes = Counter(number for number in classes if number is not None)
        return classes.index(votes.most_common(1)[0][0]) if votes else 0  # of equals, the first that was counted
