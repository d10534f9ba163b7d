"""The command that this project exists for, with a real small language model on real questions."""

import re
import subprocess
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

from rsd.store import read_grades, read_records
from tests.conftest import ROOT, SHARED, command, environment
from tests.vllm.conftest import REAL, orphans

pytestmark = pytest.mark.vllm
FLOAT = "dtype=float32"
LIMITS = ("limits.total_tokens=1024", "limits.response_tokens=100")


@pytest.fixture
def smollm(tmp_path: Path) -> Path:
    """SmolLM2-135M-Instruct as vLLM reads it: its package carries quantised weights in another format."""
    (packed,) = REAL.glob("smollm2/**/*.gguf")
    source = {"pretrained_model_name_or_path": packed.parent, "gguf_file": packed.name}
    quantised = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32)
    settings = {key: value for key, value in quantised.config.to_dict().items() if key != "quantization_config"}
    model = LlamaForCausalLM(LlamaConfig(**settings))
    model.load_state_dict(quantised.state_dict())
    model.save_pretrained(tmp_path / "smollm")
    AutoTokenizer.from_pretrained(**source).save_pretrained(tmp_path / "smollm")
    return tmp_path / "smollm"


def test_a_real_model_solves_real_questions_step_by_step(smollm: Path, skywork: Path, tmp_path: Path) -> None:
    """As draft and target, judged by a reward model of Skywork's layout, with the engine that the family brings."""
    settings = [f"model.{role}.{setting}" for role in ("draft", "target") for setting in (f"path={smollm}", FLOAT)]
    started = subprocess.Popen(
        command(
            *("model=qwen_math_7b", "model.prompt=chat_template", "prm=skywork_1p5b", f"prm.path={skywork}"),
            *("delta=0.5", "check=true", "limit=5", *LIMITS, f"prm.{FLOAT}", *settings),
            *("benchmark=gsm8k", f"benchmark.path={SHARED / 'benchmarks' / 'gsm8k.jsonl'}"),
            f"results_dir={tmp_path}",
        ),
        cwd=ROOT, env=environment(), start_new_session=True, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    _, errors = started.communicate(timeout=600)
    assert started.returncode == 0, errors
    assert "Traceback" not in errors
    assert not orphans(started.pid)
    assert float(re.findall(r"largest difference is ([\d.e-]+)\.", errors)[0]) < 1e-3
    (folder,) = (tmp_path / "runs" / "gsm8k").iterdir()
    records = read_records(folder)
    assert len(records) == len(read_grades(folder)) == 5
    proposals = [proposal for record in records.values() for proposal in record.proposals]
    assert {proposal.origin for proposal in proposals} == {"draft", "target"}
    assert all(proposal.text.endswith("\n\n") for proposal in proposals if proposal.finish == "step")
    assert all(about_numbers(record.response) for record in records.values())
    assert sum(proposal.kept for proposal in proposals) >= 8, "steps of five responses"


def about_numbers(text: str) -> bool:
    """Whether `text` is words with numbers among them."""
    return bool(re.search(r"\d", text)) and len(re.findall(r"[A-Za-z ]", text)) > len(text) / 2
