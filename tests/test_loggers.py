"""Loggers: what a run was, how it went and what came of it arrives, and no server stops or slows it."""

import json
import os
import signal
import socket
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from tensorboardX.proto.event_pb2 import Event

from rsd.errors import ConfigError, StoreError
from rsd.invocation import invoke
from rsd.lock import RunLock
from rsd.loggers.base import NoLogger
from rsd.loggers.jsonl import JsonlLogger
from rsd.loggers.tensorboard import TensorBoardLogger
from rsd.loggers.wandb import WandbLogger
from rsd.plan import make_plan
from rsd.store import read_records
from tests.conftest import compose_config


def logged(results: Path, *overrides: str) -> Path:
    """The folder of a run that was made with these settings."""
    config = compose_config(f"results_dir={results}", *overrides)
    invoke(config)
    return make_plan(config).folder


def events(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_running_metrics_become_the_runs_summary(tmp_path: Path) -> None:
    small = logged(tmp_path, "logger=jsonl", "logger.every=1e-9", "limit=3", "delta=0.9")
    folder = logged(tmp_path, "logger=jsonl", "logger.every=1e-9", "limit=9", "delta=0.9")
    assert isinstance(make_plan(compose_config("logger=jsonl")).logger, JsonlLogger)
    assert folder == small
    told = events(folder)
    assert [e["event"] for e in told] == ["begin", *["metrics"] * 4, "end", "begin", *["metrics"] * 7, "end"]
    assert told[0]["manifest"]["config"]["delta"] == 0.9
    summary = json.loads((folder / "summary.json").read_text())
    *_, last, end = told
    assert end["summary"] == summary
    assert last["questions"] == 9
    for name in ("accuracy", "acceptance_rate"):
        assert last[name] == pytest.approx(summary[name])
    for accounting, flops in summary["flops"].items():
        assert last[f"flops/{accounting}"] == pytest.approx(flops)
    for role, work in summary["work"].items():
        assert last[f"tokens/{role}"] == work["tokens"] > 0
    assert last["questions_per_second"] > 0
    assert [e["questions"] for e in told if e["event"] == "metrics"] == [1, 2, 3, 3, *range(4, 10), 9]


def test_a_run_that_breaks_off_ends_without_a_summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunLock, "lost", property(lambda self: True))
    with pytest.raises(StoreError, match="taken over"):
        logged(tmp_path, "logger=jsonl", "limit=2")
    (file,) = tmp_path.rglob("metrics.jsonl")
    begun, ended = events(file.parent)
    assert (begun["event"], ended["event"], ended["summary"]) == ("begin", "end", None)


def test_tensorboard_reads_the_metrics_over_the_questions(tmp_path: Path) -> None:
    folder = logged(tmp_path, "logger=tensorboard", "logger.every=1e-9", "limit=4")
    assert isinstance(make_plan(compose_config("logger=tensorboard")).logger, TensorBoardLogger)
    (path,) = folder.glob("tensorboard/events.*")
    points: dict[str, list[tuple[int, float]]] = {}
    content = path.read_bytes()
    while content:  # length, its checksum, an event, its checksum
        (length,) = struct.unpack("<Q", content[:8])
        event = Event.FromString(content[12 : 12 + length])
        content = content[16 + length :]
        for value in event.summary.value:
            points.setdefault(value.tag, []).append((event.step, value.simple_value))
    summary = json.loads((folder / "summary.json").read_text())
    assert [step for step, _ in points["accuracy"]] == [1, 2, 3, 4, 4]
    assert points["accuracy"][-1][1] == pytest.approx(summary["accuracy"])
    assert points["summary/flops/full"] == [(4, pytest.approx(summary["flops"]["full"]))]
    assert any(tag.startswith("manifest") for tag in points)


def test_wandb_keeps_a_real_run_offline_in_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WANDB_DIR", raising=False)
    folder = logged(tmp_path, "logger=wandb", "logger.every=1e-9", "limit=3")
    assert isinstance(make_plan(compose_config("logger=wandb")).logger, WandbLogger)
    (stored,) = folder.glob("wandb/offline-run-*/run-*.wandb")
    content = stored.read_bytes()
    for told in (b"acceptance_rate", b"questions_per_second", b"flops/full", b"accuracy", folder.name.encode()):
        assert told in content
    assert (folder / "wandb.log").read_text() == ""


@pytest.fixture
def silent_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("WANDB_BASE_URL", f"http://127.0.0.1:{server.getsockname()[1]}")
        monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
        yield


def senders() -> list[psutil.Process]:
    return [p for p in psutil.Process().children() if "rsd.loggers.wandb_process" in p.cmdline()]


@pytest.mark.usefixtures("silent_server")
def test_a_server_that_does_not_answer_is_not_waited_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = logged(tmp_path, "logger=wandb", "logger.mode=online", "logger.every=1e-9", "limit=3")
    assert len(read_records(folder)) == 3
    (sender,) = senders()  # still at it, though the run is over
    assert f"a process of its own goes on sending; see {folder / 'wandb.log'}" in capsys.readouterr().err
    os.killpg(sender.pid, signal.SIGKILL)
    sender.wait()


@pytest.mark.usefixtures("silent_server")
def test_what_no_server_takes_is_kept_as_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_INIT_TIMEOUT", "1")
    folder = logged(tmp_path, "logger=wandb", "logger.mode=online", "limit=3")
    psutil.wait_procs(senders(), timeout=60)
    assert "wandb sync sends it from there" in (folder / "wandb.log").read_text()
    (stored,) = folder.glob("wandb/offline-run-*/run-*.wandb")
    assert b"acceptance_rate" in stored.read_bytes()


def test_a_sender_that_dies_does_not_take_the_run_along(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    folder = logged(tmp_path, "logger=wandb", "logger.every=1e-9", "limit=3")
    assert len(read_records(folder)) == 3
    told = capsys.readouterr().err
    assert told.count("logger=wandb: nothing more is sent") == 1


@pytest.mark.parametrize(("logger", "package"), [("wandb", "wandb"), ("tensorboard", "tensorboardX")])
def test_a_missing_package_is_told_before_a_model_is_loaded(
    logger: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"rsd.loggers.{logger}.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=f"needs the package {package}: make install EXTRAS={logger}"):
        make_plan(compose_config(f"logger={logger}"))


def test_without_a_logger_nothing_leaves_the_run_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    config = compose_config("limit=1", f"results_dir={tmp_path / 'results'}")
    assert isinstance(make_plan(config).logger, NoLogger)
    invoke(config)
    assert [path.name for path in tmp_path.iterdir()] == ["results"]
