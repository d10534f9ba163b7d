"""Which of a benchmark's questions a run is asked for: ids, subset, shuffle_seed, offset and limit, in this order, of
which a shard takes its own.

problems = chosen(benchmark.problems(), config)
"""

from collections.abc import Sequence
from random import Random
from typing import Any

from rsd.config import RunConfig
from rsd.errors import ConfigError
from rsd.records import Problem

FIELDS = {"level": ("level",), "subject": ("subject", "type", "subfield", "data_topic")}  # where rows say it


def chosen(everything: Sequence[Problem], config: RunConfig) -> tuple[Problem, ...]:
    """The questions asked for, in order. Raises ConfigError where a setting names none of them."""
    problems = list(everything)
    if config.ids is not None:
        known = {problem.question_id for problem in problems}
        unknown = [name for name in config.ids if name not in known]
        if unknown:
            raise ConfigError(f"ids: {config.benchmark['name']} has no question {unknown[0]}.")
        problems = [problem for problem in problems if problem.question_id in config.ids]
    for key, wanted in config.subset.model_dump().items():
        if wanted is not None:
            problems = _of(problems, key, wanted, config.benchmark["name"])
    if config.shuffle_seed is not None:
        Random(config.shuffle_seed).shuffle(problems)
    asked = tuple(problems[config.offset :][: config.limit])
    if not asked:
        raise ConfigError(f"offset={config.offset} leaves none of the {len(problems)} questions.")
    if config.shard is None:
        return asked
    if config.shard >= len(asked):
        raise ConfigError(f"shard={config.shard}: of {len(asked)} questions there is none left for it.")
    return asked[config.shard :: config.shards]


def value_of(problem: Problem, key: str) -> str:
    """A problem's ``level`` or ``subject`` (`key`), where its row says it; else the empty string."""
    return str(next((problem.row[name] for name in FIELDS[key] if name in problem.row), ""))


def _of(problems: list[Problem], key: str, wanted: Any, benchmark: str) -> list[Problem]:
    """The problems whose row has one of the values `wanted` of `key`."""

    values = {str(v) for v in (wanted if isinstance(wanted, (list, tuple)) else (wanted,))}
    known = {value_of(problem, key) for problem in problems} - {""}
    if not values <= known:
        listed = ", ".join(sorted(known)) or f"no {key} at all"
        raise ConfigError(f"subset.{key}={wanted}: {benchmark} has {listed}.")
    return [problem for problem in problems if value_of(problem, key) in values]
