"""Load transformers models and tokenizers, and say in one sentence what is wrong with them::

model = load_model(AutoModelForCausalLM, source)
"""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from transformers import AutoConfig, AutoTokenizer, GenerationConfig, PreTrainedTokenizerBase
from transformers.utils import logging

from rsd.cost import Shape
from rsd.engines.base import ModelSource
from rsd.errors import ModelError


def load_config(source: ModelSource) -> Any:
    """Read the configuration that lies beside the weights. Raises ModelError."""
    try:
        config = AutoConfig.from_pretrained(source.path, revision=source.revision)
    except Exception as error:  # of many kinds: each library below raises its own
        raise _unreadable(source, "the configuration", error) from error
    if not config.architectures:
        raise ModelError(f"{source.key}: {source.path} names no architecture in its config.json.")
    return config


def load_model(auto_class: Any, source: ModelSource) -> Any:
    """Load weights with `auto_class`, ready for inference; returns the transformers model.

    Raises ModelError when files are missing or corrupt, or do not hold every weight of the model
    (transformers itself would fill the missing ones with random numbers).
    """
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        model, report = auto_class.from_pretrained(
            source.path,
            revision=source.revision,
            dtype=getattr(torch, source.dtype),
            attn_implementation="sdpa",
            output_loading_info=True,
        )
    except Exception as error:  # of many kinds: each library below raises its own, tokenizers a bare one
        raise _unreadable(source, "the weights", error) from error
    absent = sorted(report["missing_keys"]) + sorted(str(key) for key in report["mismatched_keys"])
    if absent:
        raise incomplete(source, absent)
    return model.eval()


def take_over(model: Any, other: Any, names: Iterable[str]) -> None:
    """Let `model` use the weights `names` of `other` in the place of its own copies, which are freed."""
    for name in names:
        owner, _, leaf = name.rpartition(".")
        setattr(model.get_submodule(owner), leaf, other.get_parameter(name))


def load_tokenizer(source: ModelSource) -> PreTrainedTokenizerBase:
    """Load the tokenizer that lies beside the weights. Raises ModelError."""
    try:
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(source.path, revision=source.revision)
    except Exception as error:
        raise _unreadable(source, "the tokenizer", error) from error
    if not tokenizer("1", add_special_tokens=False).input_ids:  # transformers makes up an empty one
        raise _unreadable(source, "the tokenizer", FileNotFoundError("there are no tokenizer files"))
    return tokenizer


def eos_ids(source: ModelSource, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """The tokens that end a response: those of the generation configuration, else the tokenizer's own.

    Raises ModelError where there is none."""
    found: int | list[int] | None
    try:
        found = GenerationConfig.from_pretrained(source.path, revision=source.revision or "main").eos_token_id
    except OSError:  # there is none
        found = None
    found = tokenizer.eos_token_id if found is None else found
    if found is None:
        raise ModelError(f"{source.key}: {source.path} names no EOS token, so no response would ever end.")
    return [found] if isinstance(found, int) else list(found)


def shape_of(model: Any) -> Shape:
    """Parameter counts and attention sizes of a loaded model."""
    config = model.config
    matrices = sum(p.numel() for p in model.parameters() if p.dim() > 1)
    embedding = model.get_input_embeddings().weight
    output = model.get_output_embeddings()
    if output is None or output.weight is not embedding:
        matrices -= embedding.numel()
    heads = config.num_attention_heads
    return Shape(
        parameters=sum(p.numel() for p in model.parameters()),
        matmul_parameters=matrices,
        layers=config.num_hidden_layers,
        heads=heads,
        head_dim=getattr(config, "head_dim", None) or config.hidden_size // heads,
    )


def incomplete(source: ModelSource, absent: Sequence[str]) -> ModelError:
    """The error of a checkpoint that does not hold the weights `absent`, or not in the model's shape."""
    return ModelError(
        f"{source.key}: {source.path} lacks {len(absent)} of the model's weights or holds them in another "
        f"shape, {absent[0]} among them; it is not a complete checkpoint of this architecture."
    )


def _unreadable(source: ModelSource, what: str, error: Exception) -> ModelError:
    cause = " ".join(str(error).split())[:300]
    return ModelError(f"{source.key}: cannot read {what} of {source.path}: {cause}")
