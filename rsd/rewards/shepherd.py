"""Math-Shepherd (Mistral 7B): a language model that writes + or - at the mark behind each step.

Its data set's form: the question, a space and the steps, each followed by `` ки`` and divided by line breaks; the
score is read where that mark stands (arXiv 2312.08935). Steps are encoded apart and the tokens are those of the whole
text, since no token of this vocabulary crosses a line break.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from rsd.errors import ModelError
from rsd.rewards.base import Adapter
from rsd.rewards.text import without_delimiter
from rsd.sigmoid import sigmoid

if TYPE_CHECKING:  # heavy, and only named here
    from transformers import PreTrainedTokenizerBase

MARK = "▁ки"  # in the vocabulary; ▁ is the space before it


class ShepherdPRM(Adapter):
    """Probability of + rather than - at the newest step's mark."""

    labels: ClassVar[int] = 2
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    label_tokens: ClassVar[tuple[str, ...]] = ("▁-", "▁+")

    def prompt(self, tokenizer: "PreTrainedTokenizerBase", question: str) -> tuple[int, ...]:
        if tokenizer.bos_token is None:
            raise ModelError("prm.path: the tokenizer names no bos_token, which begins this reward model's input.")
        return (tokenizer.bos_token_id, *tokenizer(question.rstrip(), add_special_tokens=False).input_ids)

    def step(self, tokenizer: "PreTrainedTokenizerBase", text: str, first: bool) -> tuple[int, ...]:
        mark = tokenizer.convert_tokens_to_ids(MARK)
        if mark in (None, tokenizer.unk_token_id):
            raise ModelError(f"prm.path: the tokenizer has no token {MARK}, where this reward model is read.")
        words = without_delimiter(text).rstrip()
        if first:
            return (*tokenizer(f" {words}" if words else "", add_special_tokens=False).input_ids, mark)
        ids = tokenizer(f"\n{words}", add_special_tokens=False).input_ids
        (line_break,) = tokenizer("\n", add_special_tokens=False).input_ids[-1:]
        # the tokenizer may begin any text with a space, which does not stand before a line break here
        return (*ids[ids.index(line_break) :], mark)

    def value(self, logits: Sequence[float]) -> float:
        wrong, right = logits
        return sigmoid(right - wrong)  # softmax of two
