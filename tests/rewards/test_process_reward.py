"""Process rewards: one score per call, of the newest step, never of a text that was cut."""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer

from rsd.chat import chat_text
from rsd.engines.base import Classification, Context, ModelSource
from rsd.engines.transformers import TransformersEngine
from rsd.errors import ModelError, PRMContextError, RewardError
from rsd.models import load_models
from rsd.plan import make_plan
from rsd.records import Usage
from rsd.rewards.base import ProcessReward
from rsd.rewards.chat import ChatPRM
from rsd.sigmoid import sigmoid
from tests.conftest import compose_config

QUESTION = "Mia has 47 shells. She finds 25 more. How many shells does Mia have now?"
STEPS = ["Mia has 47+25=72 shells.\n\n", "The answer is \\boxed{72}."]


@dataclass
class FixedClassifier:
    """Gives `logit` for whatever it is shown, and remembers that."""

    logit: float
    labels: int = 1
    tokenizer: Any = field(default_factory=lambda: AutoTokenizer.from_pretrained(compose_config().prm.path))
    shown: list[Context] = field(default_factory=list)

    async def classify(self, context: Context) -> Classification:
        self.shown.append(context)
        return Classification(logits=(self.logit,) * self.labels, usage=Usage(passes=1))


def score(prm: ProcessReward, steps: Sequence[str]) -> float:
    return asyncio.run(prm.score(QUESTION, steps)).value


def test_the_reward_is_the_sigmoid_of_the_logit() -> None:
    for logit in (-800.0, -1.5, 0.0, 2.0, 800.0):
        prm = ProcessReward(ChatPRM(), FixedClassifier(logit), max_length=1024)
        expected = 1 / (1 + math.exp(-logit)) if logit > -700 else 0.0
        assert score(prm, STEPS) == pytest.approx(expected)


def test_the_model_reads_what_it_was_trained_on() -> None:
    """The adapter's tokens are those of the training text: prompt and solution, one tokenisation."""
    classifier = FixedClassifier(0.0)
    score(ProcessReward(ChatPRM(), classifier, max_length=1024), STEPS)
    (context,) = classifier.shown
    text = chat_text(classifier.tokenizer, QUESTION) + "".join(STEPS)
    assert [*context.prompt, *context.response] == classifier.tokenizer(text).input_ids


def test_the_tiny_prm_scores_as_plain_transformers_does() -> None:
    plan = make_plan(compose_config("limit=1"))
    assert isinstance(plan.adapter, ChatPRM)

    async def rewards() -> list[float]:
        prm = load_models(plan).prm
        assert prm is not None
        try:
            return [(await prm.score(QUESTION, STEPS[:n])).value for n in (1, 2)]
        finally:
            await plan.engine.close()

    path = plan.config.prm.path
    model, tokenizer = AutoModelForSequenceClassification.from_pretrained(path), AutoTokenizer.from_pretrained(path)
    for n, reward in zip((1, 2), asyncio.run(rewards()), strict=True):
        ids = tokenizer(chat_text(tokenizer, QUESTION) + "".join(STEPS[:n]), return_tensors="pt").input_ids
        with torch.inference_mode():
            assert reward == pytest.approx(float(model(ids).logits.sigmoid()), abs=1e-5)


class DigitPRM(ChatPRM):
    """Reads a language model: whether 7 rather than 3 would come next."""

    labels = 2
    label_tokens = ("3", "7")

    def value(self, logits: Sequence[float]) -> float:
        return sigmoid(logits[1] - logits[0])


def digit_source(**changes: Any) -> ModelSource:
    path = compose_config().model.policies["draft"].path
    values = {"key": "prm.path", "path": path, "revision": None, "dtype": "float32", "context": 512}
    return ModelSource(**{**values, "label_tokens": DigitPRM.label_tokens, **changes})


def test_a_language_model_is_read_at_the_logits_of_its_label_tokens() -> None:
    source, engine = digit_source(), TransformersEngine(threads=1)
    found = asyncio.run(
        ProcessReward(DigitPRM(), engine.load_classifier(source), max_length=512).score(QUESTION, STEPS)
    )
    model, tokenizer = AutoModelForCausalLM.from_pretrained(source.path), AutoTokenizer.from_pretrained(source.path)
    ids = tokenizer(chat_text(tokenizer, QUESTION) + "".join(STEPS), return_tensors="pt").input_ids
    with torch.inference_mode():
        chances = model(ids).logits[0, -1, tokenizer.convert_tokens_to_ids(["3", "7"])].softmax(-1)
    assert found.value == pytest.approx(float(chances[1]), abs=1e-5)
    rows, width = 2, model.config.hidden_size  # of the output layer
    assert engine.shapes()["prm"].parameters == sum(p.numel() for p in model.parameters()) + rows * width


def test_label_tokens_must_be_in_the_vocabulary_of_a_language_model() -> None:
    with pytest.raises(ModelError, match=r"prm\.path: the tokenizer of .* has no token ▁-, which prm\.adapter reads"):
        TransformersEngine(threads=1).load_classifier(digit_source(label_tokens=("▁-", "▁+")))
    with pytest.raises(ModelError, match=r"is a Qwen2ForSequenceClassification, where prm\.adapter reads a language"):
        TransformersEngine(threads=1).load_classifier(digit_source(path=compose_config().prm.path))


def test_beyond_the_context_nothing_is_cut_and_nothing_is_scored() -> None:
    classifier = FixedClassifier(0.0)
    length = len(classifier.tokenizer(chat_text(classifier.tokenizer, QUESTION) + "".join(STEPS)).input_ids)
    assert score(ProcessReward(ChatPRM(), classifier, max_length=length), STEPS) == 0.5
    with pytest.raises(PRMContextError, match=f"{length} tokens exceed prm.max_length={length - 1}"):
        score(ProcessReward(ChatPRM(), classifier, max_length=length - 1), STEPS)
    assert len(classifier.shown) == 1


def test_what_is_no_reward_is_an_error() -> None:
    with pytest.raises(RewardError, match=r"gave nan for step 2, which is no reward in \[0, 1\]"):
        score(ProcessReward(ChatPRM(), FixedClassifier(math.nan), max_length=1024), STEPS)


def test_a_head_of_another_width_is_refused_at_load() -> None:
    with pytest.raises(ModelError, match="head has 2 outputs where ChatPRM reads 1"):
        ProcessReward(ChatPRM(), FixedClassifier(0.0, labels=2), max_length=1024)


def test_usage_counts_the_newest_steps_tokens() -> None:
    classifier = FixedClassifier(0.0)
    prm = ProcessReward(ChatPRM(), classifier, max_length=1024)
    usage = asyncio.run(prm.score(QUESTION, STEPS)).usage
    assert (usage.verified, usage.passes) == (len(classifier.tokenizer(STEPS[1]).input_ids), 1)
