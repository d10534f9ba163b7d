"""The steps of a response that was written in one go, by the rule under which a decoder writes them one by one::

split_steps(tokenizer, token_ids, StepRule())   # ["Tom has 3 books.\\n\\n", "The answer is 3."]
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rsd.engines.base import completes
from rsd.methods.decoding import LACKING, TORN, StepRule

if TYPE_CHECKING:  # heavy, and only named here
    from transformers import PreTrainedTokenizerBase


def split_steps(tokenizer: "PreTrainedTokenizerBase", token_ids: Sequence[int], rule: StepRule) -> list[str]:
    """Texts of the steps in `token_ids` (without EOS); joined, they are the response.

    A step ends with the token that completes the delimiter, or whatever the rule has in its place; whitespace alone
    belongs to the step after it, and is a step of its own only at the end.
    """
    steps: list[str] = []
    begun: list[int] = []
    texts = tokenizer.batch_decode([[i] for i in token_ids], clean_up_tokenization_spaces=False)
    piece = 0  # where in `begun` the delimiter is looked for
    for token, text in zip(token_ids, texts, strict=True):
        begun.append(token)
        if _may_end(rule, text, len(begun) - piece) and _ends(
            rule, _decoded(tokenizer, begun[piece:]), len(begun) - piece
        ):
            whole = _decoded(tokenizer, begun)
            piece = len(begun)
            if whole.strip():
                steps.append(whole)
                begun, piece = [], 0
    return [*steps, _decoded(tokenizer, begun)] if begun else steps


def _may_end(rule: StepRule, newest: str, count: int) -> bool:
    """Whether a piece of `count` tokens can end with the `newest`: only then is its text looked at."""
    if rule.tokens is not None:
        return count >= rule.tokens
    return rule.delimiter is None or rule.delimiter[-1] in newest


def _ends(rule: StepRule, text: str, count: int) -> bool:
    """Whether a piece ends with this `text` of `count` tokens."""
    if rule.stop is not None:
        return completes(rule.stop, text)
    return not text.endswith(TORN) or count >= (rule.tokens or 0) + LACKING


def _decoded(tokenizer: "PreTrainedTokenizerBase", ids: Sequence[int]) -> str:
    return str(tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False))
