"""A sweep's runs, and which of them belong into one job: those that need the same models.

runs = plan_runs(expand(overrides), common=[])
groups = group([run for run in runs if not run.complete])
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rsd.config import RunConfig
from rsd.engines.base import ModelSource
from rsd.engines.kept import KeptEngine
from rsd.errors import ConfigError, RSDError
from rsd.models import source_of
from rsd.plan import Plan, Questions, make_plan
from rsd.records import Role
from rsd.state import complete
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
    def shards(self) -> int:
        """Jobs that the run is divided over."""
        return min(self.config.shards, len(self.plan.problems)) if self.plan and self.config.shard is None else 1

    def part(self, shard: int) -> tuple[str, ...]:
        """The overrides of one of its shards; of the whole run, where it is not divided."""
        return self.overrides if self.shards == 1 else (*self.overrides, f"shard={shard}")

    @property
    def complete(self) -> bool:
        """Whether there is nothing to do, or nothing that can be done."""
        return self.plan is None or complete(self.plan)


@dataclass(slots=True)
class Group:
    """Runs of one job, the models that they need, and the folders that they write."""

    engine: Mapping[str, Any]
    models: dict[Role, ModelSource]
    folders: set[Path]
    runs: list[Run] = field(default_factory=list)

    @property
    def parts(self) -> list[tuple[tuple[str, ...], ...]]:
        """The overrides of its runs, once for each job that they are divided over (``shards``)."""
        count = max((run.shards for run in self.runs), default=1)
        return [tuple(run.part(i) for run in self.runs if i < run.shards) for i in range(count)]

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
    read: dict[str, Questions] = {}
    composer = Composer()
    runs: dict[Any, Run] = {}
    for overrides in every:
        run = planned(composer.configure(overrides), overrides, read)
        asked = (run.plan.folder, run.plan.samples, tuple(p.question_id for p in run.plan.problems)) if run.plan else ()
        runs.setdefault(asked or overrides, run)
    return list(runs.values())


def planned(config: RunConfig, overrides: tuple[str, ...], read: dict[str, Questions]) -> Run:
    """Plan one run; `read`: benchmarks that other plans have read. Raises ConfigError where a setting is wrong."""
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


def models_of(run: Run) -> dict[Role, ModelSource]:
    """Where each model comes from that the run calls, those that draw its samples included."""
    plans = [plan for plan in (run.plan and run.plan.drawn, run.plan) if plan]
    sources = {}
    for plan in plans:
        called = [role for role in plan.method.roles if plan.drawn is None or role == "prm"]
        sources.update({role: source_of(plan, role) for role in called})
    return sources
