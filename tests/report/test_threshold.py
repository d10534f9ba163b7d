"""δ* by hand and against a plain second implementation."""

import numpy as np
import pandas as pd
import pytest

from rsd.errors import StoreError
from rsd.report.paired import compare_paired
from rsd.report.threshold import GRID, delta_star


def run(right: str, delta: float) -> pd.DataFrame:
    """Solutions of one run, one question a letter of `right`: 1 or 0."""
    frame = pd.DataFrame({"question_id": [f"q{i:03}" for i in range(len(right))], "correct": [c == "1" for c in right]})
    return frame.assign(run_id=f"rsd-{delta}", benchmark="math500", sample=0, whole=True, graded=True, delta=delta)


def runs(**rights: str) -> dict[float, pd.DataFrame]:
    return {delta: run(right, delta) for delta, right in zip(GRID, rights.values(), strict=False)}


def test_oracle_and_ties() -> None:
    """0.7 and 0.9 have 7 of 10, 0.6 has 5, 0.8 has 6: the smaller of the two best."""
    found = delta_star(runs(a="1111100000", b="1111111000", c="1111110000", d="0001111111"))
    assert (found.oracle_delta, found.oracle_accuracy, found.questions) == (0.7, 0.7, 10)
    assert found.oracle["run_id"].unique() == ["rsd-0.7"]


def test_a_clear_winner_is_chosen_in_every_fold() -> None:
    found = delta_star(runs(a="0" * 20, b="0" * 20, c="1" * 18 + "00", d="0" * 20))
    assert found.fitted_accuracy == found.oracle_accuracy == 0.9
    assert found.fitted_spread == 0.0
    assert set(found.fitted_deltas.values()) == {0.8}
    pd.testing.assert_frame_equal(found.fitted, found.oracle)


def test_fitting_costs_what_selection_had_gained() -> None:
    """Thresholds that are equally good but for chance: the oracle is above the fitted accuracy, which is honest."""
    rng = np.random.default_rng(0)
    rights = {name: "".join(rng.choice(["0", "1"], size=100)) for name in "abcd"}
    found = delta_star(runs(**rights))
    means = [right.count("1") / 100 for right in rights.values()]
    assert found.oracle_accuracy == max(means)
    assert found.fitted_accuracy < found.oracle_accuracy
    assert found.fitted_spread > 0


def test_against_a_plain_second_implementation() -> None:
    rng = np.random.default_rng(1)
    rights = {name: "".join(rng.choice(["0", "1"], size=53)) for name in "abcd"}
    found = delta_star(runs(**rights))
    verdicts = {delta: [int(c) for c in right] for delta, right in zip(GRID, rights.values(), strict=True)}
    for seed, accuracy in enumerate(found.fitted_accuracies):
        order = np.random.default_rng(seed).permutation(53)
        right = 0
        for fold in np.array_split(order, 5):
            others = [i for i in range(53) if i not in fold]
            best = max(GRID, key=lambda delta: (sum(verdicts[delta][i] for i in others), -delta))
            right += sum(verdicts[best][i] for i in fold)
        assert accuracy == pytest.approx(right / 53)
    assert len(found.fitted_accuracies) == 20


def test_fitted_solutions_are_those_of_the_chosen_runs() -> None:
    rng = np.random.default_rng(2)
    stored = runs(**{name: "".join(rng.choice(["0", "1"], size=40)) for name in "abcd"})
    found = delta_star(stored)
    fitted = found.fitted.set_index("question_id")
    assert sorted(fitted.index) == sorted(stored[0.6]["question_id"])
    assert dict(fitted["delta"]) == found.fitted_deltas
    assert fitted["correct"].mean() == pytest.approx(found.fitted_accuracies[0])
    assert compare_paired(found.fitted, stored[0.6]).n == 40


def test_questions_that_one_run_lacks_are_left_out() -> None:
    stored = runs(a="1" * 10, b="1" * 10)
    stored[0.7] = stored[0.7].iloc[:8]
    found = delta_star(stored)
    assert (found.questions, len(found.fitted)) == (8, 8)
    stored[0.7] = stored[0.7].iloc[:3]
    with pytest.raises(StoreError, match=r"needs 5 questions .* there are 3"):
        delta_star(stored)
    with pytest.raises(StoreError, match="there are 0"):
        delta_star({})


def test_two_runs_of_one_threshold_are_refused() -> None:
    stored = runs(a="1" * 10, b="1" * 10)
    stored[0.7] = pd.concat([stored[0.7], run("0" * 10, 0.7)])
    with pytest.raises(StoreError, match=r"one run of each delta, and of 0\.7 there are several"):
        delta_star(stored)


def test_all_divisions_together() -> None:
    found = delta_star(runs(a="1100" * 5, b="1010" * 5, c="0110" * 5, d="0001" * 5))
    assert {count for _, count in found.fitted_samples.values()} == {20}
    right = sum(right for right, _ in found.fitted_samples.values())
    assert right / 400 == pytest.approx(found.fitted_accuracy)
