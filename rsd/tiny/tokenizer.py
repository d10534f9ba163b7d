"""The tiny family's tokenizer: Qwen2's own kind, with merges learned from the generator's text.

Byte-level BPE, one token per digit. As in Qwen2.5, punctuation takes the newlines that follow it
into one token, so a step ends in ``".\\n\\n"`` rather than in a bare delimiter::

    tokenizer = build_tokenizer(seed=0)
    tokenizer.convert_ids_to_tokens(tokenizer("Mia has 4+3=7 pens.\\n\\n").input_ids)
"""

from random import Random

from tokenizers import pre_tokenizers
from transformers import PreTrainedTokenizerBase, Qwen2Tokenizer

from rsd.tiny.problems import LEVELS, chain
from rsd.tiny.story import story

VOCAB_SIZE = 640  # more than the text has merges for
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def build_tokenizer(seed: int) -> PreTrainedTokenizerBase:
    """Learn the merges from 4,000 generated problems; deterministic in `seed`."""
    rng = Random(seed)
    texts = ["user\n", "assistant\n"] * 4000
    for _ in range(2000):
        for kind in (chain, story):
            problem = kind(rng, rng.choice(LEVELS))
            texts += [problem.question, "".join(problem.steps)]
    untrained = Qwen2Tokenizer(
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=["<|im_start|>"],
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
        model_max_length=1024,
    )
    tokenizer: PreTrainedTokenizerBase = untrained.train_new_from_iterator(
        texts, VOCAB_SIZE, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    return tokenizer
