"""Reward models in vLLM, on tiny checkpoints that are laid out as the real ones are."""

import asyncio
import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from rsd.engines.base import Engine, ModelSource
from rsd.engines.needs import Serving
from rsd.engines.transformers import TransformersEngine
from rsd.engines.vllm import VLLMEngine
from rsd.errors import ModelError, PRMContextError
from rsd.records import Usage
from rsd.rewards.base import Adapter, ProcessReward
from rsd.rewards.outcome import ChatORM
from rsd.rewards.qwen import QwenPRM
from rsd.rewards.shepherd import ShepherdPRM
from rsd.rewards.skywork import SkyworkPRM
from tests.vllm.conftest import BLOCK, GIB_OF_CACHE

pytestmark = pytest.mark.vllm
QUESTION = "Janet has 16 eggs and eats 3. How many are left?"
TEXTS = {
    "one step": ["She starts with 16 eggs.\n\n"],
    "three steps": ["She starts with 16 eggs.\n\n", "She eats 3.\n\n", "The answer is \\boxed{13}."],
    "an empty step": ["She starts with 16 eggs.\n\n", "\n\n"],
    "extra newlines": ["She starts with 16 eggs.\n\n\n\n", "So 16-3=13:\n\n\n"],
    "at the limit of the context": ["16-3=13. " * 105 + "\n\n", "So 13.\n\n"],
}
ADAPTERS: dict[str, Adapter] = {
    "skywork": SkyworkPRM(), "qwen_prm": QwenPRM(), "shepherd": ShepherdPRM(), "skywork_orm": ChatORM()
}  # fmt: skip
LIMIT = 1024  # tokens of a reward model's context in these tests


@pytest.fixture(scope="module", params=ADAPTERS)
def scored(
    request: pytest.FixtureRequest, loop: asyncio.AbstractEventLoop
) -> Iterator[tuple[Adapter, Path, ProcessReward]]:
    """A reward model of each real layout served by vLLM, with its adapter and checkpoint (RLHFlow's: test_servers)."""
    adapter = ADAPTERS[request.param]
    path = request.getfixturevalue(request.param)
    engine = VLLMEngine(prm=Serving(args={"block_size": BLOCK}), cpu_kv_cache_gib=GIB_OF_CACHE)
    yield adapter, path, reward_model(engine, adapter, path)
    loop.run_until_complete(engine.close())


def reward_model(engine: Engine, adapter: Adapter, path: Path) -> ProcessReward:
    given = {"path": str(path), "revision": None, "dtype": "float32", "context": LIMIT}
    source = ModelSource(key="prm.path", **given, label_tokens=adapter.label_tokens)
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
