"""Skywork-o1-Open-PRM (Qwen2.5 1.5B and 7B): raw question, steps apart, one logit after each.

The input is ``bos + question + "\\n"``, then every step's own tokens followed by the token of ``"\\n\\n"``; no chat
template. Steps are encoded apart, so that the mark never merges with a step's last character (the model's
repository, ``prepare_input``; with ``"\\n\\n"`` for its ``"\\n"``, as the paper's authors run it).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from rsd.errors import ModelError
from rsd.rewards.base import Adapter
from rsd.rewards.text import without_delimiter
from rsd.sigmoid import sigmoid

if TYPE_CHECKING:  # heavy, and only named here
    from transformers import PreTrainedTokenizerBase

BOS = "<|im_start|>"


class SkyworkPRM(Adapter):
    """Sigmoid of the value head at the newest step's mark; an empty step is the mark alone."""

    labels: ClassVar[int] = 1
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def prompt(self, tokenizer: "PreTrainedTokenizerBase", question: str) -> tuple[int, ...]:
        if tokenizer.bos_token is None:
            raise ModelError("prm.path: the tokenizer names no bos_token, which begins this reward model's input.")
        return tuple(tokenizer(f"{tokenizer.bos_token}{question}\n", add_special_tokens=False).input_ids)

    def step(self, tokenizer: "PreTrainedTokenizerBase", text: str, first: bool) -> tuple[int, ...]:
        (mark,) = tokenizer("\n\n", add_special_tokens=False).input_ids
        return (*tokenizer(without_delimiter(text), add_special_tokens=False).input_ids, mark)

    def value(self, logits: Sequence[float]) -> float:
        return sigmoid(logits[0])

    def remarks(self, tokenizer: "PreTrainedTokenizerBase") -> list[str]:
        if tokenizer.bos_token == BOS:
            return []
        return [f"prm.path: this model's input begins with {tokenizer.bos_token}, where Skywork's 1.5B has {BOS}."]
