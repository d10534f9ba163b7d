"""The tiny family's tokenizer: byte-level BPE over the generator's own text, one token per digit.

Any text survives encode and decode byte for byte. As in Qwen2.5, punctuation takes the newlines
that follow it into one token, so a step ends in ``".\\n\\n"`` rather than in a bare delimiter::

    tokenizer = build_tokenizer(seed=0)
    tokenizer.convert_ids_to_tokens(tokenizer("Mia has 4+3=7 pens.\\n\\n").input_ids)
"""

from random import Random

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from rsd.tiny.problems import LEVELS, chain

VOCAB_SIZE = 448
BOUNDARIES = r" ?\p{L}+|\p{N}|\\?\p{L}+\{|[^\s\p{L}\p{N}]+\n*|\n+|\s"
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def build_tokenizer(seed: int) -> PreTrainedTokenizerFast:
    """Learn the merges from 4,000 generated problems; deterministic in `seed`."""
    rng = Random(seed)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(BOUNDARIES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    texts = ["user\n", "assistant\n"] * 4000
    for _ in range(4000):
        problem = chain(rng, rng.choice(LEVELS))
        texts += [problem.question, "".join(problem.steps)]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
        model_max_length=1024,
    )
