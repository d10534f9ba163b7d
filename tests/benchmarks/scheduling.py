"""Our runner against a lock-step loop over the same engines, on a virtual clock: what a GPU's times would give.

Lock-step: the questions go in groups of as many as may be in flight; of each group all drafts, then all rewards, then
all targets, round after round, as the paper's own implementation does.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence

from rsd.engines.base import Context, Models, Sampling
from rsd.engines.gate import gated
from rsd.methods.decoding import Decoding, Limits, StepRule
from rsd.methods.rsd import RSD
from rsd.methods.single import Single
from rsd.records import Problem, Record, Role
from rsd.store import GradeRecord
from rsd.weighting import Binary
from tests.benchmarks.clock import virtually
from tests.benchmarks.figures import Figure
from tests.benchmarks.harness import run
from tests.benchmarks.simulated import Device, SimulatedPolicy, SimulatedPRM, questions

QUESTIONS = 500
FLIGHTS = (64, 128, 256, 500)
DELTA = 0.7
Costs = Mapping[Role, tuple[float, float]]  # seconds of a tick or pass, and per sequence (of the PRM: per token) in it
SMALL: Costs = {"draft": (0.005, 0.00002), "target": (0.012, 0.00005), "prm": (0.010, 0.00003)}
LARGE: Costs = {**SMALL, "target": (0.045, 0.0003)}  # weights of 72B are read ten times as long, less what overlaps
SCHEDULINGS: dict[str, list[frozenset[Role]]] = {"free": [], "gated": [frozenset({"draft", "target", "prm"})]}
DECODING = Decoding(temperature=0.0, top_p=1.0, limits=Limits(), step=StepRule(), seed=0)
SAMPLING = Sampling(temperature=0.0, top_p=1.0, max_tokens=2048, seed=0, stop="\n\n")


def simulated(devices: Sequence[Device], costs: Costs = SMALL) -> Models:
    """A draft, a target and a PRM with a GPU's times; on one device, or on one each."""
    draft, target, prm = devices if len(devices) == 3 else devices * 3
    return Models(
        draft=SimulatedPolicy(draft, *costs["draft"]),
        target=SimulatedPolicy(target, *costs["target"]),
        prm=SimulatedPRM(prm, *costs["prm"]),
    )


async def lockstep(models: Models, problems: Sequence[Problem], flight: int) -> None:
    """RSD round by round."""
    for first in range(0, len(problems), flight):
        live = {p.question: [(), []] for p in problems[first : first + flight]}
        while live:
            contexts = {q: Context(prompt=models.draft.prompt(q), response=ids) for q, (ids, _) in live.items()}
            drafts = await asyncio.gather(*(models.draft.generate(contexts[q], SAMPLING) for q in live))
            steps = dict(zip(live, drafts, strict=True))
            told = await asyncio.gather(*(models.prm.score(q, [*live[q][1], steps[q].text]) for q in live))
            rejected = [q for q, reward in zip(live, told, strict=True) if reward.value < DELTA]
            again = await asyncio.gather(*(models.target.generate(contexts[q], SAMPLING) for q in rejected))
            steps |= dict(zip(rejected, again, strict=True))
            live = {
                q: [ids + steps[q].token_ids, [*texts, steps[q].text]]
                for q, (ids, texts) in live.items()
                if steps[q].finish != "eos"
            }


async def ours(models: Models, problems: Sequence[Problem], flight: int) -> list[float]:
    """The real runner and method; when each question was finished, in order."""
    finished: list[float] = []

    def told(record: Record, grade: GradeRecord | None) -> None:
        finished.append(asyncio.get_running_loop().time())

    await run(RSD(weighting=Binary(delta=DELTA)), models, DECODING, problems, concurrency=flight, told=told)
    return finished


async def target_alone(costs: Costs, problems: Sequence[Problem], flight: int, copies: int) -> None:
    """The target writes every answer, on as many devices as RSD has, each with its part of the questions."""
    alone = Single(role="target", stepwise=True)
    models = [Models(target=SimulatedPolicy(Device(), *costs["target"])) for _ in range(copies)]
    parts = [problems[copy::copies] for copy in range(copies)]
    await asyncio.gather(*(run(alone, m, DECODING, p, concurrency=max(1, flight // copies))
                           for m, p in zip(models, parts, strict=True)))  # fmt: skip


def measure() -> Iterator[Figure]:
    """Ratios of virtual times, which are the same on every machine."""
    problems = questions(QUESTIONS)
    whole, _ = virtually(lockstep(simulated([Device()]), problems, QUESTIONS))
    for flight in FLIGHTS:
        slow, _ = virtually(lockstep(simulated([Device()]), problems, flight))
        devices = [Device() for _ in range(3)]
        seconds, finished = virtually(ours(simulated(devices), problems, flight))
        name = f"virtual clock, {flight} in flight, "
        most = flight == QUESTIONS
        yield Figure(f"{name}a device each: lock-step / ours", slow / seconds, "x", at_least=4.0 if most else 1.0)
        nearly = finished[int(0.9 * len(finished))]
        busy = max(device.busy_until(nearly) for device in devices) / nearly
        yield Figure(f"{name}a device each: bottleneck busy until 90% are finished", busy, "",
                     at_least=0.9 if most else None)  # fmt: skip
        for scheduling, roles in SCHEDULINGS.items():
            seconds, _ = virtually(ours(gated(simulated([Device()]), roles), problems, flight))
            least = (1.8 if most else 1.0) if roles else None
            yield Figure(f"{name}one device, {scheduling}: lock-step / ours", slow / seconds, "x", at_least=least)
            yield Figure(f"{name}one device, {scheduling}: lock-step of all {QUESTIONS} / ours", whole / seconds, "x")
    for size, costs in (("7B", SMALL), ("72B", LARGE)):
        for flight in FLIGHTS:
            for count in (3, 1):
                alone, _ = virtually(target_alone(costs, problems, flight, copies=count))
                models = simulated([Device() for _ in range(count)], costs)
                used = gated(models, SCHEDULINGS["gated"]) if count == 1 else models
                rsd, _ = virtually(ours(used, problems, flight))
                name = f"virtual clock, {flight} in flight, {count} device{'s' if count > 1 else ''}: "
                yield Figure(f"{name}{size} target alone / RSD", alone / rsd, "x")
