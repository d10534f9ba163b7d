"""What the tests of the vLLM engine share: real tokenizers, tiny checkpoints with real layouts, started engines."""

import json
import os
import shutil
from pathlib import Path

import psutil
import pytest
import torch
from transformers import AutoTokenizer, PreTrainedTokenizerBase, Qwen2Config

from rsd.engines.classifiers import Qwen2ForPrmModel, Qwen2ForProcessRewardModel
from tests.conftest import ROOT

REAL = Path(os.environ.get("RSD_REAL_MODELS", ROOT / ".models"))  # what fetch.sh brought
MARK_ID = 151651  # Qwen2.5-Math-PRM's <extra_0>; in Qwen2.5 itself this is <|quad_end|>
VOCABULARY = 151_936  # of the checkpoints; the tokenizer's real tokens end before 151,665


@pytest.fixture(scope="session")
def qwen() -> PreTrainedTokenizerBase:
    """Qwen2.5's tokenizer."""
    return AutoTokenizer.from_pretrained(REAL / "qwen2_5")


@pytest.fixture(scope="session")
def llama() -> PreTrainedTokenizerBase:
    """Llama 3's tokenizer."""
    return AutoTokenizer.from_pretrained(REAL / "llama3_1")


@pytest.fixture(scope="session")
def skywork(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny checkpoint with the layout, head and tokenizer of Skywork-o1-Open-PRM."""
    folder = tmp_path_factory.mktemp("skywork") / "checkpoint"
    shutil.copytree(REAL / "qwen2_5", folder)
    _edit(folder / "tokenizer_config.json", '"bos_token": null', '"bos_token": "<|im_start|>"')
    return _with_weights(Qwen2ForPrmModel, folder)


@pytest.fixture(scope="session")
def qwen_prm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny checkpoint with the layout, head and tokenizer of Qwen2.5-Math-PRM."""
    folder = tmp_path_factory.mktemp("qwen_prm") / "checkpoint"
    shutil.copytree(REAL / "qwen2_5", folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        _edit(folder / name, "<|quad_end|>", "<extra_0>")
    return _with_weights(Qwen2ForProcessRewardModel, folder)


def orphans(session: int) -> list[list[str]]:
    """Commands of that session which still run, a while after it should have ended."""
    running = [p for p in psutil.process_iter() if os.getsid(p.pid) == session and p.status() != "zombie"]
    _, alive = psutil.wait_procs(running, timeout=5)
    return [process.cmdline() for process in alive]


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{path.name} no longer holds {old}"
    path.write_text(text.replace(old, new), encoding="utf-8")
    json.loads(text)


def _with_weights(kind: type, folder: Path) -> Path:
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=VOCABULARY,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        initializer_range=0.3,  # so that scores spread
        max_position_embeddings=4096,
    )
    kind(config).save_pretrained(folder)
    return folder
