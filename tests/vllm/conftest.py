"""What the tests of the vLLM engine share: real tokenizers, tiny checkpoints with real layouts, started engines."""

import asyncio
import itertools
import json
import os
import shutil
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import psutil
import pytest
import torch
from transformers import (
    AutoTokenizer,
    LlamaConfig,
    LlamaForCausalLM,
    LlamaForSequenceClassification,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedConfig,
    PreTrainedTokenizerBase,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from rsd.engines.classifiers import Qwen2ForPrmModel, Qwen2ForProcessRewardModel
from tests.conftest import ROOT, SHARED

os.environ.setdefault("OMP_NUM_THREADS", "1")  # two processes of tests share the cores
REAL = Path(os.environ.get("RSD_REAL_MODELS", ROOT / ".models"))  # what fetch.sh brought
MARK_ID = 151651  # Qwen2.5-Math-PRM's <extra_0>; in Qwen2.5 itself this is <|quad_end|>
# Steps that end in one token of the delimiter and what stands before it, or of more newlines than it needs.
WRITTEN = ["Let $x=1$.\n\n", "So (y+2)\n\n\n\n", "Then:\n\n\n", "It is \n\n", "4"]
MATH = [f"benchmark.path={SHARED / 'benchmarks' / 'math500.jsonl'}"]
BLOCK = 32  # tokens of a block of the prefix cache, the least that vLLM allows on a CPU
SIZE = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
SIZE |= {"num_attention_heads": 2, "num_key_value_heads": 1}
SPREAD = {"initializer_range": 0.3, "max_position_embeddings": 512}  # of scores; less context than tests read
GIB_OF_CACHE = 0.125  # of each engine, which writes to all of it as it starts
CACHE = f"engine.cpu_kv_cache_gib={GIB_OF_CACHE}"
VOCABULARY = 151_936  # of the checkpoints; the tokenizer's real tokens end before 151,665
LONGEST = ("test_servers", "test_engine", "test_command", "test_endings")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first, in this order: or the last of them keeps one process busy while the other has ended."""
    place = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.stem, len(place)))


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """One event loop for all tests: an engine belongs to the loop that it was first used in."""
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


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


@pytest.fixture(scope="session")
def shepherd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny checkpoint with the layout and tokenizer of Math-Shepherd, which is Mistral 7B's."""
    folder = tmp_path_factory.mktemp("shepherd") / "checkpoint"
    folder.mkdir()
    shutil.copy(files("mistral_common") / "data" / "tokenizer.model.v1", folder / "tokenizer.model")
    special = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "LlamaTokenizer", "legacy": True, "add_bos_token": True, **special})
    )
    return _with_weights(
        MistralForCausalLM, folder, MistralConfig(vocab_size=32_000, **SIZE, **{**SPREAD, "initializer_range": 0.2})
    )


@pytest.fixture(scope="session")
def rlhflow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny checkpoint with the layout and tokenizer of RLHFlow's PRM, which is Llama 3.1's."""
    folder = tmp_path_factory.mktemp("rlhflow") / "checkpoint"
    shutil.copytree(REAL / "llama3_1", folder)
    return _with_weights(LlamaForCausalLM, folder, LlamaConfig(vocab_size=128_256, **SIZE, **SPREAD))


@pytest.fixture(scope="session")
def skywork_orm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny checkpoint with the layout, head and tokenizer of Skywork-Reward-Llama-3.1-8B."""
    folder = tmp_path_factory.mktemp("skywork_orm") / "checkpoint"
    shutil.copytree(REAL / "llama3_1", folder)
    config = LlamaConfig(vocab_size=128_256, num_labels=1, pad_token_id=128_004, **SIZE, **SPREAD)
    return _with_weights(LlamaForSequenceClassification, folder, config)


@pytest.fixture(scope="session")
def clockwork(tmp_path_factory: pytest.TempPathFactory, qwen: PreTrainedTokenizerBase) -> Path:
    """A language model with Qwen2.5's tokenizer that writes `WRITTEN`, token by token, and EOS."""
    folder = tmp_path_factory.mktemp("clockwork") / "checkpoint"
    shutil.copytree(REAL / "qwen2_5", folder)
    written = [token for step in WRITTEN for token in qwen(step, add_special_tokens=False).input_ids]
    (prompt_end,) = qwen("\n", add_special_tokens=False).input_ids
    order = [prompt_end, *written, qwen.convert_tokens_to_ids("<|im_end|>")]
    assert len(set(order)) == len(order), "each token follows from the one before it"
    model = Qwen2ForCausalLM(_config(eos_token_id=order[-1], tie_word_embeddings=False))
    for name, weight in model.named_parameters():  # layers add nothing: the last token alone decides
        torch.nn.init.constant_(weight, float(name.endswith("norm.weight")))
    for place, (token, following) in enumerate(itertools.pairwise(order)):
        model.model.embed_tokens.weight.data[token, place] = 1
        model.lm_head.weight.data[following, place] = 1
    model.save_pretrained(folder)
    return folder


def orphans(session: int, within: float = 5) -> list[list[str]]:
    """Commands of that session which still run, `within` seconds after it should have ended."""
    running = [p for p in psutil.process_iter() if os.getsid(p.pid) == session and p.status() != "zombie"]
    _, alive = psutil.wait_procs(running, timeout=within)
    return [process.cmdline() for process in alive]


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{path.name} no longer holds {old}"
    path.write_text(text.replace(old, new), encoding="utf-8")
    json.loads(text)


def _with_weights(kind: type, folder: Path, config: PreTrainedConfig | None = None) -> Path:
    torch.manual_seed(0)
    kind(config or _config(**SPREAD)).save_pretrained(folder)
    return folder


def _config(**settings: object) -> Qwen2Config:
    return Qwen2Config(vocab_size=VOCABULARY, **SIZE, **{"max_position_embeddings": 4096, **settings})
