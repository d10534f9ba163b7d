"""A reward model, a family and a method from a package and a configuration folder outside of this repository."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rsd.store import read_manifest, read_records
from tests.conftest import ROOT, environment

FILES = {
    "mypkg/__init__.py": "",
    "mypkg/prm.py": """
from rsd.rewards.base import Adapter
from rsd.sigmoid import sigmoid


class MyPRM(Adapter):
    labels = 1
    bounds = (0.0, 1.0)

    def prompt(self, tokenizer, question):
        text = f"<|im_start|>user\\n{question}<|im_end|>\\n<|im_start|>assistant\\n"
        return tuple(tokenizer(text, add_special_tokens=False).input_ids)

    def step(self, tokenizer, text, first):
        return tuple(tokenizer(text, add_special_tokens=False).input_ids)

    def value(self, logits):
        return 1 - sigmoid(logits[0])


class NoAdapter:
    labels = 1
""",
    "mypkg/method.py": """
from dataclasses import dataclass

from rsd.methods.base import Method


@dataclass(frozen=True, kw_only=True)
class Alternating(Method):
    period: int = 2

    @property
    def name(self):
        return f"alternating {self.period}"

    @property
    def roles(self):
        return ("draft", "target")

    @property
    def settings(self):
        return {"method": "alternating", "period": self.period}

    async def solve(self, trajectory):
        written = 0
        while not trajectory.ended:
            role = "target" if written % self.period == 0 else "draft"
            trajectory.keep(await trajectory.propose_step(role))
            written += 1
""",
    "my/prm/mine.yaml": """
name: mine
adapter: mypkg.prm.MyPRM
path: ${package:tiny/weights/prm_s}
revision: null
dtype: float32
max_length: 1024
""",
    "my/method/alternating.yaml": """
_target_: mypkg.method.Alternating
period: 3
""",
    "my/model/mine.yaml": """
# @package _global_
defaults:
  - tiny
  - override /prm: mine
  - _self_

model:
  name: mine
  target:
    path: ${package:tiny/weights/l}
    parameters: null
""",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a package and configuration of a user's own."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.lstrip("\n"))
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, from within that folder."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "rsd.run", "--config-dir", "my", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env=environment(PYTHONPATH=path), check=False
    )


def the_run(folder: Path) -> Path:
    (found,) = (folder / "results" / "runs" / "tiny_chain").iterdir()
    return found


def test_a_family_and_a_prm_of_ones_own(folder: Path) -> None:
    """A family may bring the PRM, as those here do."""
    ended = run(folder, "model=mine", "limit=3", "delta=0.3")
    assert ended.returncode == 0, ended.stderr
    found = read_manifest(the_run(folder))
    assert (found["model"], found["prm"]) == ("mine", "mine")
    assert found["identity"]["models"]["prm"]["adapter"] == "mypkg.prm.MyPRM"
    records = read_records(the_run(folder)).values()
    assert len(records) == 3
    assert all(0 <= p.reward <= 1 for record in records for p in record.proposals if p.reward is not None)


def test_a_method_of_ones_own(folder: Path) -> None:
    ended = run(folder, "method=alternating", "limit=3")
    assert ended.returncode == 0, ended.stderr
    for record in read_records(the_run(folder)).values():
        origins = [proposal.origin for proposal in record.proposals]
        assert origins == [("target" if n % 3 == 0 else "draft") for n in range(len(origins))]


def test_what_is_no_adapter_is_told(folder: Path) -> None:
    ended = run(folder, "prm=mine", "prm.adapter=mypkg.prm.NoAdapter")
    assert ended.returncode == 2
    assert "prm.adapter=mypkg.prm.NoAdapter is no adapter; derive it from rsd.rewards.base.Adapter." in ended.stderr
