"""The steps of a response that was written in one go, by the rule under which a decoder writes them one by one::

split_steps(tokenizer, token_ids, StepRule())   # ["Tom has 3 books.\\n\\n", "The answer is 3."]
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rsd.methods.decoding import StepRule

if TYPE_CHECKING:  # heavy, and only named here
    from transformers import PreTrainedTokenizerBase


def split_steps(tokenizer: "PreTrainedTokenizerBase", token_ids: Sequence[int], rule: StepRule) -> list[str]:
    """Texts of the steps in `token_ids` (without EOS); joined, they are the response.

    A step ends with the token that completes the delimiter; whitespace alone belongs to the step after it, and is
    a step of its own only at the end.
    """
    steps: list[str] = []
    begun: list[int] = []
    texts = tokenizer.batch_decode([[i] for i in token_ids], clean_up_tokenization_spaces=False)
    piece = 0  # where in `begun` the delimiter is looked for
    for token, text in zip(token_ids, texts, strict=True):
        begun.append(token)
        if rule.delimiter[-1] in text and rule.delimiter in _decoded(tokenizer, begun[piece:]):
            whole = _decoded(tokenizer, begun)
            piece = len(begun)
            if whole.strip():
                steps.append(whole)
                begun, piece = [], 0
    return [*steps, _decoded(tokenizer, begun)] if begun else steps


def _decoded(tokenizer: "PreTrainedTokenizerBase", ids: Sequence[int]) -> str:
    return str(tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False))
