"""Outcome reward models: they judge a finished conversation, and here the response so far as if it were finished.

Skywork-Reward-Llama-3.1-8B-v0.2 and the tiny family's own read one logit at the last token of the chat in their
tokenizer's template (the model card's example). It is a score without bounds, which only compares.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from rsd.chat import chat_text, closing_text
from rsd.rewards.base import Adapter

if TYPE_CHECKING:  # heavy, and only named here
    from transformers import PreTrainedTokenizerBase


class ChatORM(Adapter):
    """The logit at the end of the turn that holds all steps so far. Blank space around the response is left out, as
    Llama's template has it; between steps it stays."""

    labels: ClassVar[int] = 1
    bounds: ClassVar[tuple[float, float]] = (-math.inf, math.inf)

    def prompt(self, tokenizer: "PreTrainedTokenizerBase", question: str) -> tuple[int, ...]:
        return _ids(tokenizer, chat_text(tokenizer, question))

    def step(self, tokenizer: "PreTrainedTokenizerBase", text: str, first: bool) -> tuple[int, ...]:
        return _ids(tokenizer, text.lstrip() if first else text)

    def newest(self, tokenizer: "PreTrainedTokenizerBase", text: str, first: bool) -> tuple[int, ...]:
        return (*self.step(tokenizer, text.rstrip(), first), *_ids(tokenizer, closing_text(tokenizer)))

    def value(self, logits: Sequence[float]) -> float:
        return logits[0]


def _ids(tokenizer: "PreTrainedTokenizerBase", text: str) -> tuple[int, ...]:
    return tuple(tokenizer(text, add_special_tokens=False).input_ids)
