"""Paired comparisons and averages over benchmarks, by hand."""

import numpy as np
import pandas as pd
import pytest

from rsd.errors import StoreError
from rsd.report.paired import average_accuracy, average_difference, compare_paired, questions_decided
from rsd.report.statistics import mcnemar, newcombe


def solutions(verdicts: dict[str, list[int]] | list[int], benchmark: str = "math500") -> pd.DataFrame:
    """Solutions of one run: each question's samples, right or wrong."""
    named = verdicts if isinstance(verdicts, dict) else {f"q{i:03}": [right] for i, right in enumerate(verdicts)}
    rows = [(benchmark, question, i, bool(right)) for question, all_ in named.items() for i, right in enumerate(all_)]
    frame = pd.DataFrame(rows, columns=["benchmark", "question_id", "sample", "correct"])
    return frame.assign(whole=True, graded=True, run_id="run")


FIRST = [1, 1, 1, 1, 0, 0, 1, 1, 1, 0]
SECOND = [1, 1, 0, 1, 0, 1, 0, 0, 1, 0]


def test_one_sample_a_question() -> None:
    """Both 4, won 3 (2, 6, 7), lost 1 (5), neither 2."""
    found = compare_paired(solutions(FIRST), solutions(SECOND))
    assert (found.n, found.won, found.lost, found.difference) == (10, 3, 1, 0.2)
    assert found.p == mcnemar(3, 1) == 0.625
    assert found.interval == found.newcombe == newcombe(4, 3, 1, 2)
    # The bootstrap's spread is that of a mean of ten differences of variance 0.4 - 0.2².
    assert (found.bootstrap[1] - found.bootstrap[0]) / 2 == pytest.approx(1.96 * np.sqrt(0.36 / 10), rel=0.15)
    assert questions_decided(solutions(FIRST), solutions(SECOND)) == (["q002", "q006", "q007"], ["q005"])


def test_the_other_way_round() -> None:
    there, back = (compare_paired(*map(solutions, pair)) for pair in ((FIRST, SECOND), (SECOND, FIRST)))
    assert (there.won, there.lost, there.difference, there.p) == (back.lost, back.won, -back.difference, back.p)
    assert there.interval == pytest.approx((-back.interval[1], -back.interval[0]))


def test_only_common_questions_and_those_that_are_graded_count() -> None:
    first = solutions({"a": [1], "b": [1], "c": [1]})
    second = solutions({"b": [0], "c": [0], "d": [0]})
    assert compare_paired(first, second).n == 2
    second.loc[second["question_id"] == "c", "whole"] = False
    assert (compare_paired(first, second).n, compare_paired(first, second).won) == (1, 1)


def test_several_samples_are_no_outcomes_of_0_and_1() -> None:
    first, second = {"a": [1, 1, 0, 0], "b": [1, 1, 1, 1]}, {"a": [1], "b": [0]}
    found = compare_paired(solutions(first), solutions(second))
    assert (found.won, found.lost, found.p, found.newcombe) == (None, None, None, None)
    assert found.difference == (-0.5 + 1) / 2
    assert found.interval == found.bootstrap
    assert questions_decided(solutions(first), solutions(second)) == (["b"], ["a"])


def test_refusals() -> None:
    with pytest.raises(StoreError, match="no question in common"):
        compare_paired(solutions({"a": [1]}), solutions({"b": [1]}))
    with pytest.raises(StoreError, match="gsm8k and math500"):
        compare_paired(solutions({"a": [1]}), solutions({"a": [1]}, "gsm8k"))
    two_runs = pd.concat([solutions({"a": [1]}), solutions({"a": [0]})])
    with pytest.raises(StoreError, match="one run with one other"):
        compare_paired(two_runs, solutions({"a": [1]}))


def test_average_gives_benchmarks_the_same_weight() -> None:
    """Ten questions with +0.2 and two with +1: +0.6, not 4/12."""
    pairs = {
        "math500": (solutions(FIRST), solutions(SECOND)),
        "gsm8k": (solutions([1, 1], "gsm8k"), solutions([0, 0], "gsm8k")),
    }
    found = average_difference(pairs)
    assert found.value == pytest.approx(0.6)
    # gsm8k has no spread, so that of the average is half of math500's.
    alone = average_difference({"math500": pairs["math500"]})
    assert alone.value == pytest.approx(0.2)
    widths = [high - low for low, high in (found.interval, alone.interval)]
    assert widths[0] == pytest.approx(widths[1] / 2, rel=0.1)
    assert found.interval[0] < 0.6 < found.interval[1]


def test_average_resamples_the_same_questions_for_both() -> None:
    """Hard and easy questions, alike for both runs: no spread in the difference."""
    hard = {f"q{i}": [i % 2] * 3 for i in range(20)}
    found = average_difference({"a": (solutions(hard, "a"), solutions(hard, "a"))})
    assert found.interval == (0.0, 0.0)


def test_average_accuracy() -> None:
    found = average_accuracy({"a": solutions([1, 0, 1, 0], "a"), "b": solutions([1, 1], "b")})
    assert found.value == 0.75
    assert found.interval[0] >= 0.5
    assert found.interval[1] <= 1.0
    # half the standard error sqrt(0.25/4) of a; b has none
    assert (found.interval[1] - found.interval[0]) / 2 == pytest.approx(1.96 * 0.125, rel=0.15)
