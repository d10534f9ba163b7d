"""The tiny family's policies: small Qwen2 models that learn from reference solutions.

policy, seconds = train_policy("s", tokenizer, cycles=[(2500, 5e-3)], scratch=Path("results/tiny"))
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import torch
from torch.nn import functional
from transformers import PreTrainedTokenizerBase, Qwen2Config, Qwen2ForCausalLM

from rsd.chat import chat_text
from rsd.tiny.optimise import IGNORE, optimise, padded
from rsd.tiny.problems import LEVELS, WordProblem, chain
from rsd.tiny.story import story

HOME = Path(__file__).parent
SEED = 20250131
BATCH = 64
SHAPES: dict[str, dict[str, Any]] = {
    "s": {"hidden_size": 64, "intermediate_size": 192, "num_hidden_layers": 2, "num_attention_heads": 2},
    "m": {"hidden_size": 128, "intermediate_size": 384, "num_hidden_layers": 4, "num_attention_heads": 4},
    "l": {"hidden_size": 192, "intermediate_size": 576, "num_hidden_layers": 6, "num_attention_heads": 6},
}
# Cycles of training, each with its optimiser steps and highest learning rate; a later one starts the optimiser anew.
CYCLES = {"s": [(2500, 5e-3)], "m": [(2000, 5e-3)], "l": [(2400, 5e-3)]}


def held_out() -> set[str]:
    """The questions of the tiny benchmarks, which no training batch may hold."""
    return {json.loads(line)["question"] for path in (HOME / "data").glob("*.jsonl") for line in path.open()}


def problems(key: str, count: int, excluded: set[str]) -> list[WordProblem]:
    """`count` chains and stories of mixed levels, a pure function of `key`, none of them in `excluded`."""
    rng = Random(f"{SEED}/{key}")
    drawn: list[WordProblem] = []
    while len(drawn) < count:
        problem = rng.choice((chain, story))(rng, rng.choice(LEVELS))
        if problem.question not in excluded:
            drawn.append(problem)
    return drawn


def encode(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    """Token ids of `text`, nothing added."""
    return list(tokenizer(text, add_special_tokens=False).input_ids)


def untrained(size: str, tokenizer: PreTrainedTokenizerBase) -> Qwen2ForCausalLM:
    """Policy `size` as it is before training."""
    torch.manual_seed(SEED)
    config = Qwen2Config(
        **SHAPES[size],
        num_key_value_heads=SHAPES[size]["num_attention_heads"],
        vocab_size=len(tokenizer),
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        dtype="float32",
    )
    model = Qwen2ForCausalLM(config)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    return model


def train_policy(
    size: str, tokenizer: PreTrainedTokenizerBase, *, cycles: Sequence[tuple[int, float]], scratch: Path
) -> tuple[Qwen2ForCausalLM, float]:
    """Train policy `size` on reference solutions; the loss is read on the solution's tokens only.

    `cycles`: optimiser steps and highest learning rate of each. Checkpoints lie in `scratch`. Returns the
    policy and the seconds that its training took.
    """
    model = untrained(size, tokenizer)
    excluded = held_out()
    before = 0  # optimiser steps of the cycles done

    def losses(step: int) -> Iterator[torch.Tensor]:
        rows = []
        for problem in problems(f"policy/{before + step}", BATCH, excluded):
            prompt = encode(tokenizer, chat_text(tokenizer, problem.question))
            solution = [*encode(tokenizer, "".join(problem.steps)), int(tokenizer.eos_token_id)]
            rows.append((prompt + solution, [IGNORE] * len(prompt) + solution))
        count = sum(label != IGNORE for _, labels in rows for label in labels)
        for ids, labels in padded(rows, int(tokenizer.pad_token_id)):
            logits = model(ids).logits[:, :-1]
            yield functional.cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten(), reduction="sum") / count

    seconds = 0.0
    for number, (steps, peak) in enumerate(cycles, start=1):
        name = f"{size}-{number}"
        seconds += optimise(model, losses, steps=steps, peak=peak, checkpoint=scratch / f"{name}.pt", label=name)
        before += steps
    return model, seconds
