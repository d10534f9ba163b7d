"""Reward models that read the policy's own chat: user asks, assistant's steps follow as written.

The tiny family's PRM has this format: one logit, read at the last token of a step.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from rsd.chat import chat_text
from rsd.rewards.base import Adapter
from rsd.sigmoid import sigmoid

if TYPE_CHECKING:  # heavy, and only named here
    from transformers import PreTrainedTokenizerBase


class ChatPRM(Adapter):
    """Sigmoid of one logit at the step's last token; steps keep their delimiter."""

    labels: ClassVar[int] = 1
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def prompt(self, tokenizer: "PreTrainedTokenizerBase", question: str) -> tuple[int, ...]:
        return tuple(tokenizer(chat_text(tokenizer, question), add_special_tokens=False).input_ids)

    def step(self, tokenizer: "PreTrainedTokenizerBase", text: str, first: bool) -> tuple[int, ...]:
        return tuple(tokenizer(text, add_special_tokens=False).input_ids)

    def value(self, logits: Sequence[float]) -> float:
        return sigmoid(logits[0])
