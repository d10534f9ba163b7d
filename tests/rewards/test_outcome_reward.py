"""Outcome rewards: the chat that the model card reads, without bounds, and only where bounds do not matter."""

import asyncio
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from rsd.engines.transformers import TransformersEngine
from rsd.errors import ConfigError
from rsd.models import source_of
from rsd.plan import make_plan
from rsd.rewards.base import ProcessReward
from rsd.rewards.outcome import ChatORM
from rsd.sigmoid import sigmoid
from tests.conftest import Run, compose_config
from tests.rewards.test_process_reward import FixedClassifier

QUESTION = "Mia has 47 shells. She finds 25 more. She loses 2. How many shells does Mia have now?"
STEPS = ["Mia has 47+25=72 shells.\n\n", "Mia has 72-2=70 shells.\n\n", "The answer is \\boxed{70}."]
PATH = compose_config("prm=tiny_orm").prm.path


def conversation(steps: list[str]) -> list[int]:
    """The finished chat with the response so far, in one piece, by the tokenizer's own template."""
    tokenizer = AutoTokenizer.from_pretrained(PATH)
    messages = [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": "".join(steps).strip()}]
    ids: list[int] = tokenizer.apply_chat_template(messages, return_dict=False)
    return ids


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_model_reads_the_response_so_far_as_a_finished_one(count: int) -> None:
    classifier = FixedClassifier(0.0)
    prm = ProcessReward(ChatORM(), classifier, max_length=1024)
    usage = asyncio.run(prm.score(QUESTION, STEPS[:count])).usage
    (context,) = classifier.shown
    assert [*context.prompt, *context.response] == conversation(STEPS[:count])
    closing = len(classifier.tokenizer("<|im_end|>\n").input_ids)
    assert usage.verified == len(classifier.tokenizer(STEPS[count - 1].rstrip()).input_ids) + closing


def test_the_reward_is_the_logit_of_the_plain_model() -> None:
    source = source_of(make_plan(compose_config("prm=tiny_orm", "delta=0")), "prm")
    plain = AutoModelForSequenceClassification.from_pretrained(PATH)

    async def rewards(steps: list[str]) -> list[float]:
        engine = TransformersEngine(threads=1)
        prm = ProcessReward(ChatORM(), engine.load_classifier(source), max_length=1024)
        found = [(await prm.score(QUESTION, steps[:n])).value for n in (1, 2, 3)]
        await engine.close()
        return found

    found = asyncio.run(rewards(STEPS))
    with torch.inference_mode():
        expected = [float(plain(torch.tensor([conversation(STEPS[:n])])).logits[0, 0]) for n in (1, 2, 3)]
    assert found == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    "overrides",
    [
        ["weighting=clipping"],
        ["weighting=sigmoidal"],
        ["weighting=reward_ratio"],
        ["method=best_of_n", "method.aggregate=prod"],
    ],
)
def test_what_needs_rewards_from_0_to_1_refuses_others(overrides: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"reads rewards in \[0, 1\], and those of prm=tiny_orm have no bounds; set"):
        make_plan(compose_config("prm=tiny_orm", *overrides))
    squashed = make_plan(compose_config("prm=tiny_orm", "reward_transform=sigmoid", *overrides))
    make_plan(compose_config(*overrides))  # a PRM's rewards lie there
    assert squashed.adapter is not None
    assert squashed.adapter.bounds == (0, 1)
    assert squashed.adapter.value([-1.5]) == sigmoid(-1.5)


def test_any_finite_threshold_fits_a_reward_without_bounds() -> None:
    assert make_plan(compose_config("prm=tiny_orm", "delta=-12.5")).delta == -12.5
    with pytest.raises(ConfigError, match=r"delta=-12\.5 is outside the reward's range \[0, 1\]"):
        make_plan(compose_config("prm=tiny_orm", "reward_transform=sigmoid", "delta=-12.5"))
    with pytest.raises(ConfigError, match=r"reward_transform=sigmoid is for rewards without bounds; .* in \[0, 1\]"):
        make_plan(compose_config("prm=tiny_m", "reward_transform=sigmoid"))


def test_a_transform_is_another_run_and_the_sigmoid_of_the_same_rewards(run: Run, tmp_path: Path) -> None:
    plain = run("prm=tiny_orm", "delta=0", "limit=8")
    squashed = run("prm=tiny_orm", "delta=0.5", "reward_transform=sigmoid", "limit=8")
    assert len(list(tmp_path.glob("runs/*/*/manifest.json"))) == 2
    assert {key: record.response for key, record in plain.items()} == {k: r.response for k, r in squashed.items()}
    pairs = [
        (one.reward, other.reward)
        for key in plain
        for one, other in zip(plain[key].proposals, squashed[key].proposals, strict=True)
        if one.reward is not None and other.reward is not None
    ]
    assert min(reward for reward, _ in pairs) < 0
    assert max(reward for reward, _ in pairs) > 1
    assert [other for _, other in pairs] == pytest.approx([sigmoid(reward) for reward, _ in pairs])


def test_skyworks_model_is_read_so() -> None:
    prm = compose_config("prm=skywork_orm_8b").prm
    assert (prm.path, prm.adapter) == ("Skywork/Skywork-Reward-Llama-3.1-8B-v0.2", "rsd.rewards.outcome.ChatORM")
    assert prm.parameters == 8_030_261_248 - 128_256 * 4096 + 4096
