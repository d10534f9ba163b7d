"""Generated tokens per second, greedy and whole responses: the engine against plain `generate`.

The same model, questions, dtype and threads on both sides, and a real stop at EOS: the responses' own lengths.
"""

import asyncio
import time
from collections.abc import Iterator, Sequence
from functools import partial
from statistics import median

from transformers import AutoModelForCausalLM

from rsd.engines.base import Context, PolicyModel, Sampling
from rsd.models import load_models
from rsd.plan import Plan, make_plan
from rsd.records import PolicyRole
from tests.benchmarks import plain
from tests.benchmarks.figures import Figure, alternate, ratio
from tests.benchmarks.plain import Tokens
from tests.conftest import compose_config

QUESTIONS = 500
ONE_BY_ONE = 64  # questions of the batch-1 loop, whose speed does not depend on their number
BATCH = 64  # of the padded `generate`
LIMIT = 256  # tokens of a response


def measure(role: PolicyRole, name: str, *, claimed: bool) -> Iterator[Figure]:
    """Speeds and ratios of the model of `role`; the ratios carry a claim where `claimed`."""
    plan = make_plan(compose_config(f"limit={QUESTIONS}", "method=single", f"method.role={role}"))
    policy = load_models(plan).policy(role)
    prompts = [policy.prompt(problem.question) for problem in plan.problems]
    model = AutoModelForCausalLM.from_pretrained(plan.config.model.policies[role].path)
    ends = [model.generation_config.eos_token_id]
    found: dict[str, list[Tokens]] = {}
    forwards: dict[int, list[float]] = {64: [], 256: []}  # tokens per second of forward passes, by questions in flight

    def loop() -> float:
        began = time.perf_counter()
        found["loop"] = plain.generate(model, prompts[:ONE_BY_ONE], batch=1, limit=LIMIT, ends=ends)
        return _speed(found["loop"], began)

    def padded() -> float:
        began = time.perf_counter()
        found["padded"] = plain.generate(model, prompts, batch=BATCH, limit=LIMIT, ends=ends)
        return _speed(found["padded"], began)

    def engine(in_flight: int) -> float:
        plan = make_plan(compose_config("method=single", f"method.role={role}"))
        policy = load_models(plan).policy(role)  # anew each time: no prompt is in the cache yet
        found[str(in_flight)], seconds, passing = asyncio.run(_serve(plan, policy, prompts, in_flight))
        tokens = sum(map(len, found[str(in_flight)]))
        forwards[in_flight].append(tokens / passing)
        return tokens / seconds

    one, batched, few, many = alternate(loop, padded, partial(engine, 64), partial(engine, 256))
    yield Figure(f"{name}: batch-1 generate", median(one), "tokens/s")
    yield Figure(f"{name}: padded generate of {BATCH}", median(batched), "tokens/s")
    for speeds, in_flight in ((few, 64), (many, 256)):
        label = f"{name}: engine with {in_flight} in flight"
        yield Figure(label, median(speeds), "tokens/s")
        yield Figure(f"{label} / batch-1 generate", ratio(speeds, one), "x", at_least=6 if claimed else None)
        yield Figure(f"{label} / padded generate", ratio(speeds, batched), "x", at_least=1.8 if claimed else None)
        alone = ratio(forwards[in_flight], batched)
        yield Figure(f"{label} / padded generate, were all but its forward passes free", alone, "x")
    for side in ("loop", "padded", "64"):
        different = sum(a != b for a, b in zip(found[side], found["256"], strict=False))
        yield Figure(
            f"{name}: texts of {len(found[side])} that differ, {side} against 256", different, "(near-ties can)"
        )


async def _serve(
    plan: Plan, policy: PolicyModel, prompts: Sequence[Tokens], in_flight: int
) -> tuple[list[Tokens], float, float]:
    """What the engine writes to all `prompts`, `in_flight` of them at a time, the seconds that it took, and those of
    them that it spent in forward passes."""
    slots = asyncio.Semaphore(in_flight)
    sampling = Sampling(temperature=0.0, top_p=1.0, max_tokens=LIMIT, seed=0, stop=None)

    async def answer(prompt: Tokens) -> Tokens:
        async with slots:
            return (await policy.generate(Context(prompt=prompt), sampling)).token_ids

    began = time.perf_counter()
    written = list(await asyncio.gather(*map(answer, prompts)))
    seconds = time.perf_counter() - began
    passing = sum(totals.seconds for totals in plan.engine.totals().values())
    await plan.engine.close()
    return written, seconds, passing


def _speed(written: Sequence[Tokens], began: float) -> float:
    return sum(map(len, written)) / (time.perf_counter() - began)
