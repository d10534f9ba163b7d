"""What a method is: a class with the roles it needs, the settings it reads, and `solve`.

A new method is one file here and one YAML in ``conf/method/``. A method that chooses among stored
samples of one model has `choose` instead of `solve` (`Selection`).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rsd.methods.decoding import Limits
from rsd.methods.trajectory import Trajectory
from rsd.records import PolicyRole, Record, Role


class Described(ABC):
    """What a run is told about any method."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The method in a few words, for tables (``rsd binary delta=0.7``)."""

    @property
    @abstractmethod
    def roles(self) -> tuple[Role, ...]:
        """The models that it calls; no others are loaded."""

    @property
    @abstractmethod
    def settings(self) -> Mapping[str, Any]:
        """Every setting that its output depends on: part of the run's identity."""

    @property
    def needs_unit_reward(self) -> bool:
        """Whether it makes sense for rewards in [0, 1] only."""
        return False

    @property
    def work(self) -> Mapping[Role, float]:
        """Tokens that each model writes or judges for one token of an answer, for estimates of cost: one at most, where
        a method does not say otherwise."""
        return dict.fromkeys(self.roles, 1.0)

    def check(self, limits: Limits) -> None:  # noqa: B027 - most methods have nothing to check
        """Raises ConfigError where its settings, or `limits`, do not go together."""


class Method(Described):
    """A way to answer a question with a draft, a target and a PRM, or some of them."""

    num_speculative_tokens: int = 0
    """Tokens that the draft writes ahead of the target inside the engine, which verifies them; 0: none."""

    @property
    def draws(self) -> int:
        """Samples of each question that the method stands for."""
        return 1

    @property
    def reads_likelihoods(self) -> bool:
        """Whether draft and target judge each other's tokens."""
        return False

    @property
    def work(self) -> Mapping[Role, float]:
        """As of any method; of the tokens that are drafted ahead, half are taken to be kept."""
        work = dict(super().work)
        if self.num_speculative_tokens:
            rounds = 2 / (self.num_speculative_tokens + 1)
            work["draft"] = work.get("draft", 0.0) + rounds * self.num_speculative_tokens
            work["target"] = rounds * (self.num_speculative_tokens + 1)
        return work

    @abstractmethod
    async def solve(self, trajectory: Trajectory) -> None:
        """Extend `trajectory` until it has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One stored sample, as a selection sees it. `answer_class`: number of its class among the question's
    answers, None without an answer. `rewards`: one of each step, None where there are none to go by."""

    record: Record
    answer_class: int | None
    rewards: tuple[float, ...] | None


class Selection(Described):
    """A way to choose one of `n` stored samples of the policy `role`."""

    role: PolicyRole
    n: int

    @property
    def work(self) -> Mapping[Role, float]:
        """Beside that of the run which draws the samples."""
        return {role: float(self.n) for role in self.roles if role != self.role}

    @abstractmethod
    def choose(self, candidates: Sequence[Candidate]) -> int:
        """Index of the sample that answers the question."""

    def value(self, candidate: Candidate) -> float | None:
        """What the PRM's rewards of a sample come to; None where there is none, or nobody asks."""
        return None


def models_of(method: Method | Selection) -> tuple[Role, ...]:
    """Every model that a run of `method` rests on: those that it calls, and the target's drafter."""
    drafter: tuple[Role, ...] = ("draft",) if isinstance(method, Method) and method.num_speculative_tokens else ()
    return tuple(dict.fromkeys((*drafter, *method.roles)))
