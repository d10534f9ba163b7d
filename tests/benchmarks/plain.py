"""What one would write without this project: `generate` of transformers over left-padded batches."""

from collections.abc import Sequence
from typing import Any

import torch

Tokens = tuple[int, ...]


def generate(model: Any, prompts: Sequence[Tokens], *, batch: int, limit: int, ends: Sequence[int]) -> list[Tokens]:
    """Greedy continuations of `prompts` by at most `limit` tokens, `batch` at a time, each up to and with the first
    of the tokens `ends`."""
    written: list[Tokens] = []
    for first in range(0, len(prompts), batch):
        chosen = prompts[first : first + batch]
        width = max(map(len, chosen))
        ids = torch.tensor([[ends[0]] * (width - len(prompt)) + list(prompt) for prompt in chosen])
        mask = torch.arange(width) >= torch.tensor([[width - len(prompt)] for prompt in chosen])
        with torch.inference_mode():
            output = model.generate(
                ids,
                attention_mask=mask.long(),
                max_new_tokens=limit,
                do_sample=False,
                eos_token_id=list(ends),
                pad_token_id=ends[0],
            )
        written += [_until(ends, row[width:]) for row in output.tolist()]
    return written


def _until(ends: Sequence[int], tokens: list[int]) -> Tokens:
    stop = next((i + 1 for i, token in enumerate(tokens) if token in ends), len(tokens))
    return tuple(tokens[:stop])
