"""Choose among stored samples: what majority voting and Best-of-N do once the samples are there.

    solver = selector(method, samples, grades, rewards)
    solution, error = await solver(problem, 0, clock)

The solution's proposals are the candidates, by their number among the question's samples. Only the chosen
one brings its text along: the others' stand in the records of the run that drew them.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from rsd.errors import EngineError, described
from rsd.methods.base import Candidate, Selection
from rsd.records import Problem, Proposal, Record, Role, Solution, Usage
from rsd.runner import NOTHING, Clock, Solver
from rsd.sample_rewards import RewardedSample, SampleRewards
from rsd.store import GradeRecord, Key, is_error


def selector(
    method: Selection,
    samples: Mapping[Key, Record],
    grades: Mapping[Key, GradeRecord],
    rewards: SampleRewards | None,
) -> Solver:
    """Solve by choosing: solution i of a question among its samples i·n to (i + 1)·n - 1."""

    async def solve(problem: Problem, sample: int, clock: Clock) -> tuple[Solution, str | None]:
        group = samples_of(method, problem, sample, samples)
        try:
            rewarded = await asyncio.gather(*(_rewarded(problem, record, rewards) for record in group))
        except EngineError:  # of all questions
            raise
        except Exception as error:  # listed, counted as wrong, and tried again by the next invocation
            return NOTHING, described(error)
        candidates = [
            Candidate(record=record, answer_class=number, rewards=told.rewards if told else None)
            for record, number, told in zip(group, _classes(group, grades), rewarded, strict=True)
        ]
        chosen = method.choose(candidates)
        proposals = [
            _proposal(number, candidate, told, method.value(candidate), clock(), kept=number == chosen)
            for number, (candidate, told) in enumerate(zip(candidates, rewarded, strict=True))
            if candidate.record.proposals
        ]
        answer = group[chosen]
        return Solution(
            prompt_tokens=answer.prompt_tokens,
            end_reason=answer.end_reason,
            response=answer.response,
            proposals=tuple(proposals),
        ), answer.error

    return solve


def samples_of(method: Selection, problem: Problem, sample: int, samples: Mapping[Key, Record]) -> list[Record]:
    """The samples that solution `sample` of the question is chosen among, in their order; those that are there."""
    keys = [(problem.question_id, number) for number in range(sample * method.n, (sample + 1) * method.n)]
    return [samples[key] for key in keys if key in samples]


def _classes(group: Sequence[Record], grades: Mapping[Key, GradeRecord]) -> list[int | None]:
    """Classes of the samples' answers, numbered in the order of the samples: grading numbers them as they come."""
    numbers: dict[int, int] = {}
    told = [grades[record.key].answer_class if record.key in grades else None for record in group]
    return [None if number is None else numbers.setdefault(number, len(numbers)) for number in told]


async def _rewarded(problem: Problem, record: Record, rewards: SampleRewards | None) -> RewardedSample | None:
    return None if rewards is None or is_error(record) else await rewards.of(problem, record)


def _proposal(
    number: int, candidate: Candidate, told: RewardedSample | None, value: float | None, now: float, *, kept: bool
) -> Proposal:
    """A sample as one of the solution's candidates, with what it took to draw and to score it."""
    (drawn,) = candidate.record.proposals
    usage: dict[Role, Usage] = {**drawn.usage, **({"prm": told.usage} if told else {})}
    return replace(
        drawn,
        candidate=number,
        kept=kept,
        token_ids=drawn.token_ids if kept else (),
        text=drawn.text if kept else "",
        reward=value,
        usage=usage,
        t0=now,
        t1=now,
        diagnostic={"sample": candidate.record.sample, "answer_class": candidate.answer_class},
    )
