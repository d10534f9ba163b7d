"""A policy and a classifier behind HTTP servers.

They are made by ``OpenAIEngine.load_policy`` and ``load_classifier``.
"""

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from transformers import PreTrainedTokenizerBase

from rsd.engines.answers import Drafted, Written, completion_of
from rsd.engines.base import Classification, Completion, Context, Logprobs, ModelSource, Sampling, Totals
from rsd.engines.copies import Copies
from rsd.engines.http import Server
from rsd.engines.prompts import prompt_ids
from rsd.errors import ServerError
from rsd.records import PolicyRole, Usage


class RemoteCopies:
    """Equal servers of one role, among which questions are spread; those that are gone get no new ones. `key`: the
    setting of the role. `name`: what the servers call the model. `block`: tokens of a block of their caches."""

    def __init__(self, servers: Sequence[Server], key: str, name: str, block: int) -> None:
        self.key = key
        self.block = block
        self.totals = Totals()
        self._servers = servers
        self._name = name
        self.forget()

    def forget(self) -> None:
        """Mark all further requests apart, so that a cache takes nothing for them from earlier ones: a server outlives
        runs, and each run is to find what it would find alone."""
        self.copies = Copies()
        self._salt = uuid4().hex

    async def ask(self, path: str, context: Context, body: dict[str, Any]) -> dict[str, Any]:
        """POST `body` about the question of `context` to its server. Raises ServerError."""
        there = [number for number, server in enumerate(self._servers) if not server.lost]
        with self.copies.chosen(context.prompt, among=there or range(len(self._servers))) as number:
            return await self._servers[number].ask(path, {"model": self._name, "cache_salt": self._salt, **body})

    def count(self, tokens: int, forwards: int) -> None:
        """Add to the totals: `tokens` run, in `forwards` passes of that request."""
        self.totals += Totals(tokens=tokens, forwards=forwards)


class RemotePolicy:
    """A causal language model behind the `PolicyModel` interface."""

    def __init__(
        self,
        role: PolicyRole,
        tokenizer: PreTrainedTokenizerBase,
        eos_ids: Sequence[int],
        source: ModelSource,
        servers: RemoteCopies,
    ) -> None:
        self.role = role
        self.tokenizer = tokenizer
        self._eos_ids = list(eos_ids)
        self._source = source
        self.servers = servers

    def prompt(self, question: str) -> tuple[int, ...]:
        """Token ids of the prompt: the configured text, or the tokenizer's chat template."""
        return prompt_ids(self.tokenizer, self._source, question)

    async def generate(self, context: Context, sampling: Sampling) -> Completion:
        """Continue `context` until the delimiter, EOS or `sampling.max_tokens`. Raises ServerError."""
        body = {
            "prompt": [*context.prompt, *context.response],
            "max_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": sampling.seed,
            "stop": sampling.stop,
            "stop_token_ids": self._eos_ids,
            "include_stop_str_in_output": True,
            "logprobs": 0,
            "skip_special_tokens": False,
            "spaces_between_special_tokens": False,
            "return_token_ids": True,
            # told, so that no defaults of the checkpoint come in their place
            **{"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0},
        }
        answer = await self.servers.ask("/v1/completions", context, body)
        written = self._written(answer, sampling)
        completion = completion_of(written, self.tokenizer, context, sampling)
        usage = completion.usage
        if usage.cached is not None:
            self.servers.count(usage.prompt - usage.cached + usage.generated + usage.verified, usage.passes)
        return completion

    async def logprobs(self, context: Context, continuation: Sequence[int]) -> Logprobs:
        """What the model would have given each token of `continuation` after `context`; vLLM reads all of it
        for that, past its cache. Raises ServerError."""
        ids = [*context.prompt, *context.response, *continuation]
        body = {"prompt": ids, "max_tokens": 1, "temperature": 0, "top_p": 1, "prompt_logprobs": 0}
        answer = await self.servers.ask("/v1/completions", context, body)
        try:
            told = answer["choices"][0]["prompt_logprobs"][-len(continuation) :]
            values = tuple(float(at[str(token)]["logprob"]) for at, token in zip(told, continuation, strict=True))
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise self._unusable("log-probabilities of the prompt") from error
        self.servers.count(len(ids), 1)
        return Logprobs(values=values, usage=Usage(prompt=len(ids), cached=0, verified=len(values), passes=1))

    def _written(self, answer: dict[str, Any], sampling: Sampling) -> Written:
        """Raises ServerError where the answer lacks what vLLM tells, or is another than was asked for."""
        try:
            (choice,) = answer["choices"]
            details = (answer.get("usage") or {}).get("prompt_tokens_details") or {}
            speculation = (answer.get("metrics") or {}).get("speculative_decoding")
            drafted = speculation and Drafted(
                tokens=speculation["num_draft_tokens"], rounds=speculation["acceptance_histogram"]
            )
            written = Written(
                token_ids=[int(token) for token in choice["token_ids"]],
                finish_reason=choice["finish_reason"],
                stop_reason=choice.get("stop_reason"),
                logprob=sum(choice["logprobs"]["token_logprobs"]),
                cached=details.get("cached_tokens"),
                drafted=drafted or None,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise self._unusable("the token ids and log-probabilities of what was written") from error
        if written.finish_reason == "length" and len(written.token_ids) < sampling.max_tokens:
            raise ServerError(
                f"{self.servers.key}: the server ended a text after {len(written.token_ids)} of {sampling.max_tokens} "
                "tokens; start it with --generation-config vllm."
            )
        if (written.drafted is not None) != (self._source.drafter is not None):
            has = "speaks of a drafter, which this method has none of" if written.drafted else "tells of no drafter"
            raise ServerError(f"{self.servers.key}: the server {has}; start it as python -m rsd.serve says.")
        return written

    def _unusable(self, what: str) -> ServerError:
        return ServerError(
            f"{self.servers.key}: the server does not give {what}; name one that python -m rsd.serve starts."
        )


class RemoteClassifier:
    """A sequence classifier behind the `Classifier` interface."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, labels: int, servers: RemoteCopies) -> None:
        self.tokenizer = tokenizer
        self.labels = labels
        self._servers = servers

    async def classify(self, context: Context) -> Classification:
        """Read the head at the last token of `context`. Raises ServerError."""
        body = {"input": [*context.prompt, *context.response], "use_activation": False}
        answer = await self._servers.ask("/classify", context, body)
        try:
            logits = tuple(float(value) for value in answer["data"][0]["probs"])
        except (KeyError, IndexError, TypeError, ValueError):
            logits = ()
        if len(logits) != self.labels:
            raise ServerError(
                f"{self._servers.key}: the server gives {len(logits)} outputs where the model has {self.labels}; start "
                "it as python -m rsd.serve says."
            )
        length = len(context.prompt) + len(context.response)
        return Classification(logits=logits, usage=Usage(prompt=length, cached=None, passes=1))
