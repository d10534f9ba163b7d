"""Training resumes where it was broken off, and the whole family can be made in miniature."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    PreTrainedTokenizerBase,
    Qwen2ForCausalLM,
)

from rsd.chat import chat_text
from rsd.tiny import optimise, policies, rewards, train
from rsd.tiny.optimise import IGNORE
from rsd.tiny.rollouts import Rollout
from rsd.tiny.tokenizer import build_tokenizer

CYCLES = [(3, 1e-3), (4, 1e-3)]
ROLLOUT = Rollout(
    question="How many?",
    steps=("Mia has 1+1=2 pens.\n\n", "Mia has 2+1=4 pens.\n\n", "The answer is \\boxed{4}."),
    labels=(True, False, False),
    solved=False,
)


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerBase:
    return build_tokenizer(policies.SEED)


@pytest.fixture
def flat(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every policy with a single layer."""
    for size, shape in policies.SHAPES.items():
        monkeypatch.setitem(policies.SHAPES, size, {**shape, "num_hidden_layers": 1})


def same(one: torch.nn.Module, other: torch.nn.Module) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


@pytest.mark.usefixtures("flat")
def test_an_interrupted_training_ends_as_an_uninterrupted_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tokenizer: PreTrainedTokenizerBase
) -> None:
    monkeypatch.setattr(optimise, "SAVE_EVERY", 2)
    whole, _ = policies.train_policy("s", tokenizer, cycles=CYCLES, scratch=tmp_path / "whole")
    draw = policies.problems

    def interrupted(key: str, count: int, excluded: set[str]) -> list[object]:
        if key == "policy/6":
            raise KeyboardInterrupt
        return list(draw(key, count, excluded))

    monkeypatch.setattr(policies, "problems", interrupted)
    with pytest.raises(KeyboardInterrupt):
        policies.train_policy("s", tokenizer, cycles=CYCLES, scratch=tmp_path / "broken")
    asked = []
    monkeypatch.setattr(policies, "problems", lambda key, *rest: asked.append(key) or draw(key, *rest))
    resumed, seconds = policies.train_policy("s", tokenizer, cycles=CYCLES, scratch=tmp_path / "broken")
    assert asked == ["policy/5", "policy/6"]
    assert seconds > 0
    assert same(whole, resumed)


@pytest.mark.usefixtures("flat")
def test_a_checkpoint_of_another_training_is_not_gone_on_from(
    tmp_path: Path, tokenizer: PreTrainedTokenizerBase
) -> None:
    policies.train_policy("s", tokenizer, cycles=[(1, 1e-3)], scratch=tmp_path)
    longer, _ = policies.train_policy("s", tokenizer, cycles=[(2, 1e-3)], scratch=tmp_path)
    fresh, _ = policies.train_policy("s", tokenizer, cycles=[(2, 1e-3)], scratch=tmp_path / "fresh")
    assert same(longer, fresh)


def test_the_whole_family_trains_in_miniature_and_a_second_time_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flat: None
) -> None:
    out = tmp_path / "weights"
    monkeypatch.setattr("sys.argv", ["train", "--smoke", "--out", str(out), "--scratch", str(tmp_path / "scratch")])
    train.main()
    for name in train.NAMES:
        kind = AutoModelForSequenceClassification if name in train.REWARDS else AutoModelForCausalLM
        model = kind.from_pretrained(out / name)
        assert all(torch.isfinite(weight).all() for weight in model.parameters())
    assert list(json.loads((out / "training.json").read_text())) == list(train.NAMES)
    files = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}

    def refuse(*_: object, **__: object) -> Iterator[object]:
        raise AssertionError("what was done is done again")

    monkeypatch.setattr(train, "sample_rollouts", refuse)
    monkeypatch.setattr(optimise.torch.optim.Muon, "step", refuse)
    train.main()
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == files


@pytest.mark.parametrize("row", [rewards.prm_row, rewards.orm_row])
def test_a_reward_model_begins_as_the_policy_of_its_size(
    row: rewards.Row, tokenizer: PreTrainedTokenizerBase, tmp_path: Path, flat: None
) -> None:
    policy: Qwen2ForCausalLM = policies.untrained("s", tokenizer)
    model, _ = rewards.train_reward(policy, [], row, tokenizer, steps=0, checkpoint=tmp_path / "no.pt", label="")
    assert same(model.model, policy.model)
    assert model.config.num_labels == 1


def test_a_process_reward_is_read_at_the_end_of_every_step(tokenizer: PreTrainedTokenizerBase) -> None:
    ids, labels = rewards.prm_row(tokenizer, ROLLOUT)
    read = [i for i, label in enumerate(labels) if label != IGNORE]
    assert [labels[i] for i in read] == [1, 0, 0]
    beginnings = ["".join(ROLLOUT.steps[: n + 1]) for n in range(3)]
    prompt = chat_text(tokenizer, ROLLOUT.question)
    assert [tokenizer.decode(ids[: i + 1]) for i in read] == [prompt + text for text in beginnings]


def test_an_outcome_reward_is_read_at_the_end_of_the_conversation(tokenizer: PreTrainedTokenizerBase) -> None:
    ids, labels = rewards.orm_row(tokenizer, ROLLOUT)
    assert labels == [IGNORE] * (len(ids) - 1) + [0]
    assert tokenizer.decode(ids) == (chat_text(tokenizer, ROLLOUT.question) + "".join(ROLLOUT.steps) + "<|im_end|>\n")
