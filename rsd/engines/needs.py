"""How a role is served, and what its model then asks of a device: from the checkpoint's own files and settings.

    need = need_of("target", source, model, Serving(args={"gpu_memory_utilization": 0.4}))
    need.weights, need.cache   # GiB; see ``placement.place``

`model` is the model without its weights, see ``vllm.VLLMEngine``.
"""

from dataclasses import dataclass
from typing import Annotated, Any

import torch
from annotated_types import Ge

from rsd.engines.base import ModelSource
from rsd.engines.checkpoint import bytes_in
from rsd.engines.placement import GIB, Need, limit_of
from rsd.errors import ConfigError
from rsd.records import Role


@dataclass(frozen=True, kw_only=True)
class Serving:
    """How one role is served. `device`: its GPU or GPUs, null to let the planner choose. `replicas`: whole
    copies, among which questions are spread. `args`: given to vLLM's engine as they are; what they say of memory
    and length the planner follows."""

    device: int | tuple[int, ...] | None = None
    tensor_parallel_size: Annotated[int, Ge(1)] = 1
    replicas: Annotated[int, Ge(1)] = 1
    args: dict[str, Any] | None = None


ONE_COPY = Serving()


def need_of(role: Role, source: ModelSource, model: Any, serving: Serving) -> Need:
    """What a copy of `model` asks of its devices. Raises ConfigError where `serving` gives it an impossible size."""
    cache = _given(role, serving, "kv_cache_memory_bytes")
    return Need(
        weights=_weight_bytes(source, model) / GIB,
        cache=_bytes_per_token(source, model) * longest(role, source, serving) / GIB,
        parallel=serving.tensor_parallel_size,
        replicas=serving.replicas,
        devices=(serving.device,) if isinstance(serving.device, int) else serving.device,
        given=_given(role, serving, "gpu_memory_utilization", most=1),
        given_cache=None if cache is None else cache / GIB,
    )


def longest(role: Role, source: ModelSource, serving: Serving) -> int:
    """Tokens of the longest request that vLLM is to take: one more than the run's longest text, since vLLM refuses
    to read a text that leaves no token to write; or what ``engine.<role>.args`` say.

    Raises ConfigError where that is less than the run's longest text: questions would fail that reach it."""
    given = int(_given(role, serving, "max_model_len") or source.context)
    if given < source.context:
        raise ConfigError(
            f"engine.{role}.args.max_model_len={given} is less than the {source.context} tokens that this run may "
            f"take; lower {limit_of(role)} instead."
        )
    return max(given, source.context + 1)


def _weight_bytes(source: ModelSource, model: Any) -> int:
    """Of the loaded weights: those of quantised ones are the files' own, others take on the configured dtype."""
    if getattr(model.config, "quantization_config", None) is not None:
        held = bytes_in(source)
        if held is not None:
            return held
    return int(sum(p.numel() for p in model.parameters()) * _dtype(source).itemsize)


def _bytes_per_token(source: ModelSource, model: Any) -> int:
    """Key-value cache of one token in all layers."""
    config = model.config
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return int(2 * config.num_hidden_layers * config.num_key_value_heads * head_dim * _dtype(source).itemsize)


def _dtype(source: ModelSource) -> torch.dtype:
    dtype = getattr(torch, source.dtype)
    assert isinstance(dtype, torch.dtype)
    return dtype


def _given(role: Role, serving: Serving, name: str, most: float = float("inf")) -> float | None:
    """What ``engine.<role>.args`` say of `name`. Raises ConfigError where that is no number in (0, `most`]."""
    value = (serving.args or {}).get(name)
    if value is None or (isinstance(value, int | float) and 0 < value <= most):
        return value
    upper = "" if most == float("inf") else f" and at most {most:g}"
    raise ConfigError(f"engine.{role}.args.{name}={value!r} is wrong: it must be a number above 0{upper}.")
