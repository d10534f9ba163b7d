"""Beam search over steps, guided by a PRM; with width 1, process Best-of-N."""

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from annotated_types import Ge

from rsd.errors import PRMContextError
from rsd.methods.base import Method
from rsd.methods.trajectory import Trajectory
from rsd.records import PolicyRole, Proposal, Role


@dataclass(frozen=True, slots=True)
class _Beam:
    """A trajectory of the search with what it is ranked by: its newest reward (that of the step before, where the
    newest is EOS alone), then the newest step's log-probability; beams that are equal in both keep their order."""

    trajectory: Trajectory
    reward: float
    logprob: float
    ids: tuple[int, ...]

    @property
    def rank(self) -> tuple[float, float]:
        return -self.reward, -self.logprob


@dataclass(frozen=True, kw_only=True)
class Beam(Method):
    """Keep the `width` solutions whose newest step has the highest reward.

    At each depth every live beam proposes `expansion` steps (at the root `width`·`expansion` in all), written by
    `generator`. Of finished beams and proposals, without exact duplicates, the `width` best go on. The answer is the
    finished beam with the highest last reward, else the best unfinished one with its own end reason.
    """

    width: Annotated[int, Ge(1)]
    expansion: Annotated[int, Ge(1)]
    generator: PolicyRole

    @property
    def name(self) -> str:
        if self.width == 1:
            return f"process best-of-{self.expansion} {self.generator}"
        return f"beam {self.width}x{self.expansion} {self.generator}"

    @property
    def roles(self) -> tuple[Role, ...]:
        return (self.generator, "prm")

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"method": "beam", "width": self.width, "expansion": self.expansion, "generator": self.generator}

    @property
    def work(self) -> Mapping[Role, float]:
        return dict.fromkeys(self.roles, float(self.width * self.expansion))

    async def solve(self, trajectory: Trajectory) -> None:
        if trajectory.ended:
            return
        beams = [_Beam(trajectory, reward=-math.inf, logprob=0.0, ids=())]
        expansion = self.width * self.expansion
        while live := [beam for beam in beams if not beam.trajectory.ended]:
            proposed = await asyncio.gather(
                *(
                    self._extended(beam, parent * expansion + child)
                    for parent, beam in enumerate(live)
                    for child in range(expansion)
                )
            )
            pool = [beam for beam in beams if beam.trajectory.ended] + [beam for beam in proposed if beam is not None]
            if not pool:
                trajectory.adopt(live[0].trajectory)
                trajectory.ended = "prm_context"
                return
            distinct = {beam.ids: beam for beam in reversed(pool)}  # the first of equal ones
            beams = sorted((beam for beam in pool if distinct[beam.ids] is beam), key=lambda beam: beam.rank)
            beams = beams[: self.width]
            expansion = self.expansion
        best = min(beams, key=lambda beam: (beam.trajectory.ended != "eos", beam.rank))
        trajectory.adopt(best.trajectory)

    async def _extended(self, beam: _Beam, candidate: int) -> _Beam | None:
        """`beam` with one more step of its own; None where the PRM cannot read that far."""
        try:
            proposal = await beam.trajectory.score(await beam.trajectory.propose_step(self.generator, candidate))
        except PRMContextError:
            return None
        reward = beam.reward if proposal.reward is None else proposal.reward
        extended = beam.trajectory.branch(proposal)
        return _Beam(extended, reward, self._logprob(proposal), beam.ids + proposal.token_ids)

    def _logprob(self, proposal: Proposal) -> float:
        logprob = proposal.logprob_draft if self.generator == "draft" else proposal.logprob_target
        assert logprob is not None, "every proposal has the log-probability of the policy that wrote it"
        return logprob


def process_best_of_n(*, n: Annotated[int, Ge(1)], generator: PolicyRole) -> Beam:
    """At each step, the best of `n` proposals."""
    return Beam(width=1, expansion=n, generator=generator)
