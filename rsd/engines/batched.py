"""A policy and a classifier over a batcher: what a request means, token by token.

They are made by ``TransformersEngine.load_policy`` and ``load_classifier``.
"""

import asyncio
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random

import torch
from transformers import GenerationConfig, PreTrainedTokenizerBase

from rsd.engines.base import Classification, Completion, Context, Logprobs, ModelSource, Sampling, completes
from rsd.engines.batcher import Request
from rsd.engines.prompts import prompt_ids
from rsd.engines.sampler import sample
from rsd.errors import ModelError
from rsd.records import Finish, PolicyRole, Usage

Submit = Callable[[Request], None]


@dataclass(slots=True, eq=False, kw_only=True)
class _Generation(Request):
    """A request that writes text. `start`: length of its context."""

    sampling: Sampling
    rng: Random
    start: int
    logprob: float = 0.0


@dataclass(slots=True, eq=False, kw_only=True)
class _Continuation(Request):
    """A request for the log-probabilities of text that is given."""

    continuation: tuple[int, ...]


class BatchedPolicy:
    """A causal language model behind the `PolicyModel` interface."""

    def __init__(
        self,
        role: PolicyRole,
        tokenizer: PreTrainedTokenizerBase,
        generation_config: GenerationConfig,
        source: ModelSource,
        submit: Submit,
    ) -> None:
        self.role = role
        self.tokenizer = tokenizer
        eos = generation_config.eos_token_id
        self.eos_ids = frozenset([eos] if isinstance(eos, int) else eos or [])
        if not self.eos_ids:
            raise ModelError(f"{source.key}: {source.path} names no EOS token, so no response would ever end.")
        self._source = source
        self._submit = submit
        self._completing = lru_cache(maxsize=None)(self._tokens_that_may_complete)

    def prompt(self, question: str) -> tuple[int, ...]:
        """Token ids of the prompt: the configured text, or the tokenizer's chat template."""
        return prompt_ids(self.tokenizer, self._source, question)

    async def generate(self, context: Context, sampling: Sampling) -> Completion:
        """Continue `context` until the delimiter, EOS or `sampling.max_tokens`."""
        tokens = [*context.prompt, *context.response]
        request = _Generation(
            prompt=context.prompt,
            tokens=tokens,
            future=asyncio.get_running_loop().create_future(),
            sampling=sampling,
            rng=Random(sampling.seed),
            start=len(tokens),
        )
        self._submit(request)
        completion: Completion = await request.future
        return completion

    async def logprobs(self, context: Context, continuation: Sequence[int]) -> Logprobs:
        """What the model would have given each token of `continuation` after `context`."""
        request = _Continuation(
            prompt=context.prompt,
            tokens=[*context.prompt, *context.response, *continuation[:-1]],
            future=asyncio.get_running_loop().create_future(),
            reads=len(continuation),
            continuation=tuple(continuation),
        )
        self._submit(request)
        logprobs: Logprobs = await request.future
        return logprobs

    def advance(self, group: Sequence[Request], logits: torch.Tensor) -> list[int | None]:
        """Choose the next token of every request that writes, from its row of `logits` [reads, vocabulary]."""
        if not any(isinstance(request, _Continuation) for request in group):
            return self._choose([r for r in group if isinstance(r, _Generation)], logits)
        following: list[int | None] = []
        for request, rows in zip(group, logits.split([r.reads for r in group]), strict=True):
            if isinstance(request, _Continuation):
                self._tell(request, rows)
                following.append(None)
            elif isinstance(request, _Generation):
                following += self._choose([request], rows)
        return following

    def _tell(self, request: _Continuation, logits: torch.Tensor) -> None:
        """Finish `request` with the log-probabilities that its `logits` [reads, vocabulary] give."""
        values = logits.log_softmax(-1).gather(1, torch.tensor(request.continuation)[:, None]).squeeze(1).tolist()
        usage = Usage(prompt=len(request.tokens), cached=request.cached, verified=len(values), passes=1)
        if request.future.cancelled():
            return
        if not all(map(math.isfinite, values)):
            request.future.set_exception(self._not_finite())
        else:
            request.future.set_result(Logprobs(values=tuple(values), usage=usage))

    def _not_finite(self) -> ModelError:
        return ModelError(f"The {self.role} model gave logits that are not finite numbers; its weights may be corrupt.")

    def _choose(self, requests: Sequence[_Generation], logits: torch.Tensor) -> list[int | None]:
        """Choose every request's next token from its `logits` [requests, vocabulary]."""
        chosen = logits.argmax(-1)
        drawn = [i for i, r in enumerate(requests) if r.sampling.temperature > 0]
        if drawn:
            settings = [requests[i].sampling for i in drawn]
            chosen[drawn] = sample(
                logits[drawn],
                torch.tensor([s.temperature for s in settings], dtype=torch.float64),
                torch.tensor([s.top_p for s in settings], dtype=torch.float64),
                torch.tensor([requests[i].rng.random() for i in drawn], dtype=torch.float64),
            )
        logprobs = (logits.gather(1, chosen[:, None]).squeeze(1) - logits.logsumexp(-1)).tolist()
        following: list[int | None] = []
        for request, token, logprob in zip(requests, chosen.tolist(), logprobs, strict=True):
            following.append(self._write(request, token, logprob))
        return following

    def _write(self, request: _Generation, token: int, logprob: float) -> int | None:
        if not math.isfinite(logprob):
            request.future.set_exception(self._not_finite())
            return None
        request.logprob += logprob
        written = [*request.tokens[request.start :], token]
        finish = self._finish(written, request.sampling)
        if finish is None:
            return token
        if not request.future.cancelled():
            usage = Usage(generated=len(written), prompt=request.start, cached=request.cached, passes=len(written))
            request.future.set_result(self.completion(written, finish, request.logprob, usage))
        return None

    def completion(
        self, written: list[int], finish: Finish, logprob: float, usage: Usage, drafter: Usage | None = None
    ) -> Completion:
        """The answer to a request that wrote `written`."""
        text = self._decode(written[:-1] if finish == "eos" else written)
        return Completion(
            text=text, token_ids=tuple(written), logprob=logprob, finish=finish, usage=usage, drafter=drafter
        )

    def finished(self, written: list[int], sampling: Sampling) -> tuple[list[int], Finish | None]:
        """`written` up to the token that finishes it, and how; all of it and None where it goes on."""
        for count in range(1, len(written) + 1):
            finish = self._finish(written[:count], sampling)
            if finish is not None:
                return written[:count], finish
        return written, None

    def _finish(self, written: list[int], sampling: Sampling) -> Finish | None:
        if written[-1] in self.eos_ids:
            return "eos"
        stop = sampling.stop
        if stop is not None and self._may_complete(stop, written[-1]) and completes(stop, self._decode(written)):
            return "step"
        return "length" if len(written) >= sampling.max_tokens else None

    def _may_complete(self, stop: str | re.Pattern[str], token: int) -> bool:
        return token in self._completing(stop) if isinstance(stop, str) else True

    def _tokens_that_may_complete(self, stop: str) -> frozenset[int]:
        """Tokens with the last character of `stop` in them: only after these is the text looked at."""
        texts = self.tokenizer.batch_decode([[i] for i in range(len(self.tokenizer))])
        return frozenset(i for i, text in enumerate(texts) if stop[-1] in text)

    def _decode(self, ids: Sequence[int]) -> str:
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False))


class BatchedClassifier:
    """A sequence classifier behind the `Classifier` interface."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, labels: int, submit: Submit) -> None:
        self.tokenizer = tokenizer
        self.labels = labels
        self._submit = submit

    async def classify(self, context: Context) -> Classification:
        """Read the head at the last token of `context`."""
        tokens = [*context.prompt, *context.response]
        future: asyncio.Future[Classification] = asyncio.get_running_loop().create_future()
        self._submit(Request(prompt=context.prompt, tokens=tokens, future=future))
        return await future

    def advance(self, group: Sequence[Request], logits: torch.Tensor) -> list[None]:
        """Finish every request with its row of `logits` [requests, labels]."""
        for request, row in zip(group, logits.tolist(), strict=True):
            if not request.future.cancelled():
                usage = Usage(prompt=len(request.tokens), cached=request.cached, passes=1)
                request.future.set_result(Classification(logits=tuple(row), usage=usage))
        return [None] * len(group)
