"""The prompt of a policy, in its own tokens."""

from transformers import PreTrainedTokenizerBase

from rsd.chat import chat_text
from rsd.engines.base import ModelSource


def prompt_ids(tokenizer: PreTrainedTokenizerBase, source: ModelSource, question: str) -> tuple[int, ...]:
    """Token ids of the configured prompt with the question in the place of ``{question}``, or of the tokenizer's own
    chat template where there is none. Nothing is added to either: a template writes its own BOS."""
    if source.prompt is None:
        text = chat_text(tokenizer, question, source.system)
    else:
        text = source.prompt.replace("{question}", question)
    return tuple(tokenizer(text, add_special_tokens=False).input_ids)
