"""What a run will do, decided from its configuration before anything is loaded.

    plan = make_plan(config)
    plan.folder, plan.problems, plan.method.name

Raises ConfigError, DataError or ModelError with one sentence for whatever is wrong.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from rsd.benchmarks.jsonl import data_hash
from rsd.config import RunConfig, build, locate, lowered
from rsd.engines.base import Engine
from rsd.errors import ConfigError
from rsd.identity import identify, run_id
from rsd.loggers.base import Logger
from rsd.methods.base import Method, Selection, models_of
from rsd.methods.decoding import Decoding, Limits
from rsd.methods.rsd import RSD
from rsd.methods.single import Single
from rsd.records import Problem
from rsd.rewards.base import Adapter
from rsd.weighting import Binary, LikelihoodRatio


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A checked run. `problems` are the questions asked for, `everything` all that the benchmark holds, `size` the
    number that it should hold, `samples` the solutions of each; `notes` are lines to print; `delta` is the threshold
    of a binary weighting that the method uses. `drawn`: the run whose samples a selection chooses among."""

    config: RunConfig
    method: Method | Selection
    samples: int
    drawn: "Plan | None"
    engine: Engine
    adapter: Adapter | None
    logger: Logger
    decoding: Decoding
    delta: float | None
    problems: tuple[Problem, ...]
    everything: tuple[Problem, ...]
    size: int
    identity: Mapping[str, Any]
    folder: Path
    notes: tuple[str, ...]


def make_plan(config: RunConfig) -> Plan:
    """Check everything that can be checked without a model, and name the run."""
    weighting = build(config.weighting, "weighting")
    method: Method | Selection = build(
        config.method, "method", weighting=weighting, score_target=config.score_target or None
    )
    adapter = _adapter(config) if "prm" in method.roles else None
    reads_weighting = "weighting" in method.settings
    delta = weighting.delta if isinstance(weighting, Binary) and reads_weighting else None
    if adapter is not None and delta is not None:
        _check_delta(delta, adapter)
    policies = config.model.policies
    for role in models_of(method):
        if role != "prm" and role not in policies:
            raise ConfigError(
                f"method '{method.name}' needs a {role} model, and model={config.model.name} has none; "
                f"set model.{role}.path or choose another model."
            )
    # of the whole family, also where the method uses one model only: all methods decode under the same limits
    limits, notes = lowered(config.limits, {f"model.{role}.context": p.context for role, p in policies.items()})
    _check_method(method, limits)
    benchmark = build(config.benchmark, "benchmark")
    everything = benchmark.problems()
    if benchmark.size is not None and len(everything) != benchmark.size:
        notes.append(
            f"benchmark={benchmark.name} holds {len(everything)} questions, where {benchmark.size} are expected."
        )
    logger = build(config.logger, "logger")
    identity = identify(config, method, limits, data=data_hash(everything))
    return Plan(
        config=config,
        method=method,
        samples=config.samples * (1 if isinstance(method, Selection) else method.draws),
        drawn=make_plan(_drawing(config, method)) if isinstance(method, Selection) else None,
        engine=build(config.engine, "engine"),  # last: this one imports torch
        adapter=adapter,
        logger=logger,
        decoding=replace(config.decoding, limits=limits),
        delta=delta,
        problems=tuple(_selected(everything, config)),
        everything=tuple(everything),
        size=benchmark.size or len(everything),
        identity=identity,
        folder=Path(config.results_dir) / "runs" / benchmark.name / run_id(identity, config, method),
        notes=tuple(notes),
    )


def _adapter(config: RunConfig) -> Adapter:
    if config.prm.adapter is None:
        raise ConfigError(
            f"prm={config.prm.name} has no adapter; set prm.adapter to the class in rsd/rewards that knows its format."
        )
    adapter: Adapter = locate(config.prm.adapter, "prm.adapter")()
    return adapter


def _drawing(config: RunConfig, method: Selection) -> RunConfig:
    """The run that draws the samples which `method` chooses among."""
    sample = {"_target_": "rsd.methods.single.Single", "role": method.role, "n": method.n}
    return config.model_copy(update={"method": sample})


def _check_method(method: Method | Selection, limits: Limits) -> None:
    """Raises ConfigError where the method's settings do not go together."""
    if isinstance(method, Single) and method.num_speculative_tokens and method.role == "draft":
        raise ConfigError("method.role=draft: only the target has a drafter; set method.role=target.")
    if isinstance(method, RSD) and method.fallback == "residual":
        if method.weighting != LikelihoodRatio(alpha=1.0, normalised=False):
            raise ConfigError(
                "method.fallback=residual is what weighting=likelihood_ratio with weighting.alpha=1 and "
                "weighting.normalised=false leaves over; set these, or method.fallback=target."
            )
        if limits.step_tokens != 1:
            raise ConfigError("method.fallback=residual is for steps of one token; set limits.step_tokens=1.")


def _check_delta(delta: float, adapter: Adapter) -> None:
    low, high = adapter.bounds
    if not low <= delta <= high:
        raise ConfigError(
            f"delta={delta:g} is outside the reward's range [{low:g}, {high:g}]; choose a value within it."
        )


FIELDS = {"level": ("level",), "subject": ("subject", "type", "subfield", "data_topic")}  # where rows say it


def _selected(problems: list[Problem], config: RunConfig) -> list[Problem]:
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
        problems = list(problems)
        Random(config.shuffle_seed).shuffle(problems)
    chosen = problems[config.offset :][: config.limit]
    if not chosen:
        raise ConfigError(f"offset={config.offset} leaves none of the {len(problems)} questions.")
    return chosen


def _of(problems: list[Problem], key: str, wanted: Any, benchmark: str) -> list[Problem]:
    """The problems whose row has one of the values `wanted` of `key`."""

    def value(problem: Problem) -> str:
        return str(next((problem.row[name] for name in FIELDS[key] if name in problem.row), ""))

    values = {str(v) for v in (wanted if isinstance(wanted, (list, tuple)) else (wanted,))}
    known = {value(problem) for problem in problems} - {""}
    if not values <= known:
        listed = ", ".join(sorted(known)) or f"no {key} at all"
        raise ConfigError(f"subset.{key}={wanted}: {benchmark} has {listed}.")
    return [problem for problem in problems if value(problem) in values]
