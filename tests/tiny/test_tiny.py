"""The tiny family: its problems are right, its tokenizer loses nothing, its models do what they are for."""

import json
import re
import unicodedata
from pathlib import Path
from random import Random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from rsd.tiny import benchmark, train
from rsd.tiny.problems import LARGEST, LEVELS, chain
from rsd.tiny.rollouts import chat_prompt, sample_rollouts
from rsd.tiny.tokenizer import build_tokenizer

WEIGHTS = train.HOME / "weights"
STATEMENT = re.compile(r"(\w+) has (\d+)([-+*/])(\d+)=(\d+) (\w+)\.\n\n")


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    loaded: PreTrainedTokenizerFast = AutoTokenizer.from_pretrained(WEIGHTS / "m")
    return loaded


@given(seed=st.integers(0, 2**32), level=st.sampled_from(LEVELS))
def test_reference_solutions_are_right(seed: int, level: int) -> None:
    problem = chain(Random(seed), level)
    asked = [int(number) for number in re.findall(r"\d+", problem.question)]
    value = asked[0]
    assert len(problem.steps) == level + 1
    for step, number in zip(problem.steps, asked[1:], strict=False):
        match = STATEMENT.fullmatch(step)
        assert match
        _, left, sign, right, result, _ = match.groups()
        exact = {"+": value + number, "-": value - number, "*": value * number, "/": value / number}[sign]
        assert (int(left), int(right), int(result)) == (value, number, exact)
        assert 1 <= exact <= LARGEST
        value = int(result)
    assert problem.steps[-1] == f"The answer is \\boxed{{{value}}}."
    assert problem.answer == str(value)
    assert problem.level == level == len(asked) - 1


def test_labels_are_exact_and_an_error_stays() -> None:
    problem = chain(Random(1), 3)
    steps = list(problem.steps)
    assert problem.correct(steps) == [True] * 4
    assert problem.correct([steps[0], steps[1].replace("=", "=1"), *steps[2:]]) == [True, False, False, False]
    assert problem.correct([*steps, "More."]) == [True] * 4 + [False]
    thing = problem.question.split()[3].rstrip(".")
    assert problem.correct([step.replace(thing, "things") for step in steps]) == [True] * 4
    assert not any(problem.correct([step.replace("=", " is ") for step in steps][:1]))


def test_the_shipped_benchmark_is_what_its_script_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "PATH", tmp_path / "data" / "tiny_chain.jsonl")
    shipped = (train.HOME / "data" / "tiny_chain.jsonl").read_bytes()
    benchmark.main()
    assert benchmark.PATH.read_bytes() == shipped


def test_training_never_sees_a_benchmark_question() -> None:
    held_out = train.held_out()
    assert len(held_out) == 500
    first = train.problems("policy/0", 64, set())
    kept = train.problems("policy/0", 64, {problem.question for problem in first[:10]})
    assert kept[:54] == first[10:]
    seen = {problem.question for step in range(200) for problem in train.problems(f"policy/{step}", 64, held_out)}
    assert not seen & held_out


@given(st.text())
def test_any_text_survives_the_tokenizer(text: str) -> None:
    text = unicodedata.normalize("NFC", text)  # as Qwen2's tokenizer does
    tokenizer = AutoTokenizer.from_pretrained(WEIGHTS / "m")
    ids = tokenizer(text, add_special_tokens=False).input_ids
    assert tokenizer.decode(ids, clean_up_tokenization_spaces=False) == text


def test_digits_are_tokens_and_a_step_ends_in_one(tokenizer: PreTrainedTokenizerFast) -> None:
    pieces = tokenizer.convert_ids_to_tokens(tokenizer("Mia has 47+25=72 shells.\n\n").input_ids)
    assert [piece for piece in pieces if any(c.isdigit() for c in piece)] == ["4", "7", "2", "5", "7", "2"]
    assert pieces[-1] == ".ĊĊ"


def test_the_shipped_tokenizer_is_what_its_script_builds(tokenizer: PreTrainedTokenizerFast) -> None:
    assert build_tokenizer(train.SEED).get_vocab() == tokenizer.get_vocab()


def test_the_chat_template_is_the_configured_prompt(tokenizer: PreTrainedTokenizerFast) -> None:
    assert chat_prompt(tokenizer, "How?") == "<|im_start|>user\nHow?<|im_end|>\n<|im_start|>assistant\n"


@pytest.mark.parametrize("name", ["s", "m"])
def test_policies_are_plain_qwen2_checkpoints(name: str) -> None:
    config = json.loads((WEIGHTS / name / "config.json").read_text())
    assert config["architectures"] == ["Qwen2ForCausalLM"]
    assert config["hidden_size"] // config["num_attention_heads"] in (32, 64)
    model = AutoModelForCausalLM.from_pretrained(WEIGHTS / name)
    assert model.dtype == torch.float32
    assert model.generation_config.eos_token_id == AutoTokenizer.from_pretrained(WEIGHTS / name).eos_token_id


def test_the_larger_policy_is_better_and_both_answer_in_the_taught_form(tokenizer: PreTrainedTokenizerFast) -> None:
    asked = train.problems("test", 100, set())
    right = {}
    for name in ("s", "m"):
        model = AutoModelForCausalLM.from_pretrained(WEIGHTS / name)
        rollouts = sample_rollouts(model, tokenizer, asked, temperature=0, seed=0)
        assert sum(rollout.steps[-1].startswith("The answer is \\boxed{") for rollout in rollouts) >= 95
        right[name] = sum(rollout.labels[-1] for rollout in rollouts)
    assert right["s"] + 10 <= right["m"]


def test_the_reward_model_tells_right_steps_from_wrong_ones(tokenizer: PreTrainedTokenizerFast) -> None:
    """Step-level AUC on fresh samples of the draft: the chance that a right step outranks a wrong one."""
    prm = AutoModelForSequenceClassification.from_pretrained(WEIGHTS / "prm_m")
    draft = AutoModelForCausalLM.from_pretrained(WEIGHTS / "s")
    right, wrong = [], []
    for rollout in sample_rollouts(draft, tokenizer, train.problems("auc", 60, set()), temperature=0.7, seed=0):
        text = chat_prompt(tokenizer, rollout.question)
        for step, label in zip(rollout.steps, rollout.labels, strict=True):
            text += step
            with torch.inference_mode():
                logit = float(prm(tokenizer(text, return_tensors="pt", add_special_tokens=False).input_ids).logits)
            (right if label else wrong).append(logit)
    pairs = [(a > b) + 0.5 * (a == b) for a in right for b in wrong]
    assert sum(pairs) / len(pairs) > 0.8


def test_training_runs_from_nothing_and_an_interrupted_one_ends_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tokenizer: PreTrainedTokenizerFast
) -> None:
    monkeypatch.setattr(train, "SAVE_EVERY", 2)
    whole = train.train_policy("s", tokenizer, steps=6, checkpoint=tmp_path / "whole.pt")
    draw = train.problems

    def interrupted(key: str, count: int, excluded: set[str]) -> list[object]:
        if key == "policy/5":
            raise KeyboardInterrupt
        return list(draw(key, count, excluded))

    monkeypatch.setattr(train, "problems", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train.train_policy("s", tokenizer, steps=6, checkpoint=tmp_path / "broken.pt")
    monkeypatch.setattr(train, "problems", draw)
    resumed = train.train_policy("s", tokenizer, steps=6, checkpoint=tmp_path / "broken.pt")
    for a, b in zip(whole.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(a, b)


def test_the_whole_family_trains_in_miniature(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for size, shape in train.SHAPES.items():
        monkeypatch.setitem(train.SHAPES, size, {**shape, "num_hidden_layers": 1})
    out, scratch = tmp_path / "weights", tmp_path / "scratch"
    monkeypatch.setattr("sys.argv", ["train", "--smoke", "--out", str(out), "--scratch", str(scratch)])
    train.main()
    for name in ("s", "m"):
        AutoModelForCausalLM.from_pretrained(out / name)
    prm = AutoModelForSequenceClassification.from_pretrained(out / "prm_m")
    assert prm.config.num_labels == 1
    assert prm.score.weight.shape[0] == 1


def test_a_reward_model_begins_as_the_policy_of_its_size(tokenizer: PreTrainedTokenizerFast, tmp_path: Path) -> None:
    shape = {**train.SHAPES["s"], "num_hidden_layers": 1}
    policy = Qwen2ForCausalLM(Qwen2Config(**shape, num_key_value_heads=2, vocab_size=len(tokenizer)))
    prm = train.train_prm(policy, [], tokenizer, steps=0, checkpoint=tmp_path / "none.pt", label="prm")
    for own, origin in zip(prm.model.parameters(), policy.model.parameters(), strict=True):
        assert torch.equal(own, origin)
