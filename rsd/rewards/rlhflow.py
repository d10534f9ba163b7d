"""RLHFlow's PRMs (Llama 3.1 8B): a chat in which the user tells one step a turn and the assistant says + or -.

The first turn holds question and first step, and every earlier answer is taken to be a +. The score is read where the
assistant would answer (the authors' ``math-rm/prm_evaluate.py``).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from rsd.chat import chat_text
from rsd.errors import ModelError
from rsd.rewards.base import Adapter
from rsd.sigmoid import sigmoid

if TYPE_CHECKING:  # heavy, and only named here
    from transformers import PreTrainedTokenizerBase

ANSWER = "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"
NEXT = "+<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n"


class RLHFlowPRM(Adapter):
    """Probability of + rather than - as the answer to the newest step."""

    labels: ClassVar[int] = 2
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    label_tokens: ClassVar[tuple[str, ...]] = ("-", "+")

    def prompt(self, tokenizer: "PreTrainedTokenizerBase", question: str) -> tuple[int, ...]:
        text = chat_text(tokenizer, question.strip())
        if not text.endswith(ANSWER):
            raise ModelError("prm.path: the tokenizer's chat template is not Llama 3's, which this reward model reads.")
        return tuple(tokenizer(text.removesuffix(ANSWER), add_special_tokens=False).input_ids)

    def step(self, tokenizer: "PreTrainedTokenizerBase", text: str, first: bool) -> tuple[int, ...]:
        words = text.strip()  # as the template does to every turn
        turn = (f" {words}" if words else "") if first else NEXT + words
        return tuple(tokenizer(turn + ANSWER, add_special_tokens=False).input_ids)

    def value(self, logits: Sequence[float]) -> float:
        wrong, right = logits
        return sigmoid(right - wrong)  # softmax of two
