"""Speculative decoding in this process: transformers' assisted generation, one request at a time.

    target = AssistedPolicy(policy, model, drafter, tokens=7)
    completion = await target.generate(context, sampling)

It is here for what it writes and what that takes, not for speed: nothing is batched, and no cache outlives a call.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

import torch
from transformers import StoppingCriteria, StoppingCriteriaList

from rsd.engines.base import Completion, Context, Logprobs, Sampling, Totals
from rsd.engines.batched import BatchedPolicy
from rsd.records import Role, Usage


@dataclass(slots=True)
class _Watch:
    """What a model was run on: `inputs` of each forward pass, behind so many `cached` tokens."""

    inputs: list[list[int]] = field(default_factory=list)
    cached: list[int] = field(default_factory=list)

    @contextmanager
    def over(self, model: Any) -> "Iterator[_Watch]":
        """Watch `model` while the context is open."""
        handle = model.register_forward_pre_hook(self._seen, with_kwargs=True)
        try:
            yield self
        finally:
            handle.remove()

    def _seen(self, model: Any, args: Any, kwargs: dict[str, Any]) -> None:
        self.inputs.append(kwargs["input_ids"][0].tolist())
        self.cached.append(kwargs["past_key_values"].get_seq_length())


class _Finished(StoppingCriteria):
    """Ends generation where the policy's own rule does; what was verified beyond is cut off later."""

    def __init__(self, policy: BatchedPolicy, sampling: Sampling, start: int) -> None:
        self._policy, self._sampling, self._start = policy, sampling, start

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        finish = self._policy.finished(input_ids[0, self._start :].tolist(), self._sampling)[1]
        return torch.tensor([finish is not None])


class AssistedPolicy:
    """A target whose `drafter` writes up to `tokens` tokens ahead, behind the `PolicyModel` interface.

    `policy` is the target's own, which answers whatever is not generation. Raises nothing of its own; both models
    read the same tokens, and rows of padding in their vocabularies are left out.
    """

    def __init__(self, policy: BatchedPolicy, model: Any, drafter: Any, tokens: int) -> None:
        self.tokenizer = policy.tokenizer
        self.totals: dict[Role, Totals] = {"draft": Totals(), "target": Totals()}
        self._policy = policy
        self._model = model
        self._drafter = drafter
        self._trim_padding()
        drafter.generation_config.update(
            num_assistant_tokens=tokens, num_assistant_tokens_schedule="constant", assistant_confidence_threshold=0.0
        )

    def prompt(self, question: str) -> tuple[int, ...]:
        """Token ids of the prompt."""
        return self._policy.prompt(question)

    async def logprobs(self, context: Context, continuation: Sequence[int]) -> Logprobs:
        """What the target would have given each token of `continuation` after `context`."""
        return await self._policy.logprobs(context, continuation)

    async def generate(self, context: Context, sampling: Sampling) -> Completion:
        """Continue `context` until the delimiter, EOS or `sampling.max_tokens`; greedy, exactly as the target alone."""
        began = time.perf_counter()
        ids = [*context.prompt, *context.response]
        drawn = {"temperature": sampling.temperature, "top_p": sampling.top_p} if sampling.temperature > 0 else {}
        with (
            torch.inference_mode(),
            torch.random.fork_rng(devices=[]),
            _Watch().over(self._model) as verified,
            _Watch().over(self._drafter) as drafted,
        ):
            torch.manual_seed(sampling.seed)
            output = self._model.generate(
                torch.tensor([ids]),
                attention_mask=torch.ones(1, len(ids), dtype=torch.long),
                assistant_model=self._drafter,
                max_new_tokens=sampling.max_tokens,
                do_sample=bool(drawn),
                **({"top_k": 0, **drawn} if drawn else {}),
                eos_token_id=sorted(self._policy.eos_ids),
                pad_token_id=min(self._policy.eos_ids),
                stopping_criteria=StoppingCriteriaList([_Finished(self._policy, sampling, len(ids))]),
                return_dict_in_generate=True,
                output_logits=True,
            )
        written, finish = self._policy.finished(output.sequences[0, len(ids) :].tolist(), sampling)
        assert finish is not None, "generation ends where the request does"
        self._count("target", verified, time.perf_counter() - began)  # the drafter's seconds are among these
        self._count("draft", drafted, 0.0)
        logits = torch.cat(output.logits[: len(written)]).float()
        logprobs = logits.log_softmax(-1).gather(1, torch.tensor(written)[:, None])
        usage = _usage(ids, written, verified)
        drafting = Usage(generated=usage.drafted, prompt=len(ids), passes=len(drafted.inputs))
        return self._policy.completion(written, finish, float(logprobs.sum()), usage, drafting)

    def _trim_padding(self) -> None:
        """Give both models the same number of logits: transformers refuses a pair that differs, padding or not."""
        sizes = {model.get_output_embeddings().weight.shape[0] for model in (self._model, self._drafter)}
        if len(sizes) > 1:
            for model in (self._model, self._drafter):
                model.resize_token_embeddings(min(sizes), mean_resizing=False)

    def _count(self, role: Role, watch: _Watch, seconds: float) -> None:
        tokens = sum(map(len, watch.inputs))
        self.totals[role] += Totals(tokens=tokens, forwards=len(watch.inputs), seconds=seconds)


def _usage(ids: list[int], written: list[int], verified: _Watch) -> Usage:
    """What the target did: in each round it read the token before the drafted ones and these."""
    whole = [*ids, *written]
    drafted = accepted = 0
    for tokens, cached in zip(verified.inputs, verified.cached, strict=True):
        start = cached + 1 if cached else len(ids)  # where the drafted tokens stand in the text
        candidates = tokens[start - cached :]
        drafted += len(candidates)
        pairs = zip(candidates, whole[start:], strict=False)  # a round may look beyond the end
        accepted += sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    rounds = len(verified.inputs)
    return Usage(
        generated=len(written),
        prompt=len(ids),
        drafted=drafted,
        verified=drafted + rounds - len(written),
        accepted=accepted,
        passes=rounds,
    )
