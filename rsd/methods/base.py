"""What a method is: a class with the roles it needs, the settings it reads, and `solve`.

A new method is one file here and one YAML in ``conf/method/``. A method that chooses among stored
samples of one model has `choose` instead of `solve` (`Selection`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rsd.methods.trajectory import Trajectory
from rsd.records import PolicyRole, Record, Role


class Described(Protocol):
    """What a run is told about any method."""

    @property
    def name(self) -> str:
        """The method in a few words, for tables (``rsd δ=0.7``)."""
        ...

    @property
    def roles(self) -> tuple[Role, ...]:
        """The models it needs; no others are loaded."""
        ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """Every setting that its output depends on: part of the run's identity."""
        ...


class Method(Described, Protocol):
    """A way to answer a question with a draft, a target and a PRM, or some of them.

    `draws`: samples of one model that one solution stands for. `num_speculative_tokens`: tokens that the
    draft writes ahead of the target inside the engine, which verifies them (0: none). `one_tokenizer`:
    whether draft and target must read each other's tokens.
    """

    draws: int = 1
    num_speculative_tokens: int = 0

    @property
    def one_tokenizer(self) -> bool:
        return self.num_speculative_tokens > 0

    async def solve(self, trajectory: Trajectory) -> None:
        """Extend `trajectory` until it has ended."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One stored sample, as a selection sees it. `answer_class`: number of its class among the question's
    answers, None without an answer. `rewards`: one of each step, None where the PRM could not read it."""

    record: Record
    answer_class: int | None
    rewards: tuple[float, ...] | None


class Selection(Described, Protocol):
    """A way to choose one of `n` stored samples of the policy `role`."""

    role: PolicyRole
    n: int

    def choose(self, candidates: Sequence[Candidate]) -> int:
        """Index of the sample that answers the question."""
        ...

    def value(self, candidate: Candidate) -> float | None:
        """What the PRM's rewards of a sample come to; None where there is none."""
        ...
