"""Key-value cache with one row per sequence, each row of its own length.

The unmodified backbone of a transformers model runs over a copy of any of the rows, as often as it has
something to read, before what is new goes back to them::

    cache = RowCache(config, rows=64, context=512, dtype=torch.float32)
    cache.load(rows=[3, 7], length=50)
    mask = cache.prepare(starts=[40, 12], width=5)
    backbone(input_ids=ids, position_ids=cache.positions, attention_mask=mask, past_key_values=cache)
    cache.store()
"""

import math
import mmap
from collections.abc import Sequence
from typing import Any

import torch
from transformers import PreTrainedConfig
from transformers.cache_utils import Cache

BLOCK = 32  # positions; attention over another number of keys would differ in its last bits


class RowCache(Cache):
    """Per layer a buffer [rows, positions, heads, head_dim], with one position or more beyond `context`
    for stray padding.

    Sequences are right-padded: padding is written beyond a row's length, never attended to by a
    real token, and overwritten by the tokens that come to stand there.
    """

    def __init__(self, config: PreTrainedConfig, *, rows: int, context: int, dtype: torch.dtype) -> None:
        super().__init__(layers=[])
        heads = config.num_key_value_heads
        head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        self._size = (context // BLOCK + 1) * BLOCK
        shape = (rows, self._size, heads, head_dim)
        self.keys = [_zeros(shape, dtype) for _ in range(config.num_hidden_layers)]
        self.values = [_zeros(shape, dtype) for _ in range(config.num_hidden_layers)]
        self.dtype = dtype
        self.positions = torch.empty(0)
        self._memory = torch.zeros(2 * len(self.keys), 0, dtype=dtype)

    @staticmethod
    def bytes_per_token(config: PreTrainedConfig, dtype: torch.dtype) -> int:
        """Memory that one token takes in all layers, in bytes."""
        head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        return int(2 * config.num_hidden_layers * config.num_key_value_heads * head_dim * dtype.itemsize)

    def load(self, rows: Sequence[int], held: int, room: int) -> None:
        """Copy the first `held` positions of `rows` side by side, with room for `room` more: the next forwards run
        over these copies."""
        self._rows = torch.tensor(rows)
        self._length = min(_up_to_block(held + room), self._size)
        shape = (len(rows), self._length, *self.keys[0].shape[2:])
        if math.prod(shape) > self._memory.shape[1]:  # kept: touching new memory would cost more than copying
            self._memory = torch.zeros(2 * len(self.keys), math.prod(shape), dtype=self.dtype)
        self._near = [memory[: math.prod(shape)].view(shape) for memory in self._memory]
        for buffer, near in zip((*self.keys, *self.values), self._near, strict=True):
            torch.index_select(buffer[:, :held], 0, self._rows, out=near[:, :held])
        self._written: list[tuple[torch.Tensor, torch.Tensor]] = []

    def prepare(self, starts: Sequence[int], width: int) -> torch.Tensor:
        """Aim the next forward at the loaded rows, whose new tokens begin at `starts` and are padded to `width`.

        Returns the additive attention mask [rows, 1, width, keys]: token i of a row sees the row's
        positions up to start + i.
        """
        start = torch.tensor(starts)
        self._span = min(_up_to_block(max(starts) + width), self._length)
        self.positions = (start[:, None] + torch.arange(width)).clamp_(max=self._length - 1)
        self._slots = (torch.arange(len(starts))[:, None] * self._length + self.positions).flatten()
        self._written.append((self._slots, (self._rows[:, None] * self._size + self.positions).flatten()))
        hidden = torch.arange(self._span) > self.positions[:, None, :, None]
        return torch.zeros(hidden.shape, dtype=self.dtype).masked_fill_(hidden, torch.finfo(self.dtype).min)

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Note the new keys and values [rows, heads, width, head_dim]; return all of the rows' own."""
        found = []
        for place, new in ((layer_idx, key_states), (layer_idx + len(self.keys), value_states)):
            near = self._near[place]
            near.flatten(0, 1)[self._slots] = new.transpose(1, 2).flatten(0, 1)
            found.append(near[:, : self._span].transpose(1, 2))
        return found[0], found[1]

    def store(self) -> None:
        """Write all that is new since `load` back to the rows."""
        near, far = (torch.cat(slots) for slots in zip(*self._written, strict=True))
        for buffer, copy in zip((*self.keys, *self.values), self._near, strict=True):
            buffer.flatten(0, 1)[far] = copy.flatten(0, 1)[near]

    def copy(self, source: int, target: int, length: int) -> None:
        """Copy the first `length` positions of row `source` to row `target`."""
        for buffer in (*self.keys, *self.values):
            buffer[target, :length] = buffer[source, :length]


def _up_to_block(length: int) -> int:
    return -(-length // BLOCK) * BLOCK


def _zeros(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Zeros (a masked NaN would still poison attention's weighted sum) that take memory only where they
    have been written to: most rows stay much shorter than the context."""
    memory = mmap.mmap(-1, math.prod(shape) * dtype.itemsize)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):  # a huge page would hold several rows, and all of them from the first write
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return torch.frombuffer(memory, dtype=dtype).view(shape)
