"""A PRM's rewards of stored samples, in ``rewards-<prm>.jsonl`` beside them: one for each step.

Another aggregate needs no new rewards, and another PRM no new samples::

    rewards = SampleRewards(path, prm=prm, steps=partial(split_steps, tokenizer, rule=StepRule()))
    told = await rewards.of(problem, record)   # stored, or scored and stored now
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import orjson

from rsd.engines.base import Reward, RewardModel
from rsd.errors import PRMContextError
from rsd.records import Problem, Record, Usage
from rsd.store import JsonLines, Key


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardedSample:
    """The rewards of one sample's steps, None where it exceeds the PRM's context; what they took."""

    question_id: str
    sample: int
    rewards: tuple[float, ...] | None
    usage: Usage

    @classmethod
    def load(cls, line: bytes) -> "RewardedSample":
        """Read a line of the file. Raises ValueError when it is none."""
        data = orjson.loads(line)
        try:
            rewards = None if data["rewards"] is None else tuple(data["rewards"])
            return cls(**{**data, "rewards": rewards, "usage": Usage(**data["usage"])})
        except (TypeError, KeyError) as error:
            raise ValueError(f"not the rewards of a sample: {error}") from error


class SampleRewards:
    """Rewards that are stored, and those that `prm` gives to the other samples; `steps` splits a response's tokens."""

    def __init__(
        self,
        file: JsonLines,
        stored: Mapping[Key, RewardedSample],
        *,
        prm: RewardModel | None,
        steps: Callable[[Sequence[int]], list[str]],
    ) -> None:
        self._file = file
        self._stored = dict(stored)
        self._prm = prm
        self._steps = steps

    async def of(self, problem: Problem, record: Record) -> RewardedSample:
        """Rewards of `record`, a response written in one go. Raises RewardError, ModelError."""
        if record.key not in self._stored:
            rewarded = await self._score(problem, record)
            self._file.append(orjson.dumps(rewarded))
            self._stored[record.key] = rewarded
        return self._stored[record.key]

    async def _score(self, problem: Problem, record: Record) -> RewardedSample:
        assert self._prm is not None, "the PRM is loaded where rewards are missing"
        (proposal,) = record.proposals
        ids = proposal.token_ids[:-1] if proposal.finish == "eos" else proposal.token_ids
        steps = self._steps(ids)
        read: list[Reward] = []
        within = True
        for number, step in enumerate(steps, start=1):
            if step.strip():
                try:
                    read.append(await self._prm.score(problem.question, steps[:number]))
                except PRMContextError:
                    within = False
                    break
        return RewardedSample(
            question_id=record.question_id,
            sample=record.sample,
            rewards=tuple(reward.value for reward in read) if within else None,
            usage=_as_one_reading([reward.usage for reward in read]),
        )


def _as_one_reading(usages: Sequence[Usage]) -> Usage:
    """Usage of calls that each read one step more, as one call that reads the last one's input."""
    if not usages:
        return Usage()
    total = sum(usages, Usage())
    last = usages[-1].prompt
    cached = None if total.cached is None else max(0, last - (total.prompt - total.cached))
    return replace(total, prompt=last, cached=cached)
