"""README's section on extending: its files, in a folder outside of this repository, under its own commands."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from rsd.run import main
from rsd.store import read_manifest, read_records
from tests.conftest import ROOT, environment
from tests.pages import EXTENDING, Page

FILE = re.compile(r"# (my\w*/\S+)")
SNIPPETS = [block for block in Page(ROOT / "README.md").blocks if FILE.match(block.text)]


def files(text: str) -> dict[str, str]:
    """{name: content} of a block in which each file begins with its name."""
    _, *parts = FILE.split(text)
    return dict(zip(parts[::2], parts[1::2], strict=True))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of the section."""
    folder = tmp_path_factory.mktemp("extending")
    for block in SNIPPETS:
        for name, text in files(block.text).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.removeprefix("\n"))
    return folder


@pytest.fixture(scope="module")
def runs(folder: Path) -> dict[str, Path]:
    """The folders of the runs that the section's commands make, by method."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(folder)  # as python -m does
        patch.setattr("rsd.command._failures", [])
        for command in EXTENDING:
            python, option, _, *words = shlex.split(command)
            assert (python, option) == ("python", "-m")
            patch.setattr(sys, "argv", ["rsd.run", *words])
            assert main() == 0, command
    found = [path.parent for path in folder.glob("results/runs/*/*/manifest.json")]
    assert len(found) == len(EXTENDING) > 0
    return {read_manifest(path)["name"]: path for path in found}


@pytest.mark.parametrize("block", SNIPPETS, ids=lambda block: block.place)
def test_each_takes_fewer_than_ten_lines(block: object) -> None:
    lines = [line for text in files(block.text).values() for line in text.splitlines() if line.strip()]  # type: ignore[attr-defined]
    assert 0 < len(lines) < 10


def test_a_family_and_the_prm_that_it_brings(runs: dict[str, Path]) -> None:
    found = read_manifest(runs["rsd binary delta=0.3"])
    assert (found["model"], found["prm"]) == ("mine", "mine")
    assert found["identity"]["models"]["target"]["id"] == "l"
    assert found["identity"]["models"]["prm"]["adapter"] == "mypkg.prm.MyPRM"


def test_a_weighting_and_a_prm(runs: dict[str, Path]) -> None:
    proposals = [p for record in read_records(runs["rsd power exponent=2"]).values() for p in record.proposals]
    scored = [p for p in proposals if p.reward is not None]
    assert len(scored) > 5
    assert all(p.omega == p.reward**2 for p in scored)


def test_a_method_on_questions_under_names_of_their_own(runs: dict[str, Path]) -> None:
    folder = runs["alternating"]
    assert folder.parent.name == "mine"
    records = read_records(folder).values()
    assert len(records) == 2
    for record in records:
        origins = [proposal.origin for proposal in record.proposals]
        assert origins == ["draft" if n % 2 else "target" for n in range(len(origins))]


def test_what_is_no_adapter_is_told(folder: Path) -> None:
    """In a process of its own, which finds the package in the folder that it is called from."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    words = ["--config-dir", "my", "prm=mine", "prm.adapter=mypkg.method.Alternating"]
    ended = subprocess.run(
        [sys.executable, "-m", "rsd.run", *words], capture_output=True, text=True, cwd=folder,
        env=environment(PYTHONPATH=path), check=False,
    )  # fmt: skip
    assert ended.returncode == 2
    told = "prm.adapter=mypkg.method.Alternating is no adapter; derive it from rsd.rewards.base.Adapter."
    assert told in ended.stderr
