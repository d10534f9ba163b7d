"""Models that take as long as a GPU would, on a virtual clock, and write steps that cost nothing to make up.

A tick of a policy gives every sequence in it one token; a pass of the PRM reads all that waits for it. Models on one
device take turns, a tick or a pass at a time. What is written and what is rejected depends on question and place alone.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from random import Random

from rsd.engines.base import Completion, Context, Reward, Sampling
from rsd.records import Problem, Usage

STEPS, TOKENS, REJECTED = 18, 32, 0.25  # steps of an answer and tokens of a step, on average; share of steps
EOS, WORD, END = 1, 2, 3  # token ids


@dataclass(frozen=True, slots=True)
class Step:
    """A step of an answer: its length, and whether the draft's is rejected."""

    tokens: int
    rejected: bool


@dataclass
class Device:
    """Time of a device, a tick at a time; `busy` are the begin and end of each."""

    busy: list[tuple[float, float]] = field(default_factory=list)
    _free: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def work(self, seconds: float) -> None:
        """Hold the device for so long."""
        async with self._free:
            began = asyncio.get_running_loop().time()
            await asyncio.sleep(seconds)
            self.busy.append((began, began + seconds))

    def busy_until(self, moment: float) -> float:
        """Seconds of work before `moment`."""
        return sum(min(end, moment) - begin for begin, end in self.busy if begin < moment)


@cache
def steps_of(question: str) -> tuple[Step, ...]:
    """The steps of the answer to `question`. Their tokens are spread exponentially, their number as a gamma variable
    with a coefficient of variation of 0.53: in 400 answers of a 7B model to MATH problems, of 3,021 steps, these
    coefficients are 1.23 and 0.53."""
    random = Random(question)
    count = max(1, round(random.gammavariate(0.53**-2, STEPS * 0.53**2)))
    return tuple(
        Step(tokens=max(2, round(random.expovariate(1 / TOKENS))), rejected=random.random() < REJECTED)
        for _ in range(count)
    )


class SimulatedPolicy:
    """Writes the steps of `steps_of`; a tick takes `base` + `each` seconds per sequence."""

    def __init__(self, device: Device, base: float, each: float) -> None:
        self._device, self._base, self._each = device, base, each
        self.tokenizer = None
        self._left: dict[asyncio.Future[None], int] = {}
        self._ticking: asyncio.Task[None] | None = None

    def prompt(self, question: str) -> tuple[int, ...]:
        return tuple(question.encode())

    async def generate(self, context: Context, sampling: Sampling) -> Completion:
        steps = steps_of(bytes(context.prompt).decode())
        place = context.response.count(END)
        last = place == len(steps) - 1
        await self._write(steps[place].tokens)
        ids = (*[WORD] * (steps[place].tokens - 1), EOS if last else END)
        usage = Usage(generated=len(ids), prompt=len(context.prompt) + len(context.response), passes=len(ids))
        text = f"Step {place}." + ("" if last else "\n\n")
        return Completion(text=text, token_ids=ids, logprob=-1.0, finish="eos" if last else "step", usage=usage)

    async def _write(self, tokens: int) -> None:
        done = asyncio.get_running_loop().create_future()
        self._left[done] = tokens
        if self._ticking is None:
            self._ticking = asyncio.create_task(self._tick())
        await done

    async def _tick(self) -> None:
        while self._left:
            inside = list(self._left)
            await self._device.work(self._base + self._each * len(inside))
            for sequence in inside:
                self._left[sequence] -= 1
                if not self._left[sequence]:
                    del self._left[sequence]
                    sequence.set_result(None)
            await asyncio.sleep(0)  # who was answered may ask at once
        self._ticking = None


class SimulatedPRM:
    """Rejects `REJECTED` of the steps; a pass takes `base` + `each` seconds per token."""

    def __init__(self, device: Device, base: float, each: float) -> None:
        self._device, self._base, self._each = device, base, each
        self._waiting: list[tuple[asyncio.Future[None], int]] = []
        self._reading: asyncio.Task[None] | None = None

    async def score(self, question: str, steps: Sequence[str]) -> Reward:
        step = steps_of(question)[len(steps) - 1]
        done = asyncio.get_running_loop().create_future()
        self._waiting.append((done, step.tokens))
        if self._reading is None:
            self._reading = asyncio.create_task(self._read())
        await done
        return Reward(
            value=0.1 if step.rejected else 0.9, usage=Usage(prompt=step.tokens, verified=step.tokens, passes=1)
        )

    async def _read(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            await self._device.work(self._base + self._each * sum(tokens for _, tokens in batch))
            for done, _ in batch:
                done.set_result(None)
            await asyncio.sleep(0)
        self._reading = None


def questions(count: int) -> list[Problem]:
    """So many questions, all different."""
    return [Problem(question_id=f"{i:012x}", question=f"Question {i}", answer="1") for i in range(count)]
