"""A policy and a classifier behind vLLM: what its answers mean in this project's terms.

They are made by ``VLLMEngine.load_policy`` and ``load_classifier``.
"""

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformers import PreTrainedTokenizerBase

from rsd.engines.answers import Drafted, Written, completion_of
from rsd.engines.base import Classification, Completion, Context, Logprobs, ModelSource, Sampling, Totals
from rsd.engines.copies import Copies
from rsd.engines.endings import has_ended
from rsd.engines.prompts import prompt_ids
from rsd.errors import ModelError
from rsd.records import PolicyRole, Role, Usage

if TYPE_CHECKING:  # heavy, and only named here
    from vllm.v1.engine.async_llm import AsyncLLM


class Replicas:
    """Equal engines of `role`, which serve the model of `source`, and among which questions are spread."""

    def __init__(self, role: Role, source: ModelSource) -> None:
        self.totals = Totals()
        self._role = role
        self._source = source
        self._engines: list[AsyncLLM] = []
        self._logs: list[Path] = []
        self.copies = Copies()
        self._numbers = itertools.count()

    def add(self, engine: "AsyncLLM", log: Path) -> None:
        """Take an engine into service, whose process writes to `log`."""
        self._engines.append(engine)
        self._logs.append(log)

    async def forget(self) -> None:
        """Empty the prefix caches."""
        self.copies = Copies()
        await asyncio.gather(*(engine.reset_prefix_cache() for engine in self._engines))

    @property
    def block(self) -> int:
        """Tokens of a block of the prefix cache."""
        return int(self._engines[0].vllm_config.cache_config.block_size)

    async def shutdown(self) -> None:
        """Stop the engines and their processes, all at the same time: vLLM waits seconds for each."""
        ending, self._engines = self._engines, []  # vLLM ends an engine again when it is collected: keep none
        for engine in ending:
            if engine.output_handler is not None:  # else it takes their end for an accident, and says so
                engine.output_handler.cancel()
        await asyncio.gather(*(asyncio.to_thread(engine.shutdown) for engine in ending))

    async def request(self, context: Context, call: str, parameters: Any) -> Any:
        """Send `context` to its engine's `generate` or `encode`, and return the one, final answer.

        Raises EngineError where the engine has ended."""
        ids = [*context.prompt, *context.response]
        with self.copies.chosen(context.prompt, among=range(len(self._engines))) as number:
            engine = self._engines[number]
            send = getattr(engine, call)
            try:
                async for answer in send({"prompt_token_ids": ids}, parameters, request_id=str(next(self._numbers))):
                    if answer.finished:
                        return answer
            except Exception as error:
                if not engine.errored:
                    raise
                processes = engine.engine_core.resources.engine_manager.processes  # several of data-parallel ones
                status = next((process.exitcode for process in processes if process.exitcode), None)
                raise has_ended(self._role, self._source, self._logs[number], status) from error
        raise ModelError("vLLM ended a request without an answer.")

    def count(self, tokens: int, forwards: int) -> None:
        """Add to the totals: `tokens` run, in `forwards` passes of that request."""
        self.totals += Totals(tokens=tokens, forwards=forwards)


class ServedPolicy:
    """A causal language model behind the `PolicyModel` interface."""

    def __init__(
        self,
        role: PolicyRole,
        tokenizer: PreTrainedTokenizerBase,
        eos_ids: Sequence[int],
        source: ModelSource,
        replicas: Replicas,
    ) -> None:
        self.role = role
        self.tokenizer = tokenizer
        self._eos_ids = list(eos_ids)
        self._source = source
        self.replicas = replicas

    def prompt(self, question: str) -> tuple[int, ...]:
        """Token ids of the prompt: the configured text, or the tokenizer's chat template."""
        return prompt_ids(self.tokenizer, self._source, question)

    async def generate(self, context: Context, sampling: Sampling) -> Completion:
        """Continue `context` until the delimiter, EOS or `sampling.max_tokens`."""
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        parameters = SamplingParams(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            max_tokens=sampling.max_tokens,
            seed=sampling.seed,
            stop=sampling.stop,
            stop_token_ids=self._eos_ids,
            include_stop_str_in_output=True,
            logprobs=0,
            skip_special_tokens=False,
            spaces_between_special_tokens=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        answer = await self.replicas.request(context, "generate", parameters)
        (output,) = answer.outputs
        metrics = output.spec_decode_metrics
        written = Written(
            token_ids=output.token_ids,
            finish_reason=output.finish_reason,
            stop_reason=output.stop_reason,
            logprob=float(output.cumulative_logprob),
            cached=answer.num_cached_tokens or 0,
            drafted=None if metrics is None else Drafted(tokens=metrics.num_draft_tokens, rounds=metrics.histogram),
        )
        completion = completion_of(written, self.tokenizer, context, sampling)
        usage = completion.usage
        self.replicas.count(usage.prompt - (usage.cached or 0) + usage.generated + usage.verified, usage.passes)
        return completion

    async def logprobs(self, context: Context, continuation: Sequence[int]) -> Logprobs:
        """What the model would have given each token of `continuation` after `context`; vLLM reads all of it
        for that, past its cache."""
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        parameters = SamplingParams(
            temperature=0, max_tokens=1, prompt_logprobs=0, output_kind=RequestOutputKind.FINAL_ONLY
        )
        whole = replace(context, response=(*context.response, *continuation))
        answer = await self.replicas.request(whole, "generate", parameters)
        length = len(context.prompt) + len(whole.response)
        self.replicas.count(length, 1)
        told = answer.prompt_logprobs[-len(continuation) :]
        return Logprobs(
            values=tuple(at[token].logprob for at, token in zip(told, continuation, strict=True)),
            usage=Usage(prompt=length, cached=0, verified=len(continuation), passes=1),
        )


class ServedClassifier:
    """A sequence classifier behind the `Classifier` interface."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, labels: int, replicas: Replicas) -> None:
        self.tokenizer = tokenizer
        self.labels = labels
        self._replicas = replicas

    async def classify(self, context: Context) -> Classification:
        """Read the head at the last token of `context`."""
        from vllm import PoolingParams

        parameters = PoolingParams(task="classify", use_activation=False)
        answer = await self._replicas.request(context, "encode", parameters)
        length, cached = len(context.prompt) + len(context.response), answer.num_cached_tokens or 0
        self._replicas.count(length - cached, 1)
        return Classification(
            logits=tuple(answer.outputs.data.float().flatten().tolist()),
            usage=Usage(prompt=length, cached=cached, passes=1),
        )
