"""Sweeps in this process."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rsd.plan import make_plan
from rsd.run import main
from tests.conftest import compose_config

Sweep = Callable[..., tuple[int, str, str]]


@pytest.fixture
def sweep(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Sweep:
    """Run the command in this process, with results below the test's own folder: exit status, output, errors."""

    def sweep(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["rsd.run", *arguments, f"results_dir={tmp_path / 'results'}"])
        monkeypatch.delenv("HYDRA_FULL_ERROR", raising=False)
        monkeypatch.setattr("rsd.command._failures", [])
        status = main()
        return status, *capsys.readouterr()

    return sweep


def folder_of(results: Path, *overrides: str) -> Path:
    return make_plan(compose_config(f"results_dir={results}", *overrides)).folder
