"""Greedy calls are computed once for all runs of a process that ask the same models the same.

At temperature 0 what a policy writes after a context is a function of model, context and limits; so are the
log-probabilities of a given text and a PRM's score. Runs that differ in δ or ω alone ask for much of the same::

    memo = Memo()                                # one for all runs
    own = RunMemo(memo, names, plan.engine)      # one for each run
    models = own.models(models)                  # to decode with

A run's records do not tell whether there was a memo. The usage of an answer is logical, what the call would have cost
the run alone: all of it follows from the call but `cached`. That is the engine's own number until the memo first
answers for the model about a question; from then on the engine's cache lacks what the run has read, and `cached` is
what it would have served: the longest beginning that the text shares with one which the run gave to this model before,
counted as the engine's cache counts it (`Engine.reused`), nothing evicted. (A run begins with an empty cache.) What was
physically run stands in ``invocations.jsonl``.

One thing may show: a model that answers after the memo did reads in one go what it else would have read, or written,
piece by piece, which an engine rounds in its own way. In float32 log-probabilities, and rarely a reward, then differ by
some 1e-6.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from typing import Any, TypeVar

import orjson

from rsd.engines.base import (
    Call,
    Completion,
    Context,
    Engine,
    Logprobs,
    Models,
    PolicyModel,
    Reward,
    RewardModel,
    Sampling,
)
from rsd.engines.reading import Reading
from rsd.records import Role

Answer = TypeVar("Answer", Completion, Logprobs, Reward)


class Memo:
    """What every model has answered so far. Runs that share it come one after another."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}

    def of(self, model: str) -> "_Known":
        """What the model with that name, of weights and of whatever else its answers depend on, has answered."""
        return self._known.setdefault(model, _Known())


class _Known:
    """Answers of one model."""

    def __init__(self) -> None:
        self._answers: dict[tuple[bytes, int | None], Any] = {}
        self._computing: dict[bytes, asyncio.Event] = {}

    async def answer(
        self, call: bytes, limit: int | None, compute: Callable[[], Awaitable[Answer]]
    ) -> tuple[Answer, bool]:
        """The answer to `call` of at most `limit` tokens, and whether it was computed for this caller.

        Equal calls wait for the first of them; where that fails, or was cut by another limit, the next one computes.
        """
        while (known := self._find(call, limit)) is None:
            if call in self._computing:
                await self._computing[call].wait()
                continue
            self._computing[call] = done = asyncio.Event()
            try:
                answer = await compute()
                self._answers[call, _limit_of(answer, limit)] = answer
                return answer, True
            finally:
                del self._computing[call]
                done.set()
        return known, False

    def _find(self, call: bytes, limit: int | None) -> Any:
        finished = self._answers.get((call, None))
        if finished is not None and (limit is None or len(finished.token_ids) <= limit):
            return finished
        return self._answers.get((call, limit))


def _limit_of(answer: Completion | Logprobs | Reward, limit: int | None) -> int | None:
    """The limit without which `answer` would be another one. A text that a delimiter or EOS ended within its limit
    is the same under every higher one; how far a drafter looks ahead is not."""
    if isinstance(answer, Completion) and answer.finish != "length" and answer.drafter is None:
        return None
    return limit


@dataclass(slots=True)
class Asked:
    """Calls of one run to one model, how many of them it had to answer itself, and the tokens it wrote for those."""

    calls: int = 0
    computed: int = 0
    generated: int = 0


class RunMemo:
    """One run's share in `memo`. `names`: of its models, see `Memo.of`. `asked`: its calls so far, by role."""

    def __init__(self, memo: Memo, names: Mapping[Role, str], engine: Engine) -> None:
        self.asked: dict[Role, Asked] = {role: Asked() for role in names}
        self._askers = {
            role: _Asker(memo.of(name), self.asked[role], partial(engine.reused, role)) for role, name in names.items()
        }

    def models(self, models: Models) -> Models:
        """`models`, which answer from the memo what it knows."""
        return replace(
            models,
            draft=models.draft and MemoPolicy(models.draft, self._askers["draft"]),
            target=models.target and MemoPolicy(models.target, self._askers["target"]),
            prm=models.prm and MemoReward(models.prm, self._askers["prm"]),
        )


class MemoPolicy:
    """A policy whose greedy calls are answered once."""

    def __init__(self, policy: PolicyModel, asker: "_Asker") -> None:
        self.tokenizer = policy.tokenizer
        self._policy = policy
        self._asker = asker

    def prompt(self, question: str) -> tuple[int, ...]:
        """Token ids of the prompt."""
        return self._policy.prompt(question)

    async def generate(self, context: Context, sampling: Sampling) -> Completion:
        """Continue `context` by one piece; what is drawn at a temperature is drawn anew."""
        if sampling.temperature > 0:
            return await self._policy.generate(context, sampling)
        compute = partial(self._policy.generate, context, sampling)
        return await self._asker.ask("generate", context, compute, stop=repr(sampling.stop), limit=sampling.max_tokens)

    async def logprobs(self, context: Context, continuation: Sequence[int]) -> Logprobs:
        """What the model would have given each token of `continuation` after `context`."""
        compute = partial(self._policy.logprobs, context, continuation)
        return await self._asker.ask("logprobs", context, compute, given=tuple(continuation))


class MemoReward:
    """A reward model whose scores are computed once."""

    def __init__(self, prm: RewardModel, asker: "_Asker") -> None:
        self._prm = prm
        self._asker = asker

    def context(self, question: str, steps: Sequence[str]) -> Context:
        """What the reward model reads. Raises PRMContextError."""
        return self._prm.context(question, steps)

    async def score(self, question: str, steps: Sequence[str]) -> Reward:
        """Reward of the newest of `steps`. Raises PRMContextError, RewardError."""
        compute = partial(self._prm.score, question, steps)
        return await self._asker.ask("score", self.context(question, steps), compute)


class _Asker:
    """One run's calls to one model. `reused`: see `Engine.reused`, of its role."""

    def __init__(self, known: _Known, asked: Asked, reused: Callable[[Call, int], int]) -> None:
        self._known = known
        self._asked = asked
        self._reused = reused
        self._reading = Reading()
        self._spared: set[tuple[int, ...]] = set()  # prompts about which the memo answered in the model's place

    async def ask(
        self,
        call: Call,
        context: Context,
        compute: Callable[[], Awaitable[Answer]],
        *,
        stop: str = "",
        given: tuple[int, ...] = (),
        limit: int | None = None,
    ) -> Answer:
        """The answer, with the usage that it would have had in this run alone. `stop` and `given`: what it depends on
        besides the context; `limit`: most tokens of it."""
        prompt: tuple[int, ...] = context.prompt
        key = orjson.dumps((call, prompt, context.response, stop, given))
        answer, computed = await self._known.answer(blake2b(key, digest_size=16).digest(), limit, compute)
        if not computed:
            self._spared.add(prompt)
        read: tuple[int, ...] = (*prompt, *context.response, *given[:-1])
        if answer.usage.cached is not None and prompt in self._spared:
            shared = min(self._reading.shared(prompt, read), len(read) - max(1, len(given)))
            answer = replace(answer, usage=replace(answer.usage, cached=self._reused(call, shared)))
        written: tuple[int, ...] = answer.token_ids if isinstance(answer, Completion) else ()
        self._reading.add(prompt, (*read, *written[:-1]))  # the last token written is an output only
        self._asked.calls += 1
        self._asked.computed += computed
        self._asked.generated += len(written) if computed else 0
        return answer
