"""Shared by all tests: the project's own configuration and command line, on the tiny family."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

import rsd.run  # noqa: F401 - registers the resolver that the configuration uses
from rsd.config import RunConfig, check
from rsd.invocation import invoke
from rsd.plan import make_plan
from rsd.records import Record
from rsd.store import Key, read_records

ROOT = Path(__file__).parents[1]
SHARED = Path(os.environ.get("RSD_SHARED", ROOT.parent / "shared"))  # public test sets and labelled answers

Compose = Callable[..., RunConfig]
Run = Callable[..., dict[Key, Record]]
Command = Callable[..., subprocess.CompletedProcess[str]]


def compose_config(*overrides: str) -> RunConfig:
    """The configuration that the command line would give for `overrides`."""
    with initialize_config_dir(config_dir=str(ROOT / "conf"), version_base="1.3"):
        return check(OmegaConf.to_container(compose("config", overrides=list(overrides)), resolve=True))


def command(*arguments: str) -> list[str]:
    """`python -m rsd.run` with `arguments`."""
    return [sys.executable, "-m", "rsd.run", *arguments]


def environment(**extra: str) -> dict[str, str]:
    """This process's environment, with the full error report off unless `extra` turns it on."""
    return {**{key: value for key, value in os.environ.items() if key != "HYDRA_FULL_ERROR"}, **extra}


@pytest.fixture
def config() -> Compose:
    return compose_config


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run the harness in this process, below the test's own folder, and read all records of that run."""

    def run(*overrides: str) -> dict[Key, Record]:
        config = compose_config(f"results_dir={tmp_path}", *overrides)
        invoke(config)
        return read_records(make_plan(config).folder)

    return run


@pytest.fixture
def cli(tmp_path: Path) -> Command:
    """Run the real command in a process of its own, with results below the test's own folder."""

    def cli(*arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command(f"results_dir={tmp_path / 'results'}", *arguments),
            capture_output=True,
            text=True,
            cwd=ROOT,
            env=environment(**extra),
            timeout=300,
            check=False,
        )

    return cli
