"""The vLLM engine on the tiny family, and on tiny checkpoints laid out as the real reward models are."""

import asyncio
import itertools
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import PreTrainedTokenizerBase

from rsd.engines.base import Context, Engine, Models, ModelSource, PolicyModel
from rsd.engines.transformers import TransformersEngine
from rsd.engines.vllm import Serving, VLLMEngine
from rsd.errors import ModelError, PRMContextError
from rsd.methods.trajectory import Trajectory
from rsd.models import load_models
from rsd.plan import Plan, make_plan
from rsd.records import Proposal, Role, Solution, Usage
from rsd.rewards.base import Adapter, ProcessReward
from rsd.rewards.qwen import QwenPRM
from rsd.rewards.skywork import SkyworkPRM
from tests.conftest import ROOT, command, compose_config, environment
from tests.vllm.conftest import MATH, WRITTEN, orphans

pytestmark = pytest.mark.vllm
BLOCK = 32  # tokens of a block of the prefix cache, the least that vLLM allows on a CPU
QUESTION = "Janet has 16 eggs and eats 3. How many are left?"
TEXTS = {
    "one step": ["She starts with 16 eggs.\n\n"],
    "three steps": ["She starts with 16 eggs.\n\n", "She eats 3.\n\n", "The answer is \\boxed{13}."],
    "an empty step": ["She starts with 16 eggs.\n\n", "\n\n"],
    "extra newlines": ["She starts with 16 eggs.\n\n\n\n", "So 16-3=13:\n\n\n"],
    "at the limit of the context": ["16-3=13. " * 105 + "\n\n", "So 13.\n\n"],
}
STEP = tuple(range(20, 32))  # tokens that neither model would write
LIMIT = 1024  # tokens of a reward model's context in these tests


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """One event loop for all tests: an engine belongs to the loop that it was first used in."""
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@pytest.fixture(scope="module")
def tiny(loop: asyncio.AbstractEventLoop) -> Iterator[tuple[Plan, Models]]:
    """The tiny family served by vLLM, two copies of its draft."""
    args = f"args={{block_size: {BLOCK}}}"
    plan = make_plan(
        compose_config(
            "engine=vllm", "engine.draft.replicas=2", *(f"engine.{role}.{args}" for role in ("draft", "target", "prm"))
        )
    )
    yield plan, load_models(plan)
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
    plan, models = tiny
    served = loop.run_until_complete(solve_all(plan, models, 50))
    assert min(Counter(models.draft.replicas.of_prompt.values())[copy] for copy in (0, 1)) > 15
    embedded = make_plan(compose_config("engine=transformers"))
    expected = asyncio.run(solve_all(embedded, load_models(embedded), 50))
    assert [solution.end_reason for solution in served] == [solution.end_reason for solution in expected]
    for one, other in zip(served, expected, strict=True):
        assert outline(one) == outline(other)
        for a, b in zip(one.proposals, other.proposals, strict=True):
            assert a.reward == pytest.approx(b.reward, abs=1e-3)
            assert (a.logprob_draft or a.logprob_target) == pytest.approx(b.logprob_draft or b.logprob_target, abs=1e-3)


@pytest.mark.parametrize("engine", ["transformers", "vllm"])
def test_a_step_ends_where_the_tokenizer_merges_the_delimiter_into_a_token(
    engine: str, clockwork: Path, qwen: PreTrainedTokenizerBase, loop: asyncio.AbstractEventLoop
) -> None:
    settings = [f"model.draft.path={clockwork}", "model.draft.dtype=float32", "method=single", "method.stepwise=true"]
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


@pytest.fixture(scope="module", params=["skywork", "qwen_prm"])
def scored(
    request: pytest.FixtureRequest, loop: asyncio.AbstractEventLoop
) -> Iterator[tuple[Adapter, Path, ProcessReward]]:
    """A reward model of each real layout served by vLLM, with its adapter and checkpoint."""
    adapter: Adapter = SkyworkPRM() if request.param == "skywork" else QwenPRM()
    path = request.getfixturevalue(request.param)
    engine = VLLMEngine(prm=Serving(args={"block_size": BLOCK}))
    yield adapter, path, reward_model(engine, adapter, path)
    loop.run_until_complete(engine.close())


def reward_model(engine: Engine, adapter: Adapter, path: Path) -> ProcessReward:
    source = ModelSource(key="prm.path", path=str(path), revision=None, dtype="float32", context=LIMIT)
    engine.prepare({"prm": source}, logs=path.parent)
    return ProcessReward(adapter, engine.load_classifier(source), max_length=LIMIT)


def test_rewards_are_those_of_transformers(
    scored: tuple[Adapter, Path, ProcessReward], loop: asyncio.AbstractEventLoop
) -> None:
    adapter, path, served = scored

    async def rewards(prm: ProcessReward) -> dict[tuple[str, int], float]:
        return {
            (name, n): (await prm.score(QUESTION, steps[:n])).value
            for name, steps in TEXTS.items()
            for n in range(1, len(steps) + 1)
        }

    async def embedded() -> dict[tuple[str, int], float]:
        engine = TransformersEngine(threads=1)
        try:
            return await rewards(reward_model(engine, adapter, path))
        finally:
            await engine.close()

    found = loop.run_until_complete(rewards(served))
    assert found == pytest.approx(asyncio.run(embedded()), abs=1e-3)
    assert max(found.values()) - min(found.values()) > 0.05, "scores that do not differ prove nothing"


@pytest.mark.parametrize("layout", ["skywork", "qwen_prm"])
@pytest.mark.parametrize("suffix", ["safetensors", "bin"])
def test_a_head_that_is_missing_or_of_another_width_is_told_before_an_engine_starts(
    layout: str, suffix: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """vLLM itself would serve random numbers in its place."""
    whole = request.getfixturevalue(layout)
    weights = load_file(whole / "model.safetensors")
    last = "v_head.summary.weight" if layout == "skywork" else "score.2.weight"
    for name, changed in {"headless": None, "wide": torch.zeros(3, 64)}.items():
        broken = shutil.copytree(whole, tmp_path / name, ignore=shutil.ignore_patterns("*.safetensors"))
        other = {key: tensor for key, tensor in {**weights, last: changed}.items() if tensor is not None}
        if suffix == "bin":
            torch.save(other, broken / "pytorch_model.bin")
        else:
            save_file(other, broken / "model.safetensors")
        source = ModelSource(key="prm.path", path=str(broken), revision=None, dtype="float32", context=LIMIT)
        with pytest.raises(ModelError, match=rf"prm\.path: .*{name} lacks 1 .* {last} among them"):
            VLLMEngine().prepare({"prm": source}, logs=tmp_path)


def test_a_reward_model_reads_each_step_once(
    scored: tuple[Adapter, Path, ProcessReward], loop: asyncio.AbstractEventLoop
) -> None:
    _, _, prm = scored
    steps = [f"Step {i}: " + "she counts the eggs again, " * 6 + "\n\n" for i in range(6)]

    async def usages() -> list[Usage]:
        return [(await prm.score("A question of its own?", steps[:n])).usage for n in range(1, 7)]

    found = loop.run_until_complete(usages())
    for before, usage in itertools.pairwise(found):
        assert usage.cached is not None
        assert usage.cached >= before.prompt - BLOCK


def test_beyond_the_context_is_told_and_not_cut(
    scored: tuple[Adapter, Path, ProcessReward], loop: asyncio.AbstractEventLoop
) -> None:
    with pytest.raises(PRMContextError, match=f"exceed prm.max_length={LIMIT}"):
        loop.run_until_complete(scored[2].score(QUESTION, ["16-3=13. " * 200 + "\n\n"]))


@pytest.mark.parametrize("end", ["failure", "interrupt", "kill"])
def test_no_worker_outlives_a_run_that_is_broken_off(end: str, tmp_path: Path) -> None:
    overrides = ["engine=vllm", "method=single", "method.role=draft", f"results_dir={tmp_path}"]
    overrides += ["engine.draft.args={no_such_option: 1}"] if end == "failure" else []
    started = subprocess.Popen(
        command(*overrides), cwd=ROOT, env=environment(), start_new_session=True, stderr=subprocess.PIPE, text=True
    )
    if end != "failure":
        while not any(path.stat().st_size for path in tmp_path.glob("runs/tiny_chain/*/records.jsonl")):
            assert started.poll() is None
            time.sleep(0.2)
        started.send_signal(signal.SIGINT if end == "interrupt" else signal.SIGKILL)
    _, errors = started.communicate(timeout=120)
    assert (started.returncode, "".join(errors.splitlines()[-1:])[:25]) == {
        "failure": (2, "Error: model.draft.path: "),
        "interrupt": (130, "Error: Stopped by SIGINT;"),
        "kill": (-signal.SIGKILL, ""),
    }[end]
    assert not orphans(started.pid)
