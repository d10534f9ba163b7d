"""The prompt of a policy, in its own tokens."""

from transformers import PreTrainedTokenizerBase


def prompt_ids(tokenizer: PreTrainedTokenizerBase, template: str | None, question: str) -> tuple[int, ...]:
    """Token ids of `template` with the question in the place of ``{question}``, or of the tokenizer's own
    chat template where `template` is None. Nothing is added to either: a template writes its own BOS."""
    if template is None:
        messages = [{"role": "user", "content": question}]
        text = str(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))
    else:
        text = template.replace("{question}", question)
    return tuple(tokenizer(text, add_special_tokens=False).input_ids)
