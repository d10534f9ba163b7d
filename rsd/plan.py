"""What a run will do, decided from its configuration before anything is loaded.

    plan = make_plan(config)
    plan.folder, plan.problems, plan.method.name

Raises ConfigError, DataError or ModelError with one sentence for whatever is wrong.
"""

import json
import math
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rsd.benchmarks.choice import chosen
from rsd.benchmarks.jsonl import data_hash
from rsd.config import RunConfig, build, locate, lowered
from rsd.engines.base import Engine
from rsd.errors import ConfigError, DataError
from rsd.identity import identify, run_id
from rsd.loggers.base import Logger
from rsd.methods.base import Method, Selection, models_of
from rsd.methods.decoding import Decoding, Limits
from rsd.records import Problem
from rsd.rewards.base import Adapter, squashed
from rsd.weighting import Binary


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

    def own(self, path: Path) -> Path:
        """What this process writes of a file that shards share: ``records.jsonl``, or ``records-3.jsonl``."""
        shard = self.config.shard
        return path if shard is None else path.with_stem(f"{path.stem}-{shard}")

    @property
    def logs(self) -> Path:
        """The folder of what is written beside the run's own files: of a shard, one within the run's."""
        return self.folder if self.config.shard is None else self.folder / f"shard-{self.config.shard}"


@dataclass(frozen=True, slots=True)
class Questions:
    """What a benchmark holds: its name, the number of questions it should have, those it has, their fingerprint."""

    name: str
    size: int | None
    problems: tuple[Problem, ...]
    data: str


Read = MutableMapping[str, Questions | DataError]  # benchmarks that other plans have read, or could not


def make_plan(config: RunConfig, engine: Engine | None = None, read: Read | None = None) -> Plan:
    """Check everything that can be checked without a model, and name the run.

    `engine`: where it will run, in place of one made for it. `read`: what other plans have read of benchmarks.
    """
    method = method_of(config)
    adapter = adapter_of(config) if "prm" in method.roles else None
    weighting = getattr(method, "weighting", None)
    delta = weighting.delta if isinstance(weighting, Binary) else None
    if adapter is not None:
        _check_range(config, method, delta, adapter)
    policies = config.model.policies
    for role in models_of(method):
        if role != "prm" and role not in policies:
            raise ConfigError(
                f"method '{method.name}' needs a {role} model, and model={config.model.name} has none; "
                f"set model.{role}.path or choose another model."
            )
    limits, notes = limits_of(config)
    method.check(limits)
    _check_step(config)
    benchmark = _questions(config, {} if read is None else read)
    everything = benchmark.problems
    if benchmark.size is not None and len(everything) != benchmark.size:
        notes.append(
            f"benchmark={benchmark.name} holds {len(everything)} questions, where {benchmark.size} are expected."
        )
    logger = build(config.logger, "logger")
    identity = identify(config, method, limits, data=benchmark.data)
    return Plan(
        config=config,
        method=method,
        samples=config.samples * (1 if isinstance(method, Selection) else method.draws),
        drawn=make_plan(_drawing(config, method), engine, read) if isinstance(method, Selection) else None,
        engine=engine or build(config.engine, "engine"),  # last: this one imports torch
        adapter=adapter,
        logger=logger,
        decoding=replace(config.decoding, limits=limits),
        delta=delta,
        problems=chosen(everything, config),
        everything=everything,
        size=benchmark.size or len(everything),
        identity=identity,
        folder=Path(config.results_dir) / "runs" / benchmark.name / run_id(identity, config, method),
        notes=tuple(notes),
    )


def method_of(config: RunConfig) -> Method | Selection:
    """The method that the run is told to use, with its settings. Raises ConfigError."""
    weighting = build(config.weighting, "weighting")
    method: Method | Selection = build(
        config.method, "method", weighting=weighting, score_target=config.score_target or None
    )
    return method


def limits_of(config: RunConfig) -> tuple[Limits, list[str]]:
    """The limits lowered to what the whole family can read, also where the method uses one model only: all methods
    decode under the same. With a line to print for each that was. Raises ConfigError."""
    return lowered(config.limits, {f"model.{role}.context": p.context for role, p in config.model.policies.items()})


def _questions(config: RunConfig, read: Read) -> Questions:
    key = json.dumps(config.benchmark, sort_keys=True)
    if key not in read:
        benchmark = build(config.benchmark, "benchmark")
        try:
            problems = benchmark.problems()
            read[key] = Questions(benchmark.name, benchmark.size, tuple(problems), data_hash(problems))
        except DataError as error:  # without a network the hub is tried for minutes: once for all plans
            read[key] = error
    known = read[key]
    if isinstance(known, DataError):
        raise known
    return known


def adapter_of(config: RunConfig) -> Adapter:
    """The adapter of the configured PRM. Raises ConfigError."""
    if config.prm.adapter is None:
        raise ConfigError(
            f"prm={config.prm.name} has no adapter; set prm.adapter to the class in rsd/rewards that knows its format."
        )
    kind = locate(config.prm.adapter, "prm.adapter")
    if Adapter not in getattr(kind, "__mro__", ()):
        raise ConfigError(f"prm.adapter={config.prm.adapter} is no adapter; derive it from rsd.rewards.base.Adapter.")
    transform = config.reward_transform
    if transform is not None and math.isfinite(kind.bounds[1]):
        raise ConfigError(
            f"reward_transform={transform} is for rewards without bounds; those of prm={config.prm.name} lie in "
            f"[{kind.bounds[0]:g}, {kind.bounds[1]:g}]."
        )
    adapter: Adapter = squashed(kind)() if transform is not None else kind()
    return adapter


def _drawing(config: RunConfig, method: Selection) -> RunConfig:
    """The run that draws the samples which `method` chooses among."""
    sample = {"_target_": "rsd.methods.single.Single", "role": method.role, "n": method.n}
    return config.model_copy(update={"method": sample})


def _check_step(config: RunConfig) -> None:
    """Raises ConfigError where the engine cannot end steps by the rule."""
    if config.step.pattern is None:
        return
    engine = locate(config.engine.get("_target_"), "engine._target_")
    if not getattr(engine, "matches_patterns", False):
        raise ConfigError(
            f"step.pattern: {engine.__name__} ends a step at a string or after a number of tokens, not where a pattern "
            "matches; set step.delimiter or step.tokens in its place, or engine=transformers."
        )


def _check_range(config: RunConfig, method: Method | Selection, delta: float | None, adapter: Adapter) -> None:
    """Raises ConfigError where the rewards' range is not one that the method can use."""
    low, high = adapter.bounds
    if delta is not None and not low <= delta <= high:
        raise ConfigError(
            f"delta={delta:g} is outside the reward's range [{low:g}, {high:g}]; choose a value within it."
        )
    if method.needs_unit_reward and (low, high) != (0, 1):
        raise ConfigError(
            f"method '{method.name}' reads rewards in [0, 1], and those of prm={config.prm.name} have no bounds; set "
            "reward_transform=sigmoid, or choose another weighting (binary, logistic) or aggregate."
        )
