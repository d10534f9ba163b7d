"""Loggers: the summary of a run arrives at Weights & Biases, offline."""

from pathlib import Path

import pytest

from rsd.invocation import invoke
from rsd.loggers import NoLogger, WandbLogger
from rsd.plan import make_plan
from tests.conftest import compose_config


def test_wandb_keeps_the_summary_of_a_real_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    monkeypatch.setenv("WANDB_SILENT", "true")
    config = compose_config("logger=wandb", "limit=3", f"results_dir={tmp_path}")
    assert isinstance(make_plan(config).logger, WandbLogger)
    invoke(config)
    (stored,) = tmp_path.glob("wandb/offline-run-*/run-*.wandb")
    content = stored.read_bytes()
    assert b"acceptance_rate" in content
    assert make_plan(config).folder.name.encode() in content


def test_without_a_logger_nothing_leaves_the_run_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    config = compose_config("limit=1", f"results_dir={tmp_path / 'results'}")
    assert isinstance(make_plan(config).logger, NoLogger)
    invoke(config)
    assert [path.name for path in tmp_path.iterdir()] == ["results"]
