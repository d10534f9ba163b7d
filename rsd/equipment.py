"""What a run is solved with: the models that it needs now, and the solver over them.

    equipment = equip(plan, jobs, stack, memo)
    runner = Runner(solver=equipment.solver, …)

A method decodes with every model that it calls. A selection needs only the PRM, and that only where a
sample's rewards are not stored yet.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path

import orjson

from rsd.cost import Shape
from rsd.engines.base import Models
from rsd.engines.gate import gated
from rsd.engines.memo import Memo, RunMemo
from rsd.lock import RunLock
from rsd.methods.base import Method, Selection
from rsd.methods.steps import split_steps
from rsd.models import load_models, name_of, source_of
from rsd.plan import Plan
from rsd.records import Role
from rsd.runner import Job, Solver, decoder
from rsd.sample_rewards import RewardedSample, SampleRewards
from rsd.selection import samples_of, selector
from rsd.store import JsonLines, Key, is_error, read_grades, read_lines, read_manifest, read_records, write_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Equipment:
    """Models that are loaded, shapes of all that the records rest on, and the solver. `memo`: the run's share in a
    memo, where its calls are answered from one."""

    models: Models
    shapes: Mapping[Role, Shape]
    solver: Solver
    memo: RunMemo | None = None


def equip(plan: Plan, jobs: Sequence[Job], stack: ExitStack, memo: Memo) -> Equipment:
    """Load what `jobs` need; files that stay open are closed by `stack`. Greedy calls are answered from `memo`, unless
    the plan has it off. Raises ModelError, ConfigError, StoreError."""
    if isinstance(plan.method, Selection):
        assert plan.drawn is not None, "a selection has a run that draws its samples"
        return _equip_selection(plan, plan.method, plan.drawn, jobs, stack)
    models = load_models(plan) if jobs else Models()
    method: Method = plan.method
    own, decoding = None, gated(models, _sharing(plan))
    if plan.config.memo and plan.decoding.temperature == 0:
        own = RunMemo(memo, {role: name_of(plan, role) for role in method.roles}, plan.engine)
        decoding = own.models(decoding)
    return Equipment(
        models=models, shapes=plan.engine.shapes(), solver=decoder(method, decoding, plan.decoding), memo=own
    )


def _sharing(plan: Plan) -> Sequence[frozenset[Role]]:
    """The models that take turns on a device."""
    match plan.config.scheduling:
        case "free":
            return []
        case "gated":
            return [frozenset(plan.method.roles)]
        case "auto":
            return plan.engine.sharing()


def _equip_selection(plan: Plan, method: Selection, drawn: Plan, jobs: Sequence[Job], stack: ExitStack) -> Equipment:
    samples, grades = read_records(drawn.folder), read_grades(drawn.folder)
    shapes: dict[Role, Shape] = {
        role: Shape(**shape) for role, shape in read_manifest(drawn.folder)["shapes"].items() if role in method.roles
    }
    if "prm" not in method.roles:
        return Equipment(models=Models(), shapes=shapes, solver=selector(method, samples, grades, None))
    about, stored = _open_rewards(plan, drawn, stack)
    wanted = [record for job in jobs for record in samples_of(method, *job, samples) if not is_error(record)]
    models = Models()
    if any(record.key not in stored for record in wanted):
        models = load_models(plan, ["prm"])
        write_json(about, {"prm": plan.identity["models"]["prm"], "shape": asdict(plan.engine.shapes()["prm"])})
    if about.exists():
        shapes["prm"] = Shape(**orjson.loads(about.read_bytes())["shape"])
    rewards = SampleRewards(
        stack.enter_context(JsonLines(plan.own(about.with_suffix(".jsonl")))),
        stored,
        prm=models.prm,
        steps=_splitter(plan, method),
    )
    return Equipment(models=models, shapes=shapes, solver=selector(method, samples, grades, rewards))


def _open_rewards(plan: Plan, drawn: Plan, stack: ExitStack) -> tuple[Path, dict[Key, RewardedSample]]:
    """The file that says which PRM gave the rewards, locked, and the rewards beside it.

    Its name ends in a hash of what the PRM's values depend on: two checkpoints may have one name.
    """
    prm = plan.identity["models"]["prm"]
    digest = blake2b(orjson.dumps(prm, option=orjson.OPT_SORT_KEYS), digest_size=3).hexdigest()
    about = drawn.folder / f"rewards-{plan.config.prm.name}-{digest}.json"
    stack.enter_context(RunLock(plan.own(about.with_suffix(".lock"))))
    lines = read_lines(drawn.folder, about.stem, RewardedSample.load)
    return about, {(line.question_id, line.sample): line for line in lines}


def _splitter(plan: Plan, method: Selection) -> Callable[[Sequence[int]], list[str]]:
    from rsd.engines.loading import load_tokenizer  # loads torch

    return partial(split_steps, load_tokenizer(source_of(plan, method.role)), rule=plan.decoding.step)
