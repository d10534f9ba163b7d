"""A question as a chat, in the words of a tokenizer's own template."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # heavy, and only named here
    from transformers import PreTrainedTokenizerBase

DATE = "26 Jul 2024"  # for templates that write one: a prompt must not depend on the day it is made


def chat_text(tokenizer: "PreTrainedTokenizerBase", question: str, system: str | None = None) -> str:
    """The text before the assistant's answer, after `system` (None: whatever the template writes by itself)."""
    messages = [{"role": "system", "content": system}] if system is not None else []
    messages.append({"role": "user", "content": question})
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, date_string=DATE)
    return str(text)


def closing_text(tokenizer: "PreTrainedTokenizerBase") -> str:
    """The text behind a finished answer of the assistant."""
    mark = "answer"
    messages = [{"role": "user", "content": "question"}, {"role": "assistant", "content": mark}]
    text = str(tokenizer.apply_chat_template(messages, tokenize=False, date_string=DATE))
    return text.rpartition(mark)[2]
