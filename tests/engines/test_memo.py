"""Greedy calls are computed once, and no record tells whether they were."""

import asyncio
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from rsd.engines.base import Completion, Context, Models, Reward, Sampling
from rsd.engines.memo import Memo, RunMemo
from rsd.errors import ModelError
from rsd.invocation import invoke
from rsd.models import load_models, name_of
from rsd.plan import make_plan
from rsd.records import Problem, Record
from rsd.runner import decoder
from rsd.store import Key, read_records
from tests.conftest import compose_config
from tests.same import assert_same
from tests.toys import ScriptedPolicy, ScriptedPRM

DELTAS = [step / 10 for step in range(11)]
CONTEXT = Context(prompt=(1, 2), response=(3,))
STEP = "abc\n\n"  # five tokens
Invoked = Callable[..., tuple[dict[Key, Record], dict[str, Any]]]


@dataclass
class TokenCache:
    """An engine whose cache reuses what was read to the token."""

    def reused(self, role: str, call: str, shared: int) -> int:
        return shared


def own(memo: Memo, **models: Any) -> Models:
    """`models` of one more run."""
    return RunMemo(memo, dict.fromkeys(models, "toy"), TokenCache()).models(Models(**models))


def greedy(max_tokens: int, **changed: Any) -> Sampling:
    settings = {"temperature": 0.0, "top_p": 1.0, "seed": 0, "stop": "\n\n", "max_tokens": max_tokens, **changed}
    return Sampling(**settings)


def written(policy: Any, *calls: Sampling, context: Context = CONTEXT) -> list[Completion]:
    async def all_of_them() -> list[Completion]:
        return [await policy.generate(context, sampling) for sampling in calls]

    return asyncio.run(all_of_them())


def test_a_finished_step_serves_every_limit_that_it_keeps_and_a_cut_one_its_own() -> None:
    policy = ScriptedPolicy([STEP] * 9)
    memo = Memo()

    def computed(*limits: int) -> int:
        before = len(policy.asked)
        for limit in limits:
            (found,) = written(own(memo, draft=policy).draft, greedy(limit))
            assert (len(found.token_ids), found.finish) == (min(limit, 5), "step" if limit >= 5 else "length")
        return len(policy.asked) - before

    assert computed(3) == 1
    assert computed(10) == 1  # what 3 tokens began is not known to end
    assert computed(3, 5, 6, 10, 11, 4096) == 0
    assert computed(4) == 1
    assert computed(4, 3, 5) == 0


def test_another_context_or_stop_is_another_call_and_what_is_drawn_is_drawn_anew() -> None:
    policy = ScriptedPolicy([STEP] * 9)
    draft = own(Memo(), draft=policy).draft
    written(draft, greedy(9), greedy(9, seed=5, top_p=0.5))
    assert len(policy.asked) == 1
    written(draft, greedy(9, stop=None))
    written(draft, greedy(9), context=Context(prompt=(1,), response=(2, 3)))
    assert len(policy.asked) == 3, "the same tokens with the prompt's end elsewhere"
    written(draft, greedy(9, temperature=0.7), greedy(9, temperature=0.7))
    assert len(policy.asked) == 5


def test_how_far_a_drafter_looks_ahead_depends_on_the_limit() -> None:
    policy = ScriptedPolicy([STEP] * 9)
    generate = policy.generate

    async def drafted(context: Context, sampling: Sampling) -> Completion:
        completion = await generate(context, sampling)
        return replace(completion, drafter=completion.usage)

    policy.generate = drafted
    written(own(Memo(), target=policy).target, greedy(10), greedy(10), greedy(11))
    assert len(policy.asked) == 2


def test_equal_calls_at_the_same_time_wait_for_one_and_do_not_share_its_failure() -> None:
    class Slow(ScriptedPRM):
        async def score(self, question: str, steps: Iterable[str]) -> Reward:
            await asyncio.sleep(0)
            reward = await super().score(question, tuple(steps))
            if len(self.shown) == 1:
                raise ModelError("the first call fails")
            return reward

    prm = Slow(lambda _: 0.5)

    async def together() -> list[Reward | BaseException]:
        models = own(Memo(), prm=prm)
        return await asyncio.gather(*(models.prm.score("q", ["a"]) for _ in range(4)), return_exceptions=True)

    failed, *rewards = asyncio.run(together())
    assert isinstance(failed, ModelError)
    assert [reward.value for reward in rewards] == [0.5] * 3
    assert len(prm.shown) == 2


def test_cached_is_what_the_run_alone_would_have_found() -> None:
    """`ScriptedPolicy` itself always tells of 0 tokens from a cache."""
    policy = ScriptedPolicy([STEP, "de\n\n", "fgh$"])
    memo = Memo()
    first, second = own(memo, draft=policy).draft, own(memo, draft=policy).draft
    step = tuple(ord(letter) for letter in STEP)
    after = Context(prompt=CONTEXT.prompt, response=(*CONTEXT.response, *step))
    other = Context(prompt=CONTEXT.prompt, response=(*CONTEXT.response, *step[:2], 9))
    assert [written(first, greedy(9), context=c)[0].usage.cached for c in (CONTEXT, after)] == [0, 0]
    # the last token of a step was written, not read; that of a context must be read to go on from it
    assert [written(second, greedy(9), context=c)[0].usage.cached for c in (CONTEXT, after, other, after)] == [
        0,
        7,
        5,
        7,
    ]
    assert len(policy.asked) == 3


@pytest.fixture
def invoked(tmp_path: Path) -> Invoked:
    """Make a run of `limit` questions and return its records and the line on its invocation."""

    def invoked(*overrides: str, memo: Memo | None = None, limit: int = 50) -> tuple[dict[Key, Record], dict[str, Any]]:
        where = "together" if memo else "alone"
        config = compose_config(f"results_dir={tmp_path / where}", f"limit={limit}", *overrides)
        invoke(config, memo=memo)
        folder = make_plan(config).folder
        return read_records(folder), json.loads((folder / "invocations.jsonl").read_bytes().splitlines()[-1])

    return invoked


def solved(delta: float, memo: Memo | None) -> tuple[dict[Key, Record], int]:
    """Records of 50 questions, decoded without the harness around it, and the tokens that models wrote for them."""
    plan = make_plan(compose_config(f"delta={delta}", "limit=50"))
    models = load_models(plan)
    run = RunMemo(memo or Memo(), {role: name_of(plan, role) for role in plan.method.roles}, plan.engine)
    solve = decoder(plan.method, run.models(models) if memo else models, plan.decoding)

    async def record(problem: Problem) -> Record:
        solution, error = await solve(problem, 0, lambda: 0.0)
        told = {name: getattr(solution, name) for name in ("prompt_tokens", "end_reason", "response", "proposals")}
        return Record(question_id=problem.question_id, sample=0, seed=0, invocation=1, error=error, **told)

    async def every() -> list[Record]:
        try:
            return list(await asyncio.gather(*map(record, plan.problems)))
        finally:
            await plan.engine.close()

    return {r.key: r for r in asyncio.run(every())}, sum(asked.generated for asked in run.asked.values())


def test_a_sweep_over_delta_writes_at_most_four_times_the_tokens_of_one_run() -> None:
    memo = Memo()
    physical, logical = [], []
    for delta in DELTAS:
        records, tokens = solved(delta, memo)
        physical.append(tokens)
        logical.append(sum(u.generated for r in records.values() for p in r.proposals for u in p.usage.values()))
        if delta in (0.7, 1.0):
            alone, _ = solved(delta, None)
            assert_same(records, alone)
            assert len(records) == 50
    least = min(logical)
    print(f"δ = 0, 0.1, …, 1: {sum(physical)} tokens written together, {sum(logical)} apart, {least} by the least run")
    assert physical[0] == logical[0], "the first run has nothing to go by"
    assert sum(physical) <= 4 * least


def test_a_run_that_asks_nothing_new_runs_no_model(invoked: Invoked) -> None:
    memo = Memo()
    rsd, _ = invoked("delta=0", memo=memo, limit=10)
    alone, line = invoked("method=single", "method.role=draft", "method.stepwise=true", memo=memo, limit=10)
    assert {key: r.response for key, r in alone.items()} == {key: r.response for key, r in rsd.items()}
    assert line["totals"]["draft"]["tokens"] == line["asked"]["draft"]["computed"] == 0
    assert line["asked"]["draft"]["calls"] == sum(len(r.proposals) for r in alone.values()) > 0


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (["delta=0.5"], ["weighting=likelihood_ratio"]),
        (["delta=0.9"], ["delta=0.9", "score_target=all"]),
        (["method=rsd_speculative", "delta=0.8"], ["method=rsd_speculative", "delta=0.9"]),
        (["delta=0.9"], ["delta=0.9", "limits.step_tokens=20"]),
        (["method=single", "method.role=target"], ["model=tiny_l", "method=single", "method.role=draft"]),
    ],
)
def test_what_another_run_left_changes_no_record(first: list[str], second: list[str], invoked: Invoked) -> None:
    memo = Memo()
    invoked(*first, memo=memo, limit=5)
    together, _ = invoked(*second, memo=memo, limit=5)
    alone, _ = invoked(*second, "memo=off", limit=5)
    assert_same(together, alone)


def test_a_run_that_draws_its_text_has_no_memo(invoked: Invoked) -> None:
    memo = Memo()
    _, line = invoked("sampling.temperature=0.7", memo=memo, limit=2)
    assert line["memo"] is False
    _, line = invoked("method=sample", "method.n=2", memo=memo, limit=2)
    assert line["memo"] is False


def test_a_model_is_known_by_its_weights_and_by_what_serves_it() -> None:
    def name(role: str, *overrides: str) -> str:
        return name_of(make_plan(compose_config(*overrides)), role)

    assert (
        name("draft", "delta=0.1")
        == name("draft", "weighting=sigmoidal")
        == name("draft", "method=single", "method.role=draft")
    )
    assert name("target") != name("draft")
    assert name("target") != name("target", "method=rsd_speculative")
    assert name("target", "model.target.dtype=bfloat16") != name("target")
    assert name("prm", "prm=tiny_s") != name("prm", "prm=tiny_m")
    assert name("draft", "engine=vllm") != name("draft")
