"""The embedded engine: transformers models on this machine's CPU, batched across questions.

    engine = TransformersEngine()
    draft = engine.load_policy("draft", source)
    completion = await draft.generate(context, sampling)

All models share one device, so one loop runs them in turn: one until no question waits for it, then the one with the
most rows ready. Questions gather before each model that way, and its forward passes are few and large.
"""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

import torch
from annotated_types import Ge, Gt
from transformers import AutoModelForCausalLM

from rsd.cost import Shape
from rsd.engines.assisted import AssistedPolicy
from rsd.engines.base import Call, ModelSource, Totals
from rsd.engines.batched import BatchedClassifier, BatchedPolicy, Submit
from rsd.engines.batcher import Advance, Batcher, Request
from rsd.engines.checkpoint import in_common
from rsd.engines.classifiers import load_classifier, width
from rsd.engines.loading import load_model, load_tokenizer, shape_of, take_over
from rsd.engines.row_cache import RowCache
from rsd.records import PolicyRole, Role

# Of the event loop between forward passes: in these, a question whose call is done asks for its next one, and one
# that waited for a free slot takes the place of one that has ended.
TURNS = 5


class TransformersEngine:
    """Serve models in this process.

    `kv_cache_gib`: memory for the key-value cache of each model, in GiB; working copies of up to 256
    sequences come on top while they run. `max_rows`: most sequences of a model that run at a time;
    further requests wait. `threads`: of torch, null for its default.
    """

    matches_patterns: ClassVar[bool] = True

    def __init__(
        self,
        *,
        kv_cache_gib: Annotated[float, Gt(0)] = 2.0,
        max_rows: Annotated[int, Ge(1)] = 512,
        threads: Annotated[int, Ge(1)] | None = None,
    ) -> None:
        if threads is not None:
            torch.set_num_threads(threads)
        self._kv_cache_bytes = int(kv_cache_gib * 2**30)
        self._max_rows = max_rows
        self._batchers: dict[Role, Batcher] = {}
        self._shapes: dict[Role, Shape] = {}
        self._loaded: dict[Role, tuple[Any, ModelSource]] = {}
        self._work_arrived = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None
        self._assisted: AssistedPolicy | None = None

    def prepare(self, sources: Mapping[Role, ModelSource], logs: Path) -> None:
        """Nothing: every model has a cache of its own size, and none a process."""

    def load_policy(self, role: PolicyRole, source: ModelSource) -> BatchedPolicy | AssistedPolicy:
        """Load a causal language model and its tokenizer, and its drafter where it has one. Raises ModelError."""
        model = load_model(AutoModelForCausalLM, source)
        policy = BatchedPolicy(role, load_tokenizer(source), model.generation_config, source, self._submitter(role))
        self._serve(role, model, model.get_output_embeddings(), source, policy.advance)
        if source.drafter is None:
            return policy
        drafter = load_model(AutoModelForCausalLM, source.drafter)
        self._shapes["draft"] = shape_of(drafter)
        self._loaded["draft"] = drafter, source.drafter
        self._assisted = AssistedPolicy(policy, model, drafter, source.drafted)
        return self._assisted

    def load_classifier(self, source: ModelSource) -> BatchedClassifier:
        """Load a sequence classifier and its tokenizer as the PRM; what of its weights a loaded policy has as well it
        takes from there. Raises ModelError."""
        model = load_classifier(source)
        for policy, other in self._loaded.values():
            if source.dtype == other.dtype:
                take_over(model, policy, in_common(source, other))
        classifier = BatchedClassifier(load_tokenizer(source), width(model), self._submitter("prm"))
        self._serve("prm", model, model.score, source, classifier.advance)
        return classifier

    def shapes(self) -> Mapping[Role, Shape]:
        """Shape of each loaded model."""
        return dict(self._shapes)

    def weights(self) -> Mapping[Role, int]:
        """Bytes of weights of each loaded model; those in common count for the first of them."""
        counted: set[int] = set()
        sizes: dict[Role, int] = {}
        for role, (model, _) in self._loaded.items():
            own = {id(p): p.nbytes for p in model.parameters() if id(p) not in counted}
            counted |= own.keys()
            sizes[role] = sum(own.values())
        return sizes

    def totals(self) -> Mapping[Role, Totals]:
        """Physical totals of each loaded model so far."""
        totals = {role: batcher.totals for role, batcher in self._batchers.items()}
        for role, more in (self._assisted.totals if self._assisted else {}).items():
            totals[role] = totals.get(role, Totals()) + more
        return totals

    def devices(self) -> Mapping[Role, Sequence[int]]:
        """One for all."""
        return {role: [0] for role in self._batchers}

    def sharing(self) -> Sequence[frozenset[Role]]:
        """Which of the loaded models share a device, each group once; none where the engine itself gives turns."""
        return []

    async def forget(self) -> None:
        """Forget what the rows of every cache hold."""
        for batcher in self._batchers.values():
            batcher.forget()

    def reused(self, role: Role, call: Call, shared: int) -> int:
        """All `shared` tokens, save where a drafter writes ahead: that reads the whole context in every call."""
        return 0 if self._assisted is not None and role == "target" and call == "generate" else shared

    async def close(self) -> None:
        """Stop the loop and forget the models."""
        if self._loop is not None:
            self._loop.cancel()
            await asyncio.wait([self._loop])
        self._batchers.clear()
        self._loaded.clear()

    def _serve(self, role: Role, model: Any, head: torch.nn.Module, source: ModelSource, advance: Advance) -> None:
        row_bytes = RowCache.bytes_per_token(model.config, model.dtype) * source.context
        rows = max(1, min(self._max_rows, self._kv_cache_bytes // row_bytes))
        cache = RowCache(model.config, rows=rows, context=source.context, dtype=model.dtype)
        self._batchers[role] = Batcher(model.base_model, head, cache, advance)
        self._shapes[role] = shape_of(model)
        self._loaded[role] = model, source

    def _submitter(self, role: Role) -> Submit:
        def submit(request: Request) -> None:
            self._batchers[role].submit(request)
            self._work_arrived.set()
            if self._loop is None:
                self._loop = asyncio.create_task(self._run())

        return submit

    async def _run(self) -> None:
        serving = next(iter(self._batchers.values()))
        while True:
            if not serving.ready:
                serving = max(self._batchers.values(), key=lambda batcher: batcher.ready)
            if not serving.ready:
                self._work_arrived.clear()
                await self._work_arrived.wait()
                continue
            try:
                serving.tick()
            except Exception as error:  # out of memory, say: it belongs to every question in that forward
                serving.fail(error)
            for _ in range(TURNS):
                await asyncio.sleep(0)
