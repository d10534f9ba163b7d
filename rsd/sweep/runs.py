"""A sweep's runs, and which of them belong into one job: those that need the same models.

runs = plan_runs(expand(overrides), common=[])
groups = group([run for run in runs if not run.complete])
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rsd.config import RunConfig
from rsd.engines.base import ModelSource
from rsd.engines.kept import KeptEngine
from rsd.errors import ConfigError, RSDError
from rsd.models import source_of
from rsd.plan import Plan, Read, make_plan
from rsd.records import Role
from rsd.state import complete, given_to
from rsd.sweep.compose import Composer


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a sweep. `plan` is None where it cannot run, for the reason in `error`."""

    overrides: tuple[str, ...]
    config: RunConfig
    plan: Plan | None
    error: str | None = None

    @property
    def name(self) -> str:
        """Benchmark and run id; without a plan, what was asked for."""
        return f"{self.plan.folder.parent.name}/{self.plan.folder.name}" if self.plan else " ".join(self.overrides)

    @property
    def parts(self) -> "list[Part]":
        """What is a job's: the whole run, or each of its shards."""
        assert self.plan is not None, "a run without a plan is not run"
        if self.config.shard is not None or self.config.shards == 1:
            return [Part(self.plan, self.config.shard, self.overrides)]
        count = min(self.config.shards, len(self.plan.problems))
        return [Part(self.plan, shard, (*self.overrides, f"shard={shard}")) for shard in range(count)]

    @property
    def complete(self) -> bool:
        """Whether there is nothing to do, or nothing that can be done."""
        return self.plan is None or complete(self.plan)


@dataclass(frozen=True, slots=True)
class Part:
    """A run or one of its shards, and the overrides that it is run with."""

    plan: Plan
    shard: int | None
    overrides: tuple[str, ...]

    @property
    def given_to(self) -> str | None:
        """The Slurm job that has it in hand."""
        return given_to(self.plan, self.shard)


@dataclass(slots=True)
class Group:
    """Runs of one job, the models that they need, and the folders that they write."""

    engine: Mapping[str, Any]
    models: dict[Role, ModelSource]
    folders: set[Path]
    runs: list[Run] = field(default_factory=list)

    @property
    def parts(self) -> list[tuple[Part, ...]]:
        """Its runs, once for each job that they are divided over (``shards``)."""
        parts = [run.parts for run in self.runs]
        return [tuple(of[i] for of in parts if i < len(of)) for i in range(max(map(len, parts), default=0))]

    @property
    def gpus(self) -> int:
        """Devices that the models need, as ``engine.<role>`` says: those it names, or the most of a role; 0 where the
        engine places nothing."""
        places = [self.engine[role] for role in self.models if isinstance(self.engine.get(role), Mapping)]
        named: set[int] = set()
        for place in places:
            device = place.get("device")
            named |= set() if device is None else {device} if isinstance(device, int) else set(device)
        return max([len(named), *(p["tensor_parallel_size"] * p["replicas"] for p in places)], default=0)


def plan_runs(every: Sequence[tuple[str, ...]]) -> list[Run]:
    """Plan the runs with these overrides; those that ask for the same records are one.

    Raises ConfigError where a configuration is wrong. A run whose data or models are not there is kept, with its error.
    """
    read: Read = {}
    composer = Composer()
    runs: dict[Any, Run] = {}
    for overrides in every:
        run = planned(composer.configure(overrides), overrides, read)
        asked = (run.plan.folder, run.plan.samples, tuple(p.question_id for p in run.plan.problems)) if run.plan else ()
        runs.setdefault(asked or overrides, run)
    return list(runs.values())


def planned(config: RunConfig, overrides: tuple[str, ...], read: Read) -> Run:
    """Plan one run; `read`: what other plans have read of benchmarks. Raises ConfigError where a setting is wrong."""
    try:
        plan = make_plan(config, KeptEngine(config.engine, {}), read)
    except ConfigError:
        raise
    except RSDError as error:
        return Run(overrides=overrides, config=config, plan=None, error=str(error))
    return Run(overrides=overrides, config=config, plan=plan)


def group(runs: Sequence[Run]) -> list[Group]:
    """Put each run into the first job whose engine holds its models, or that draws the samples which it needs.

    Within a job, models alone come first: what follows is told relative to the target alone.
    """
    groups: list[Group] = []
    for run in sorted(runs, key=lambda run: -len(models_of(run))):
        assert run.plan is not None, "a run without a plan is not run"
        models = models_of(run)
        folders = {plan.folder for plan in (run.plan, run.plan.drawn) if plan}
        homes = [home for home in groups if home.engine == run.config.engine]
        home = next((home for home in homes if folders & home.folders), None)
        home = home or next((home for home in homes if models.items() <= home.models.items()), None)
        if home is None:
            home = Group(run.config.engine, {}, set())
            groups.append(home)
        home.models = {**models, **home.models}
        home.folders |= folders
        home.runs.append(run)
    for home in groups:
        home.runs.sort(key=lambda run: len(models_of(run)))
    return groups


def to_do(runs: Sequence[Run]) -> tuple[dict[int, list[tuple[Part, ...]]], list[str]]:
    """What is missing and in no Slurm job's hands: by number of devices, the parts of each job. And the Slurm jobs that
    have the rest in hand, which is told in a line."""
    undone = [run for run in runs if not run.complete]
    jobs: defaultdict[int, list[tuple[Part, ...]]] = defaultdict(list)
    for home in group([run for run in undone if any(part.given_to is None for part in run.parts)]):
        own = [tuple(part for part in parts if part.given_to is None) for parts in home.parts]
        jobs[home.gpus] += [parts for parts in own if parts]
    others = sorted({job for run in undone for part in run.parts if (job := part.given_to)})
    if others:
        left = sum(any(part.given_to for part in run.parts) for run in undone)
        print(f"{left} of {len(runs)} runs are left to Slurm jobs that have them already: {', '.join(others)}.")
    return dict(jobs), others


def models_of(run: Run) -> dict[Role, ModelSource]:
    """Where each model comes from that the run calls, those that draw its samples included."""
    plans = [plan for plan in (run.plan and run.plan.drawn, run.plan) if plan]
    sources = {}
    for plan in plans:
        called = [role for role in plan.method.roles if plan.drawn is None or role == "prm"]
        sources.update({role: source_of(plan, role) for role in called})
    return sources
