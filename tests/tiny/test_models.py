"""The shipped models are plain checkpoints that do what they are for."""

import json
import unicodedata
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedTokenizerFast,
)

from rsd.chat import chat_text
from rsd.store import read_grades
from rsd.tiny import measure, policies
from rsd.tiny.measure import DELTA, WEIGHTS, calibration, discrimination, scores
from rsd.tiny.rollouts import Rollout, sample_rollouts
from rsd.tiny.tokenizer import build_tokenizer
from rsd.tiny.train import NAMES, REWARDS
from tests.conftest import Run


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    loaded: PreTrainedTokenizerFast = AutoTokenizer.from_pretrained(WEIGHTS / "m")
    return loaded


@pytest.fixture(scope="module")
def drafted(tokenizer: PreTrainedTokenizerFast) -> list[Rollout]:
    """Solutions that S sampled for problems that no training saw."""
    draft = AutoModelForCausalLM.from_pretrained(WEIGHTS / "s")
    return sample_rollouts(draft, tokenizer, policies.problems("test/s", 150, set()), temperature=0.7, seed=0)


def test_all_weights_together_are_small() -> None:
    assert sum(path.stat().st_size for path in WEIGHTS.rglob("*")) < 25e6


@pytest.mark.parametrize("name", NAMES)
def test_every_model_is_a_plain_qwen2_checkpoint_with_the_same_tokenizer(name: str) -> None:
    config = json.loads((WEIGHTS / name / "config.json").read_text())
    reward = name in REWARDS
    assert config["architectures"] == ["Qwen2ForSequenceClassification" if reward else "Qwen2ForCausalLM"]
    assert config["hidden_size"] // config["num_attention_heads"] == 32
    model = (AutoModelForSequenceClassification if reward else AutoModelForCausalLM).from_pretrained(WEIGHTS / name)
    assert model.dtype == torch.float32
    assert model.score.weight.shape[0] == 1 if reward else model.generation_config.eos_token_id is not None
    shipped = AutoTokenizer.from_pretrained(WEIGHTS / name)
    assert shipped.get_vocab() == build_tokenizer(policies.SEED).get_vocab()
    assert shipped.eos_token_id == config["eos_token_id"]


@given(st.text())
def test_any_text_survives_the_tokenizer(tokenizer: PreTrainedTokenizerFast, text: str) -> None:
    text = unicodedata.normalize("NFC", text)  # as Qwen2's tokenizer does
    ids = tokenizer(text, add_special_tokens=False).input_ids
    assert tokenizer.decode(ids, clean_up_tokenization_spaces=False) == text


def test_digits_are_tokens_and_a_step_ends_in_one(tokenizer: PreTrainedTokenizerFast) -> None:
    pieces = tokenizer.convert_ids_to_tokens(tokenizer("Mia has 47+25=72 shells.\n\n").input_ids)
    assert [piece for piece in pieces if any(c.isdigit() for c in piece)] == ["4", "7", "2", "5", "7", "2"]
    assert pieces[-1] == ".ĊĊ"


def test_the_chat_template_is_the_configured_prompt(tokenizer: PreTrainedTokenizerFast) -> None:
    assert chat_text(tokenizer, "How?") == "<|im_start|>user\nHow?<|im_end|>\n<|im_start|>assistant\n"


def test_a_larger_policy_is_better_and_all_answer_in_the_taught_form(tokenizer: PreTrainedTokenizerFast) -> None:
    asked = policies.problems("test", 100, set())
    right = []
    for size in policies.CYCLES:
        model = AutoModelForCausalLM.from_pretrained(WEIGHTS / size)
        rollouts = sample_rollouts(model, tokenizer, asked, temperature=0, seed=0)
        assert sum(rollout.steps[-1].startswith("The answer is \\boxed{") for rollout in rollouts) >= 95
        right.append(sum(rollout.solved for rollout in rollouts))
    small, medium, large = right
    assert small + 10 <= medium <= large


@pytest.mark.parametrize("name", REWARDS)
def test_a_reward_model_tells_right_from_wrong_but_not_perfectly(
    name: str, tokenizer: PreTrainedTokenizerFast, drafted: list[Rollout]
) -> None:
    assert 0.8 < discrimination(scores(name, drafted, tokenizer))["AUC"] < 0.995


def test_an_accepted_wrong_step_spoils_the_answer(drafted: list[Rollout]) -> None:
    assert any(not all(rollout.labels) for rollout in drafted)
    for rollout in drafted:
        assert list(rollout.labels) == sorted(rollout.labels, reverse=True)
        assert rollout.solved <= all(rollout.labels)


def test_discrimination_and_calibration_of_known_probabilities() -> None:
    probability = torch.tensor([0.9, 0.8, 0.75, 0.1]).numpy()
    label = torch.tensor([1, 0, 1, 0]).numpy()
    found = discrimination((probability, label))
    assert found["AUC"] == 3 / 4
    assert found["right"] == 1 / 2
    assert found["kept"] == sum(probability >= DELTA) / 4
    assert found["right among the kept"] == pytest.approx(2 / 3)
    assert found["right ones kept"] == 1
    assert found["Brier"] == pytest.approx((0.01 + 0.64 + 0.0625 + 0.01) / 4)
    assert calibration((probability, label))[3] == (1, 1.0)
    assert calibration((probability, label))[4] == (2, 0.5)


def test_accuracy_is_tabled_by_level_from_stored_runs(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    records = run("method=single", "method.role=draft", "model=tiny_l", "benchmark=tiny_long", "limit=30")
    monkeypatch.setattr("sys.argv", ["measure", str(tmp_path / "runs")])
    measure.main()
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("| draft-alone-tiny-l |"))
    grades = read_grades(next((tmp_path / "runs" / "tiny_long").iterdir()))
    assert len(grades) == len(records) == 30
    assert f"{sum(grade.correct for grade in grades.values()) / 0.3:.1f} [" in row.split("|")[-2]
