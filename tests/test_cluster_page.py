"""The page about clusters says what the planner and the estimator say."""

from collections.abc import Iterator

import pytest
from hydra import initialize_config_dir

from tests.conftest import ROOT
from tests.hardware import RATE, hardware, hours

PAGE = (ROOT / "docs" / "cluster.md").read_text()


@pytest.fixture(autouse=True)
def hydra() -> Iterator[None]:
    with initialize_config_dir(config_dir=str(ROOT / "conf"), version_base="1.3"):
        yield


def test_the_gpus_are_the_planners() -> None:
    assert hardware() in PAGE


def test_the_hours_are_the_estimators() -> None:
    """Of one table, which costs what they all would cost by the same rule."""
    *_, row = hours(["tableB1"]).splitlines()
    assert row in PAGE.splitlines()
    assert f"{RATE / 1e12:.0f} TFLOP/s" in PAGE
