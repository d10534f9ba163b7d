"""The key-value cache: rows of their own length, memory only where something was written."""

import psutil
import torch
from transformers import AutoModelForCausalLM

from rsd.engines.row_cache import RowCache
from tests.conftest import compose_config


def test_rows_of_different_lengths_give_what_each_sequence_gives_alone() -> None:
    model = AutoModelForCausalLM.from_pretrained(compose_config().model.policies["draft"].path)
    sequences = [[5, 6, 7, 8, 9], [10, 11], [12, 13, 14]]
    cache = RowCache(model.config, rows=9, context=64, dtype=torch.float32)
    rows = [7, 0, 3]
    with torch.inference_mode():
        cache.load(rows, held=0, room=5)
        mask = cache.prepare([0, 0, 0], 5)
        ids = torch.tensor([ids + [0] * (5 - len(ids)) for ids in sequences])
        model.model(input_ids=ids, position_ids=cache.positions, attention_mask=mask, past_key_values=cache)
        # go on in another order, over the padding that the first forward left behind; then fork row 7 into row 8
        cache.store()
        cache.copy(7, 8, 4)
        cache.load([3, 7, 8], held=5, room=1)
        mask = cache.prepare([3, 5, 4], 1)
        ids = torch.tensor([[20], [21], [22]])
        hidden = model.model(
            input_ids=ids, position_ids=cache.positions, attention_mask=mask, past_key_values=cache
        ).last_hidden_state
        for found, alone in zip(hidden, ([12, 13, 14, 20], [5, 6, 7, 8, 9, 21], [5, 6, 7, 8, 22]), strict=True):
            expected = model.model(input_ids=torch.tensor([alone])).last_hidden_state[0, -1]
            assert torch.allclose(found[-1], expected, atol=1e-4)


def test_memory_is_taken_only_by_what_is_written() -> None:
    model = AutoModelForCausalLM.from_pretrained(compose_config().model.policies["target"].path)
    before = psutil.Process().memory_info().rss
    cache = RowCache(model.config, rows=512, context=4096, dtype=torch.float32)
    assert sum(buffer.nbytes for buffer in (*cache.keys, *cache.values)) > 8 * 2**30
    with torch.inference_mode():
        cache.load(list(range(512)), held=0, room=8)
        mask = cache.prepare([0] * 512, 8)
        ids = torch.ones(512, 8, dtype=torch.long)
        model.model(input_ids=ids, position_ids=cache.positions, attention_mask=mask, past_key_values=cache)
        cache.store()
    assert psutil.Process().memory_info().rss - before < 2**29
