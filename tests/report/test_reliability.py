"""PRM reliability counted by hand."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rsd.report import load
from rsd.report.reliability import near_threshold, reliability, score_histogram, scored_steps
from rsd.report.statistics import wilson
from tests.stored import proposal, record, store


@pytest.fixture
def frames(tmp_path: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Right: a (0.75, 0.95) and b (0.72, one of the target's without a reward); wrong: c (0.78) and d (0.85, 1.0);
    e failed. A rejected step (0.1) of b counts nowhere."""
    records = [
        record("a", proposal("draft", 3, 0.75, True), proposal("draft", 3, 0.95, True, step=1)),
        record("b", proposal("draft", 3, 0.1, False), proposal("target", 3), proposal("draft", 3, 0.72, True, step=1)),
        record("c", proposal("draft", 3, 0.78, True)),
        record("d", proposal("draft", 3, 0.85, True), proposal("draft", 3, 1.0, True, step=1)),
        record("e", error="failed"),
    ]
    store(tmp_path, "run", records, {"a", "b"})
    return load(tmp_path, rows="proposals"), load(tmp_path, rows="solutions")


def test_diagram(frames: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    steps = scored_steps(*frames)
    assert len(steps) == 6
    found = reliability(steps).set_index(reliability(steps)["low"].round(1))
    assert list(found.loc[0.7, ["steps", "right"]]) == [3, 2]
    assert found.loc[0.7, "reward"] == pytest.approx((0.75 + 0.72 + 0.78) / 3)
    assert tuple(found.loc[0.7, ["share_low", "share_high"]]) == wilson(2, 3)
    assert list(found.loc[0.8, ["steps", "right", "share"]]) == [1, 0, 0.0]
    assert list(found.loc[0.9, ["steps", "right"]]) == [2, 1], "1.0 is in the last bin"
    assert found["steps"].sum() == 6
    assert np.isnan(found.loc[0.1, "share"])


def test_histogram(frames: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    found = score_histogram(scored_steps(*frames), bins=[0.7, 0.8, 0.9, 1.0])
    assert list(found["right"]) == [2, 0, 1]
    assert list(found["wrong"]) == [1, 1, 1]


def test_rewards_without_bounds_have_bins_of_their_own(frames: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    steps = scored_steps(*frames).assign(reward=[-4.0, 2, 2, 0, 6, 5])
    found = reliability(steps, bins=2)
    assert (list(found["low"]), list(found["high"]), list(found["steps"])) == ([-4, 1], [1, 6], [2, 4])


def test_near_the_threshold(frames: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    """Smallest accepted rewards: 0.75 is not in [0.7, 0.75), 0.72 is; 0.78 and 0.85 are above."""
    found = near_threshold(frames[1], delta=0.7).set_index("smallest")
    assert list(found.loc["near", ["solutions", "right", "share"]]) == [1, 1, 1.0]
    assert list(found.loc["above", ["solutions", "right"]]) == [3, 1]
    assert tuple(found.loc["above", ["share_low", "share_high"]]) == wilson(1, 3)
    nothing = near_threshold(frames[1], delta=0.2).set_index("smallest")
    assert (nothing.loc["near", "solutions"], np.isnan(nothing.loc["near", "share"])) == (0, True)


def test_nothing_at_all(frames: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    empty = scored_steps(frames[0].iloc[:0], frames[1].iloc[:0])
    assert reliability(empty)["steps"].sum() == score_histogram(empty)["right"].sum() == 0
