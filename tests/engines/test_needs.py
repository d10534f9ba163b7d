"""What a model asks of a device follows from its checkpoint and from what the user gave vLLM."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM, Qwen2Config, Qwen2ForCausalLM

from rsd.engines.base import ModelSource
from rsd.engines.needs import Serving, need_of
from rsd.engines.placement import GIB, Need, place
from rsd.errors import ConfigError

CONTEXT = 511
TOKEN = 2 * 2 * 1 * 32 * 2  # bytes: keys and values, 2 layers, 1 head of 32, bfloat16


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model in float32."""
    folder = tmp_path_factory.mktemp("needs") / "checkpoint"
    config = Qwen2Config(
        vocab_size=100, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1,
    )  # fmt: skip
    Qwen2ForCausalLM(config).save_pretrained(folder)
    return folder


def need(folder: Path, **args: Any) -> Need:
    source = ModelSource(key="model.target.path", path=str(folder), revision=None, dtype="bfloat16", context=CONTEXT)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder))
    return need_of("target", source, model, Serving(args=args or None))


def test_weights_take_on_the_configured_dtype(checkpoint: Path) -> None:
    weights = load_file(checkpoint / "model.safetensors")
    parameters = sum(weight.numel() for weight in weights.values())
    assert (checkpoint / "model.safetensors").stat().st_size > 4 * parameters
    assert need(checkpoint).weights == 2 * parameters / GIB


@pytest.mark.parametrize("layout", ["one file", "index"])
def test_quantised_weights_are_as_large_as_their_files(layout: str, checkpoint: Path, tmp_path: Path) -> None:
    weights = {
        name: weight.to(torch.float8_e4m3fn if "proj" in name else torch.bfloat16).contiguous()
        for name, weight in load_file(checkpoint / "model.safetensors").items()
    }
    held = sum(weight.nbytes for weight in weights.values())
    if layout == "one file":
        save_file(weights, tmp_path / "model.safetensors")
        held = (tmp_path / "model.safetensors").stat().st_size
    else:  # of which no shard need be there
        index = {"metadata": {"total_size": held}, "weight_map": dict.fromkeys(weights, "model-1-of-1.safetensors")}
        (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    config = json.loads((checkpoint / "config.json").read_text())
    quantised = {**config, "quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic"}}
    (tmp_path / "config.json").write_text(json.dumps(quantised))
    assert need(tmp_path).weights == held / GIB
    assert need(tmp_path).weights < 0.8 * need(checkpoint).weights


def test_a_given_length_is_what_a_requests_cache_must_hold(checkpoint: Path) -> None:
    assert need(checkpoint).cache == TOKEN * (CONTEXT + 1) / GIB
    assert need(checkpoint, max_model_len=2000).cache == TOKEN * 2000 / GIB
    assert need(checkpoint, max_model_len=CONTEXT).cache == need(checkpoint).cache
    with pytest.raises(ConfigError, match=r"max_model_len=100 is less than the 511 .* lower limits\.total_tokens"):
        need(checkpoint, max_model_len=100)


def test_a_given_memory_is_the_models_share(checkpoint: Path) -> None:
    fraction = need(checkpoint, gpu_memory_utilization=0.25)
    cache = need(checkpoint, kv_cache_memory_bytes=3 * GIB)
    assert (fraction.given, fraction.given_cache, cache.given, cache.given_cache) == (0.25, None, None, 3)
    shares = place({"target": fraction, "prm": need(checkpoint)}, [80.0])
    assert shares["target"][0].fraction == 0.25


@pytest.mark.parametrize(
    ("name", "value"),
    [("gpu_memory_utilization", 1.5), ("gpu_memory_utilization", "half"), ("kv_cache_memory_bytes", 0)],
)
def test_an_impossible_size_is_told_with_its_key(name: str, value: object, checkpoint: Path) -> None:
    with pytest.raises(ConfigError, match=rf"engine\.target\.args\.{name}={value!r} is wrong: it must be a number"):
        need(checkpoint, **{name: value})
