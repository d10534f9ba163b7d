"""Reward models' heads in transformers: checkpoints whose architecture transformers itself does not have.

    model = load_classifier(source)
    logits = model.score(model.base_model(ids).last_hidden_state[:, -1])   # [rows, labels]

A checkpoint of another architecture loads as transformers' own sequence classifier; one whose labels are tokens as the
language model that it is, of whose output layer only the rows of those tokens are kept.
"""

from functools import cache
from typing import Any

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    Qwen2Config,
    Qwen2Model,
    Qwen2PreTrainedModel,
)

from rsd.engines.base import ModelSource
from rsd.engines.loading import load_config, load_model, load_tokenizer
from rsd.errors import ModelError
from rsd.records import Role


class Qwen2ForPrmModel(Qwen2PreTrainedModel):
    """Skywork-o1-Open-PRM: a linear value head with bias, ``v_head.summary`` in the checkpoint."""

    def __init__(self, config: Qwen2Config) -> None:
        super().__init__(config)
        self.model = Qwen2Model(config)
        self.v_head = torch.nn.ModuleDict({"summary": torch.nn.Linear(config.hidden_size, 1)})
        self.post_init()

    @property
    def score(self) -> torch.nn.Module:
        """The head: [rows, hidden] to [rows, 1]."""
        return self.v_head["summary"]


class Qwen2ForProcessRewardModel(Qwen2PreTrainedModel):
    """Qwen2.5-Math-PRM: two linear layers with a ReLU between them, ``score.0`` and ``score.2``."""

    def __init__(self, config: Qwen2Config) -> None:
        super().__init__(config)
        self.model = Qwen2Model(config)
        self.score = torch.nn.Sequential(
            torch.nn.Linear(config.hidden_size, config.hidden_size),
            torch.nn.ReLU(),
            torch.nn.Linear(config.hidden_size, 2),
        )
        self.post_init()


OWN: dict[str, Any] = {kind.__name__: kind for kind in (Qwen2ForPrmModel, Qwen2ForProcessRewardModel)}


def architecture(source: ModelSource) -> str:
    """The architecture that the checkpoint names. Raises ModelError where that has no head to read a reward from."""
    name = str(load_config(source).architectures[0])
    if source.label_tokens:
        if not name.endswith("ForCausalLM"):
            raise ModelError(f"{source.key}: {source.path} is a {name}, where prm.adapter reads a language model.")
        return name
    if name not in OWN and not name.endswith("ForSequenceClassification"):
        raise ModelError(f"{source.key}: {source.path} is a {name}, which has no reward head; name a reward model.")
    return name


def load_classifier(source: ModelSource) -> Any:
    """Load the classifier of `source` by the architecture that its checkpoint names. Raises ModelError."""
    name = architecture(source)
    if not source.label_tokens:
        return load_model(OWN.get(name, AutoModelForSequenceClassification), source)
    model, ids = load_model(AutoModelForCausalLM, source), label_ids(source)
    return _with_head(model, model.get_output_embeddings().weight.detach()[list(ids)].clone())


@cache  # a tokenizer of 128,000 tokens takes seconds to load, and every look at the head asks for these
def label_ids(source: ModelSource) -> tuple[int, ...]:
    """The ids of the tokens that are labels. Raises ModelError where the tokenizer lacks one."""
    vocabulary = load_tokenizer(source).get_vocab()
    absent = [token for token in source.label_tokens if token not in vocabulary]
    if absent:
        raise ModelError(
            f"{source.key}: the tokenizer of {source.path} has no token {absent[0]}, which prm.adapter reads."
        )
    return tuple(vocabulary[token] for token in source.label_tokens)


def classifier_from_config(source: ModelSource) -> Any:
    """The classifier of `source` with fresh weights. Raises ModelError."""
    kind, config = OWN.get(architecture(source)), load_config(source)
    if source.label_tokens:
        model = AutoModelForCausalLM.from_config(config)
        return _with_head(model, torch.empty(len(label_ids(source)), config.hidden_size))
    return kind(config) if kind else AutoModelForSequenceClassification.from_config(config)


def _with_head(model: Any, rows: torch.Tensor) -> Any:
    """The language model `model` with the `rows` [labels, hidden] in place of its output layer."""
    model.score = torch.nn.Linear(rows.shape[1], rows.shape[0], bias=False, dtype=rows.dtype)
    model.score.weight = torch.nn.Parameter(rows, requires_grad=False)
    model.set_output_embeddings(model.score)
    return model


def skeleton(role: Role, source: ModelSource) -> Any:
    """The model without its weights: what it is made of can be counted, nothing can be run. Raises ModelError."""
    with torch.device("meta"):
        if role == "prm":
            return classifier_from_config(source)
        return AutoModelForCausalLM.from_config(load_config(source))


def width(model: Any) -> int:
    """How many outputs the head of a loaded classifier has."""
    *_, last = (module for module in model.score.modules() if isinstance(module, torch.nn.Linear))
    return int(last.out_features)
