"""Qwen2.5-Math-PRM (7B and 72B): a chat whose assistant ends every step in ``<extra_0>``, two logits there.

The model card joins the steps by that token and reads softmax at each of its places; the text after the last one
does not bear on the score, so nothing is written there.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from rsd.chat import chat_text
from rsd.errors import ModelError
from rsd.rewards.base import Adapter
from rsd.rewards.text import without_delimiter
from rsd.sigmoid import sigmoid

if TYPE_CHECKING:  # heavy, and only named here
    from transformers import PreTrainedTokenizerBase

SYSTEM = "Please reason step by step, and put your final answer within \\boxed{}."
MARK = "<extra_0>"


class QwenPRM(Adapter):
    """Probability of label 1 (right) at the newest step's mark."""

    labels: ClassVar[int] = 2
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def prompt(self, tokenizer: "PreTrainedTokenizerBase", question: str) -> tuple[int, ...]:
        return tuple(tokenizer(chat_text(tokenizer, question, SYSTEM), add_special_tokens=False).input_ids)

    def step(self, tokenizer: "PreTrainedTokenizerBase", text: str, first: bool) -> tuple[int, ...]:
        mark = tokenizer(MARK, add_special_tokens=False).input_ids
        if len(mark) != 1:
            raise ModelError(f"prm.path: the tokenizer has no token {MARK}, where this reward model is read.")
        return (*tokenizer(without_delimiter(text), add_special_tokens=False).input_ids, *mark)

    def value(self, logits: Sequence[float]) -> float:
        wrong, right = logits
        return sigmoid(right - wrong)  # softmax of two
