"""The batcher: what rows hold is true, also after a forward pass that failed."""

import asyncio
from collections.abc import Sequence

import pytest
import torch
from transformers import AutoModelForCausalLM

from rsd.engines.batcher import Batcher, Request
from rsd.engines.row_cache import RowCache
from tests.conftest import compose_config


def test_rows_hold_nothing_false_after_an_error() -> None:
    model = AutoModelForCausalLM.from_pretrained(compose_config().model.policies["draft"].path)
    prompts = [tuple(range(5 + i, 15 + i)) for i in range(8)]
    calls = 0

    def broken(group: Sequence[Request], logits: torch.Tensor) -> list[int | None]:
        """The first request ends with its third token, and the fourth forward of all fails."""
        nonlocal calls
        calls += 1
        if calls == 4:
            raise MemoryError("no more")
        return [None if calls == 3 and r.prompt == prompts[0] else 7 for r in group]

    seen: list[torch.Tensor] = []

    def noting(group: Sequence[Request], logits: torch.Tensor) -> list[int | None]:
        seen.extend(logits)
        return [None] * len(group)

    async def main() -> None:
        cache = RowCache(model.config, rows=8, context=64, dtype=torch.float32)
        batcher = Batcher(model.model, model.lm_head, cache, broken)
        for prompt in prompts:
            batcher.submit(request(prompt))
        with pytest.raises(MemoryError) as caught:
            batcher.tick()
        batcher.fail(caught.value)
        fresh = RowCache(model.config, rows=8, context=64, dtype=torch.float32)
        for other in (batcher, Batcher(model.model, model.lm_head, fresh, noting)):
            other.advance = noting
            other.submit(request(prompts[0], 7, 7, 9))
            other.tick()

    asyncio.run(main())
    assert torch.equal(*seen)


def request(prompt: tuple[int, ...], *response: int) -> Request:
    return Request(prompt=prompt, tokens=[*prompt, *response], future=asyncio.get_running_loop().create_future())
