"""The vLLM engine on the tiny family, and on a checkpoint with a real tokenizer."""

import asyncio
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from transformers import PreTrainedTokenizerBase

from rsd.config import MergeConfig
from rsd.engines.base import Completion, Context, Models, PolicyModel, Sampling
from rsd.engines.memo import Memo, RunMemo
from rsd.merge import merge
from rsd.methods.trajectory import Trajectory
from rsd.models import load_models, name_of
from rsd.plan import Plan, make_plan
from rsd.records import Proposal, Role, Solution
from tests.conftest import ROOT, compose_config
from tests.vllm.conftest import BLOCK, CACHE, GIB_OF_CACHE, MATH, WRITTEN

pytestmark = pytest.mark.vllm
STEP_SIZE = (3000, 200)  # tokens and requests of one step of vLLM
PF_FORKNOEXEC = 0x40  # linux/sched.h: a copy of its parent that runs no program of its own
STEP = tuple(range(20, 32))  # tokens that neither model would write


@pytest.fixture(scope="module")
def tiny(loop: asyncio.AbstractEventLoop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Plan, Models]]:
    """The tiny family served by vLLM, two copies of its draft; as merged models that are all policy, or all PRM. As on
    GPUs, a server's steps are of another size than those of other uses."""
    from vllm.engine.arg_utils import EngineArgs  # without vLLM these tests are collected all the same
    from vllm.usage.usage_lib import UsageContext

    args = [f"engine.{role}.args={{block_size: {BLOCK}}}" for role in ("draft", "target", "prm")]
    folder = tmp_path_factory.mktemp("tiny")
    weights = ROOT / "rsd" / "tiny" / "weights"
    for size, weight in {"s": 1.0, "m": 0.0}.items():
        sides = {"policy": str(weights / size), "prm": str(weights / f"prm_{size}")}
        merge(MergeConfig(**sides, weight=weight, out=str(folder / size)))
    args += [f"model.draft.path={folder / 's'}", f"prm.path={folder / 'm' / 'prm'}", f"results_dir={folder}"]
    plan = make_plan(compose_config("engine=vllm", CACHE, "engine.draft.replicas=2", *args))
    with pytest.MonkeyPatch.context() as patch:
        of_server = [{UsageContext.OPENAI_API_SERVER: size} for size in STEP_SIZE]
        patch.setattr(EngineArgs, "get_batch_defaults", lambda *_: of_server)
        models = load_models(plan)
    yield plan, models
    loop.run_until_complete(plan.engine.close())


async def solve_all(plan: Plan, models: Models, count: int) -> list[Solution]:
    async def solve(trajectory: Trajectory) -> Solution:
        await plan.method.solve(trajectory)
        return trajectory.solution()

    begun = [
        Trajectory(problem, 0, models=models, decoding=plan.decoding, clock=lambda: 0.0)
        for problem in plan.problems[:count]
    ]
    return list(await asyncio.gather(*map(solve, begun)))


async def solved_and_closed(plan: Plan, count: int) -> list[Solution]:
    try:
        return await solve_all(plan, load_models(plan), count)
    finally:
        await plan.engine.close()


def outline(solution: Solution) -> list[tuple[object, ...]]:
    """What a trajectory is made of, without numbers that engines round in their own ways."""
    return [(p.origin, p.token_ids, p.text, p.finish, p.accepted, p.kept) for p in solution.proposals]


def test_both_engines_take_the_same_trajectories(tiny: tuple[Plan, Models], loop: asyncio.AbstractEventLoop) -> None:
    compare(*tiny, loop, 50)
    assert min(Counter(tiny[1].draft.replicas.copies.of_prompt.values())[copy] for copy in (0, 1)) > 15


def test_steps_of_a_number_of_tokens_are_the_same_in_both(
    tiny: tuple[Plan, Models], loop: asyncio.AbstractEventLoop
) -> None:
    compare(*tiny, loop, 10, "step.delimiter=null", "step.tokens=7")


def compare(plan: Plan, models: Models, loop: asyncio.AbstractEventLoop, count: int, *overrides: str) -> None:
    """Let both engines answer `count` questions, and compare every step."""
    embedded = make_plan(compose_config("engine=transformers", *overrides))
    served = loop.run_until_complete(solve_all(replace(plan, decoding=embedded.decoding), models, count))
    expected = asyncio.run(solve_all(embedded, load_models(embedded), count))
    assert [solution.end_reason for solution in served] == [solution.end_reason for solution in expected]
    for one, other in zip(served, expected, strict=True):
        assert outline(one) == outline(other)
        for a, b in zip(one.proposals, other.proposals, strict=True):
            assert a.reward == pytest.approx(b.reward, abs=1e-3)
            assert (a.logprob_draft or a.logprob_target) == pytest.approx(b.logprob_draft or b.logprob_target, abs=1e-3)


def test_an_engine_takes_as_much_in_a_step_as_vllms_server_does(tiny: tuple[Plan, Models]) -> None:
    """By default it would be 128 requests, also on GPUs that take 1,024. And it has the cache that it was told."""
    _, models = tiny
    for engine in (*models.draft.replicas._engines, *models.target.replicas._engines):
        steps = engine.vllm_config.scheduler_config
        assert (steps.max_num_batched_tokens, steps.max_num_seqs) == STEP_SIZE
        assert engine.vllm_config.cache_config.kv_cache_memory_bytes == GIB_OF_CACHE * 2**30


def test_more_prompts_than_a_step_takes_are_drawn_from_with_their_seeds(
    tiny: tuple[Plan, Models], loop: asyncio.AbstractEventLoop
) -> None:
    """A prompt that vLLM reads in parts takes back its generator's draw, of which it dies on a CPU."""
    plan, models = tiny
    target = models.policy("target")
    contexts = [Context(prompt=target.prompt(problem.question)) for problem in plan.problems[:100]]
    assert sum(len(context.prompt) for context in contexts) > STEP_SIZE[0]

    async def drawn() -> list[Completion]:
        sampling = [Sampling(temperature=1, top_p=1, max_tokens=4, seed=seed, stop=None) for seed in range(100)]
        return list(await asyncio.gather(*map(target.generate, contexts, sampling)))

    loop.run_until_complete(plan.engine.forget())
    first, again = loop.run_until_complete(drawn()), loop.run_until_complete(drawn())
    assert {completion.usage.cached for completion in first} == {0}
    assert [completion.token_ids for completion in first] == [completion.token_ids for completion in again]


def test_engines_and_workers_are_spawned_not_forked(tiny: tuple[Plan, Models]) -> None:
    """A fork would carry this process's memory, a GPU's state and the thread locks in it; that those spawned know our
    models is shown by the PRM that they serve."""
    assert os.environ["VLLM_WORKER_MULTIPROC_METHOD"] == "spawn"
    started = [p for p in psutil.Process().children(recursive=True) if p.cmdline()[0].startswith("VLLM::")]
    assert len(started) == 4, "an engine, its worker in it, for each of four models"
    for process in started:
        flags = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[6]
        assert not int(flags) & PF_FORKNOEXEC


@pytest.mark.parametrize("engine", ["transformers", "vllm"])
def test_a_step_ends_where_the_tokenizer_merges_the_delimiter_into_a_token(
    engine: str, clockwork: Path, qwen: PreTrainedTokenizerBase, loop: asyncio.AbstractEventLoop, tmp_path: Path
) -> None:
    settings = [f"model.draft.path={clockwork}", "model.draft.dtype=float32", "method=single", "method.stepwise=true"]
    settings += [f"results_dir={tmp_path}", *([CACHE] if engine == "vllm" else [])]
    plan = make_plan(compose_config("model=qwen_math_7b", f"engine={engine}", "method.role=draft", *MATH, *settings))
    if engine == "vllm":
        (solution,) = loop.run_until_complete(solved_and_closed(plan, 1))
    else:
        (solution,) = asyncio.run(solved_and_closed(plan, 1))
    assert [proposal.text for proposal in solution.proposals] == WRITTEN
    assert [proposal.finish for proposal in solution.proposals] == ["step"] * (len(WRITTEN) - 1) + ["eos"]
    ids = [token for proposal in solution.proposals for token in proposal.token_ids]
    assert ids[:-1] == [token for step in WRITTEN for token in qwen(step, add_special_tokens=False).input_ids]
    assert solution.end_reason == "eos"


def test_both_engines_give_a_text_the_same_logprobs(tiny: tuple[Plan, Models], loop: asyncio.AbstractEventLoop) -> None:
    """What the draft wrote, read by the target; in vLLM and in transformers."""
    plan, models = tiny
    embedded = load_models(make_plan(compose_config("engine=transformers")))

    async def judged(target: PolicyModel) -> list[tuple[float, ...]]:
        contexts = [Context(prompt=target.prompt(problem.question)) for problem in plan.problems[:10]]
        return [logprobs.values for logprobs in await asyncio.gather(*(target.logprobs(c, STEP) for c in contexts))]

    found = loop.run_until_complete(judged(models.policy("target")))
    expected = asyncio.run(judged(embedded.policy("target")))
    for one, other in zip(found, expected, strict=True):
        assert len(one) == len(STEP)
        assert one == pytest.approx(other, abs=1e-3)


def calls(solution: Solution, role: Role) -> Iterator[tuple[tuple[int, ...], Proposal]]:
    """The response that each call of `role` was given to read, and the proposal that it was for."""
    response: tuple[int, ...] = ()
    for proposal in solution.proposals:
        own = proposal.token_ids[:-1] if proposal.finish == "eos" else proposal.token_ids
        if role in proposal.usage:
            yield response + (own if role == "prm" else ()), proposal
        if proposal.kept:
            response += proposal.token_ids


def shared(one: Sequence[int], other: Sequence[int]) -> int:
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


@pytest.mark.parametrize("role", ["draft", "target", "prm"])
def test_a_call_runs_what_its_model_has_not_read_and_a_block_at_most(
    role: Role, tiny: tuple[Plan, Models], loop: asyncio.AbstractEventLoop
) -> None:
    """Also after rejections: the step that the target wrote is new to the others, what stands before it is not."""
    plan, models = tiny
    solutions = loop.run_until_complete(solve_all(plan, models, 30))
    assert any(proposal.accepted is False for solution in solutions for proposal in solution.proposals)
    for solution in solutions:
        read: list[tuple[int, ...]] = []
        for given, proposal in calls(solution, role):
            usage = proposal.usage[role]
            assert usage.prompt == solution.prompt_tokens + len(given)
            known = max((solution.prompt_tokens + shared(given, earlier) for earlier in read), default=0)
            assert usage.cached is not None
            assert usage.cached >= min(known, usage.prompt - 1) - BLOCK
            read.append(given if role == "prm" else given + proposal.token_ids[:-1])


def test_after_forgetting_a_run_costs_what_it_costs_alone_with_the_memo_as_without(
    tiny: tuple[Plan, Models], loop: asyncio.AbstractEventLoop
) -> None:
    """As in a sweep, where one run follows another on models that stay loaded."""
    plan, models = tiny
    names = {role: name_of(plan, role) for role in plan.method.roles}
    memo = Memo()
    runs = []
    for delta in (0.9, 0.7):
        chosen = replace(plan, method=make_plan(compose_config(f"delta={delta}")).method)
        for asked in (models, RunMemo(memo, names, plan.engine).models(models)):
            loop.run_until_complete(plan.engine.forget())
            solutions = loop.run_until_complete(solve_all(chosen, asked, 10))
            runs.append([[(outline(s), [p.usage for p in s.proposals])] for s in solutions])
    assert runs[0] == runs[1]
    assert runs[2] == runs[3]
    assert runs[0] != runs[2]


def test_what_engines_read_is_not_left_in_this_process(tiny: tuple[Plan, Models]) -> None:
    """The engines of a later run may be more, or fewer, and share the cores in another way."""
    assert not {"TORCHDYNAMO_DISABLE", "VLLM_CPU_OMP_THREADS_BIND"} & os.environ.keys()
