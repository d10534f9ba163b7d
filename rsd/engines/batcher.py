"""Continuous batching of one model's requests over the rows of a key-value cache.

Every request owns a row while it runs. A row keeps its tokens afterwards, so that the next request
of the same question runs only what the model has not read: accepted steps are already there, a
rejected step is cropped by being overwritten. ``tick()`` runs one round of forward passes.
"""

import asyncio
import time
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from rsd.engines.base import Totals
from rsd.engines.reading import common_prefix
from rsd.engines.row_cache import RowCache

LARGEST_GROUP = 64  # rows that read more than one new token in one forward, and
LARGEST_FORWARD = 1024  # their new tokens: beyond these, what a layer computes no longer fits the core's own cache
LENGTH_SPREAD = 1.5  # longest over shortest count of new tokens in one forward
LARGEST_DECODING = 256  # rows that read one new token each
LONGEST_STAY = 16  # forwards over one copy of their rows, after which other models and new requests get their turn
LEAST_GOING = 0.8  # share of a copy below which a smaller one pays: its finished rows are run along
# The last bits of a row's result depend on the shapes it is computed in where a matrix product has few rows,
# where a narrow head is left with a remainder of rows, and where attention, which takes queries in blocks, is
# left with a block of one. These are filled up, so that a record does not depend on what else is in flight.
SMALLEST_PRODUCT = 16  # rows of a matrix product: sequences times new tokens of each
QUERY_BLOCK = 32


@dataclass(slots=True, eq=False)
class Row:
    """A row of the cache and the tokens whose keys and values it holds."""

    index: int
    prompt: tuple[int, ...] = ()
    tokens: list[int] = field(default_factory=list)


@dataclass(slots=True, eq=False, kw_only=True)
class Request:
    """One call in progress. `tokens` grows while it runs; `cached` is how many of them its row already held.
    `reads`: after how many of its last tokens the head is read."""

    prompt: tuple[int, ...]
    tokens: list[int]
    future: asyncio.Future[Any]
    reads: int = 1
    row: Row | None = None
    cached: int = 0
    done: bool = False

    @property
    def opening(self) -> bool:
        """Whether it reads a whole prompt and nothing else. The last token of it is then left for the decoding, as it
        is where another request has read the prompt already: what is written does not depend on who came first."""
        return len(self.tokens) == len(self.prompt) and self.new > 1

    @property
    def new(self) -> int:
        """Tokens that its row does not hold yet."""
        return len(self.tokens) - len(_row(self).tokens)


# Given requests and the head's outputs [reads of all of them, width]: the token that each goes on with, or None where
# it is finished and its future is set.
Advance = Callable[[list[Request], torch.Tensor], Sequence[int | None]]


class Batcher:
    """The requests of one model: who waits, who runs, and which row holds what."""

    def __init__(self, backbone: torch.nn.Module, head: torch.nn.Module, cache: RowCache, advance: Advance) -> None:
        self.backbone = backbone
        self.head = head
        self.cache = cache
        self.advance = advance
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self.tokens = self.padding = self.forwards = 0
        self.seconds = 0.0
        self._idle: OrderedDict[int, Row] = OrderedDict(  # least recently used first
            (index, Row(index)) for index in range(cache.keys[0].shape[0])
        )
        self._of_prompt: defaultdict[tuple[int, ...], set[Row]] = defaultdict(set)

    @property
    def ready(self) -> int:
        """Rows that the next tick would advance."""
        return len(self.running) + min(len(self.waiting), len(self._idle))

    @property
    def totals(self) -> Totals:
        """What has been run so far."""
        return Totals(tokens=self.tokens, padding=self.padding, forwards=self.forwards, seconds=self.seconds)

    def submit(self, request: Request) -> None:
        """Queue a request; its future is set when it is done."""
        self.waiting.append(request)

    def tick(self) -> None:
        """Admit what fits, read what is new of it, similar lengths together, and let all go on by some tokens."""
        while self._admit_waiting():
            for group in self._reading(opening=True):
                self._run(group, forwards=1, leaving=1)
            for group in self._reading(opening=False):
                self._run(group, forwards=1)
        for group in self._decoding():
            self._run(group, forwards=LONGEST_STAY)

    def fail(self, error: Exception) -> None:
        """End every request with `error` and forget what the rows hold."""
        for request in [*self.waiting, *self.running]:
            if not request.future.done():
                request.future.set_exception(error)
        self.waiting.clear()
        for request in list(self.running):
            _row(request).tokens = []
            self._release(request)

    def forget(self) -> None:
        """Forget what the rows hold that no request runs in."""
        for row in self._idle.values():
            row.prompt, row.tokens = (), []
        self._of_prompt.clear()
        for request in self.running:
            self._of_prompt[request.prompt].add(_row(request))

    def _reading(self, *, opening: bool) -> list[list[Request]]:
        """Requests with more than one new token, similar numbers of them together: those that open, or the others."""
        groups: list[list[Request]] = []
        shortest = 0
        reading = [request for request in self.running if request.new > 1 and request.opening == opening]
        for request in sorted(reading, key=lambda r: (r.new, len(r.tokens))):
            most = min(LARGEST_GROUP, LARGEST_FORWARD // request.new)
            if groups and len(groups[-1]) < most and request.new <= LENGTH_SPREAD * shortest:
                groups[-1].append(request)
            else:
                groups.append([request])
                shortest = request.new
        return groups

    def _decoding(self) -> list[list[Request]]:
        """Requests with one new token, similar lengths together."""
        order = sorted((r for r in self.running if r.new == 1), key=lambda r: len(r.tokens))
        return [order[first : first + LARGEST_DECODING] for first in range(0, len(order), LARGEST_DECODING)]

    def _run(self, group: list[Request], *, forwards: int, leaving: int = 0) -> None:
        """Run `group` over a copy of its rows, `forwards` times or until too many of it are finished.

        `leaving`: its last tokens that are not run yet, so that there is nothing to advance by.
        """
        width = max(request.new for request in group) - leaving
        width += width > 1 and width % QUERY_BLOCK == 1
        rows = [_row(request).index for request in group]
        rows += rows[:1] * (-(-SMALLEST_PRODUCT // width) - len(group))
        held = max(len(_row(request).tokens) for request in group)
        try:
            with self._timed():
                self.cache.load(rows, held, width + forwards - 1)
            going = group
            while going and forwards and len(going) >= LEAST_GOING * len(group):
                forwards -= 1
                outputs = self._forward(group, width, len(rows), leaving)
                if leaving:
                    break
                for request, token in zip(going, self.advance(going, outputs), strict=True):
                    if token is None or request.future.cancelled():
                        self._release(request)
                    else:
                        request.tokens.append(token)
                going = [request for request in going if not request.done]
            with self._timed():
                self.cache.store()
        except BaseException:  # what the copies held is lost, also of requests that are done
            for request in group:
                _row(request).tokens = []
            raise

    def _forward(self, group: list[Request], width: int, rows: int, leaving: int) -> torch.Tensor:
        """Run the new tokens of those of `group` that are not done, padded to `width` tokens and `rows` rows.

        Returns the head's outputs [reads, width] for the last tokens of each of them.
        """
        with self._timed():
            places = [i for i, request in enumerate(group) if not request.done]
            starts = [len(_row(request).tokens) for request in group]
            fresh = [r.tokens[start : len(r.tokens) - leaving] for r, start in zip(group, starts, strict=True)]
            ids = [new + [0] * (width - len(new)) for new in fresh]
            copies = rows - len(group)
            mask = self.cache.prepare(starts + starts[:1] * copies, width)
            hidden = self.backbone(
                input_ids=torch.tensor(ids + ids[:1] * copies),
                position_ids=self.cache.positions,
                attention_mask=mask,
                past_key_values=self.cache,
                use_cache=True,
            ).last_hidden_state
            read = [(i, len(fresh[i]) - n) for i in places for n in range(group[i].reads, 0, -1)]
            filled = read + read[:1] * (-len(read) % SMALLEST_PRODUCT)
            sequences, tokens = zip(*filled, strict=True)
            outputs: torch.Tensor = self.head(hidden[sequences, tokens])[: len(read)].float()
        for i in places:
            _row(group[i]).tokens += fresh[i]
        count = sum(len(fresh[i]) for i in places)
        self.tokens += count
        self.padding += width * rows - count
        self.forwards += 1
        return outputs

    @contextmanager
    def _timed(self) -> Iterator[None]:
        """Without gradients, and counted among the seconds in forward passes."""
        began = time.perf_counter()
        with torch.inference_mode():
            yield
        self.seconds += time.perf_counter() - began

    def _admit_waiting(self) -> bool:
        """Admit what fits, and say whether anything did. A request stays behind where one before it is about to read
        what both share: samples of one question read its prompt once."""
        reading: defaultdict[tuple[int, ...], list[Request]] = defaultdict(list)
        behind: list[Request] = []
        admitted = False
        while self.waiting and self._idle:
            request = self.waiting.popleft()
            if request.future.cancelled():
                continue
            if self._shares_more(request, reading[request.prompt]):
                behind.append(request)
                continue
            self._admit(request)
            admitted = True
            if request.new > 1:
                reading[request.prompt].append(request)
        self.waiting.extendleft(reversed(behind))
        return admitted

    def _shares_more(self, request: Request, others: list[Request]) -> bool:
        """Whether `request` begins as one of `others` does for longer than as any row does, by two tokens or more."""
        if not others:
            return False
        held = max(common_prefix(row.tokens, request.tokens) for row in self._of_prompt[request.prompt])
        shared = max(common_prefix(other.tokens, request.tokens) for other in others)
        return min(shared, len(request.tokens) - request.reads) > held + 1

    def _admit(self, request: Request) -> None:
        """Give the request the idle row that already holds most of it, else the least recently used."""
        relatives = self._of_prompt.get(request.prompt, set())
        reusable = len(request.tokens) - request.reads  # these must run: their outputs are what is asked for
        shared = {row: min(common_prefix(row.tokens, request.tokens), reusable) for row in relatives}
        closest = max(shared, key=lambda row: (shared[row], -row.index), default=None)
        own = max((row for row in shared if row.index in self._idle), key=lambda row: shared[row], default=None)
        if own is not None:
            row, length = own, shared[own]
            del self._idle[row.index]
        else:
            _, row = self._idle.popitem(last=False)
            length = 0
            self._of_prompt[row.prompt].discard(row)
            if not self._of_prompt[row.prompt]:
                del self._of_prompt[row.prompt]
            if closest is not None:
                length = shared[closest]
                self.cache.copy(closest.index, row.index, length)
            row.prompt = request.prompt
            self._of_prompt[row.prompt].add(row)
        row.tokens = request.tokens[:length]
        request.row, request.cached = row, length
        self.running.append(request)

    def _release(self, request: Request) -> None:
        row = _row(request)
        self._idle[row.index] = row
        request.done = True
        self.running.remove(request)


def _row(request: Request) -> Row:
    assert request.row is not None, "only admitted requests run"
    return request.row
