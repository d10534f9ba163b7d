"""The data of every figure, counted by hand from sixteen records."""

from functools import partial
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.text import Text

from rsd.report import load
from rsd.report.figures import (
    fig3,
    fig4,
    fig4_gpu_seconds,
    fig4_seconds,
    fig5,
    fig6,
    fig_b1,
    omega,
    reliability,
    rewards,
)
from rsd.report.figures.source import Source
from tests.hand_made import PRESET, drafted, source_in, wanted_of
from tests.stored import TARGET, manifest, proposal, record, store


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    return source_in(tmp_path_factory.mktemp("results"))


def test_figure_3_counts_wins_in_the_same_context(source: Source) -> None:
    frame = fig3.data(source).set_index(["solutions", "position"])
    first = frame.loc["all", 1]
    assert (first["contexts"], first["target_wins"], first["ties"], first["draft_wins"]) == (3, 1, 1, 1)
    assert first["draft_reward"] == pytest.approx((0.9 + 0.5 + 0.9) / 3)
    assert first["target_reward"] == pytest.approx((0.8 + 0.75 + 0.9) / 3)
    # differences -0.1, 0.25 and 0 have mean 0.05 and standard deviation sqrt(0.065 / 2)
    assert first["difference"] == pytest.approx(0.05)
    assert first["difference_high"] == pytest.approx(0.05 + 1.96 * 0.0325**0.5 / 3**0.5)
    assert first["difference_low"] == pytest.approx(0.05 - 1.96 * 0.0325**0.5 / 3**0.5)
    second = frame.loc["all", 2]
    assert (second["contexts"], second["ties"]) == (1, 1), (
        "the same text is a tie, whatever rounding made of its reward"
    )
    assert second["difference"] == 0
    whole = fig3.data(source)
    totals = whole[whole["position"].isna()].set_index("solutions")
    assert totals.loc["all", ["contexts", "target_wins", "ties", "draft_wins"]].tolist() == [4, 1, 2, 1]
    assert totals.loc["right", ["contexts", "target_wins", "ties", "draft_wins"]].tolist() == [3, 1, 1, 1]


def test_figure_4_in_three_accountings(source: Source) -> None:
    frame = fig4.data(source).set_index("run_id")
    assert set(frame.index) == {"rsd-0", "rsd-0.7", "target"}
    assert list(frame.loc[["rsd-0.7", "target"], "configuration"]) == ["RSD (small/large/judge)", "Target (large)"]
    # 2 FLOPs a parameter: 1,000 of the draft, 7,000 of the target, 3,000 of the PRM
    passes = {"rsd-0": 80_000 + 18_000, "rsd-0.7": 80_000 + 18_000 + 420_000, "target": 560_000}
    positions = {"rsd-0": 80_000 + 240_000, "rsd-0.7": 80_000 + 240_000 + 420_000, "target": 560_000}
    assert (3 * frame["flops_passes"]).to_dict() == pytest.approx(passes)
    assert (3 * frame["flops_positions"]).to_dict() == pytest.approx(positions)
    assert frame["front_flops_passes"].to_dict() == {"rsd-0": True, "rsd-0.7": True, "target": False}
    assert frame["front_flops_positions"].to_dict() == {"rsd-0": True, "rsd-0.7": False, "target": True}
    assert frame["accuracy"].to_dict() == pytest.approx({"rsd-0": 1 / 3, "rsd-0.7": 2 / 3, "target": 2 / 3})


def test_figure_4_in_seconds(source: Source) -> None:
    frame = fig4_seconds.data(source).set_index("run_id")
    assert frame.loc["rsd-0.7", "seconds_per_question"] == 6 / 3
    assert frame.loc["rsd-0.7", "p50"] == 3, "of 1, 3 and 6 seconds"
    assert frame.loc["target", "p50"] == 1, "of 1, 1 and 2 seconds"
    assert pd.isna(frame.loc["rsd-0", "p50"]), "whose records tell no time"


def test_figure_4_in_gpu_seconds(source: Source) -> None:
    frame = fig4_gpu_seconds.data(source).set_index("run_id")
    # one device for all models: a draft's step is in flight from 0 to 2, a target's from 1 to 6
    assert frame.loc["rsd-0.7", "busy"] == pytest.approx(6 / 3)
    assert frame.loc["rsd-0.7", "devices"] == 1
    assert frame.loc["rsd-0.7", "reserved"] == pytest.approx(6 / 3)
    assert frame.loc["target", "busy"] == pytest.approx(2 / 3)


def test_figure_5(source: Source) -> None:
    frame = fig5.data(source)
    rsd = frame[frame["line"] == "rsd"].set_index("delta")
    assert rsd["accuracy"].to_dict() == pytest.approx({0.0: 1 / 3, 0.7: 2 / 3})
    assert rsd["draft_only"].to_dict() == pytest.approx({0.0: 1, 0.7: 1 / 3})
    # Wilson's intervals of 1 and 2 of 3
    assert rsd.loc[0.7, ["draft_only_low", "draft_only_high"]].tolist() == pytest.approx([0.0615, 0.7923], abs=1e-4)
    assert rsd.loc[0.7, ["accuracy_low", "accuracy_high"]].tolist() == pytest.approx([0.2077, 0.9385], abs=1e-4)
    alone = frame[frame["line"] == "target"]
    assert alone["run_id"].tolist() == ["target"]
    assert frame["complete"].all()


def test_figure_6_at_equal_cost(source: Source) -> None:
    frame = fig6.data(source).set_index("line")
    assert frame["cost_passes"].to_dict() == pytest.approx(
        {"target": 1, "binary": 518 / 560, "clipping": 378 / 560, fig6.SWEEP: 98 / 560}
    )
    assert frame.loc["clipping", "accuracy"] == pytest.approx(1 / 3)
    # between 1/3 at 98 and 2/3 at 518, the cost of 378 is two thirds of the way
    assert frame.loc["clipping", "binary_at_cost"] == pytest.approx(1 / 3 + 2 / 3 * 1 / 3)
    assert frame.loc["clipping", "gain_at_cost"] == pytest.approx(-2 / 9)
    assert frame.loc[["clipping", "binary"], "parameters"].tolist() == ["", "δ=0.7"]
    assert frame.loc["clipping", "acceptance"] == pytest.approx(2 / 3)


def test_figure_6_compares_costs_on_common_questions(source: Source, tmp_path: Path) -> None:
    records = [record("a", proposal("target", 10)), record("c", proposal("target", 20)), record("b", error="gone")]
    store(tmp_path / "other", "target", records, {"a"}, manifest(size=3, settings=TARGET))
    steps = [*(record(q, drafted(10, 0.9, True)) for q in "ab"), record("c", error="gone")]
    store(tmp_path / "other", "rsd-0.7", steps, {"a"}, manifest(size=3))
    stored = partial(load, tmp_path / "other")
    frame = fig6.data(Source(stored, PRESET, wanted_of(stored), paper=False)).set_index("line")
    assert frame.loc["binary", "cost_passes"] == pytest.approx(26 / 140), "on a, since b and c failed in one of them"


def test_figure_b1_by_level(source: Source) -> None:
    frame = fig_b1.data(source).set_index(["level", "delta"])
    assert frame["level_questions"].to_dict() == {("1", 0.0): 1, ("1", 0.7): 1, ("2", 0.0): 2, ("2", 0.7): 2}
    assert frame["accuracy"].to_dict() == {("1", 0.0): 1, ("1", 0.7): 1, ("2", 0.0): 0, ("2", 0.7): 0.5}
    assert frame["draft_only"].to_dict() == {("1", 0.0): 1, ("1", 0.7): 1, ("2", 0.0): 1, ("2", 0.7): 0}
    assert frame["max_gain"].to_dict() == {("1", 0.0): 0, ("1", 0.7): 0, ("2", 0.0): 0.5, ("2", 0.7): 0.5}


def test_omega_is_what_is_implemented(source: Source) -> None:
    frame = omega.data(source).set_index("reward")
    assert frame.loc[0.5].to_dict() == pytest.approx(
        {"constant": 0.6, "binary": 0, "clipping": 0.5, "sigmoidal": 1 / 3, "logistic": 0.47502}, abs=1e-5
    )
    assert frame.loc[0.7, "binary"] == 1
    assert frame.loc[-0.5, ["clipping", "sigmoidal"]].tolist() == [0, 0]


def test_reliability(source: Source) -> None:
    frame = reliability.data(source)
    assert frame.groupby("delta")["ece"].first().to_dict() == pytest.approx({0.0: 0.86 / 3, 0.7: 0.04})
    everything = frame[(frame["delta"] == 0) & (frame["steps"] > 0)].set_index("reward")
    assert everything["share"].to_dict() == {0.26: 0, 0.56: 0, 0.96: 1}
    assert everything.loc[0.96, ["low", "high"]].tolist() == pytest.approx([0.9, 1])
    assert frame[frame["delta"] == 0.7]["steps"].sum() == 1, "rejected steps stand in no response"
    assert frame.groupby("delta")["near_solutions"].first().to_dict() == {0.0: 0, 0.7: 0}


def test_reliability_just_above_the_threshold(tmp_path: Path) -> None:
    rewards = {"a": 0.72, "b": 0.74, "c": 0.9}
    store(tmp_path, "rsd-0.7", [record(q, drafted(10, r, True)) for q, r in rewards.items()], {"a"}, manifest(size=3))
    stored = partial(load, tmp_path)
    row = reliability.data(Source(stored, PRESET, wanted_of(stored), paper=False)).iloc[0]
    assert row[["near_solutions", "near_right", "near_share"]].tolist() == [2, 1, 0.5]


def test_rewards_by_outcome(source: Source) -> None:
    frame = rewards.data(source)
    everything = frame[frame["delta"] == 0]
    assert len(everything) == 20
    assert everything.loc[everything["right"] > 0, "low"].tolist() == pytest.approx([0.95])
    assert everything.loc[everything["wrong"] > 0, "low"].tolist() == pytest.approx([0.25, 0.55])


def test_a_partial_run_is_marked_and_on_no_front(tmp_path: Path) -> None:
    store(tmp_path, "rsd-0.7", [record("a", drafted(10, 0.9, True))], {"a"}, manifest(size=3))
    stored = partial(load, tmp_path)
    source = Source(stored, PRESET, wanted_of(stored), paper=False)
    frame = fig4.data(source)
    assert frame["complete"].tolist() == [False]
    assert frame["front_flops_passes"].tolist() == [False]
    told = " ".join(text.get_text() for text in fig5.draw(fig5.data(source)).findobj(Text))
    assert "partial runs, of 1/3 questions" in " ".join(told.split())


def test_the_papers_numbers_stand_beside_ours(source: Source) -> None:
    beside = Source(source.load, PRESET, source.wanted, paper=True)
    five = fig5.data(beside)
    row = five[(five["line"] == "rsd") & (five["delta"] == 0.7)].iloc[0]
    assert (row["paper_accuracy"], row["paper_draft_only"], row["paper_quality"]) == (0.846, 0.48, "exact")
    assert row["accuracy_difference"] == pytest.approx(2 / 3 - 0.846)
    assert five[five["delta"] == 0.9]["accuracy"].isna().all(), "a threshold without a run is there, and empty"
    six = fig6.data(beside).set_index("line")
    assert six["paper_accuracy"].dropna().to_dict() == pytest.approx(
        {"constant": 0.776, "binary": 0.846, "clipping": 0.818, "sigmoidal": 0.814, "logistic": 0.792, "target": 0.832,
         "draft": 0.738}
    )  # fmt: skip
    level = fig_b1.data(beside).set_index(["level", "delta"]).loc[("2", 0.7)]
    assert (level["paper_draft_only"], level["paper_max_gain"]) == pytest.approx((0.67, 0.056))
    assert level["max_gain_difference"] == pytest.approx(0.5 - 0.056)
    four = fig4.data(beside)
    assert len(four[four["paper_accuracy"].notna()]) == 10
    assert four[four["run_id"].notna()]["accuracy"].notna().all()
