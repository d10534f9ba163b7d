"""Expectations over subsets of samples: closed forms against brute force over all of them."""

from itertools import combinations
from math import comb
from random import Random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsd.report.subsets import Samples, expected_best, expected_majority, weighted_vote


def vote(classes: list[int | None], right: set[int]) -> float:
    """Share of the tied winners that are right."""
    votes = [number for number in classes if number is not None]
    if not votes:
        return 0.0
    most = max(votes.count(number) for number in set(votes))
    winners = [number for number in set(votes) if votes.count(number) == most]
    return fmean(number in right for number in winners)


@given(st.lists(st.integers(-1, 3), min_size=1, max_size=7), st.sets(st.integers(0, 3)), st.data())
def test_majority_equals_brute_force(drawn: list[int], right: set[int], data: st.DataObject) -> None:
    classes = [None if number < 0 else number for number in drawn]
    k = data.draw(st.integers(1, len(classes)))
    present = sorted({number for number in classes if number is not None})
    expected = fmean(vote(list(subset), right) for subset in combinations(classes, k))
    sizes = [classes.count(number) for number in present]
    told = expected_majority(sizes, [number in right for number in present], classes.count(None), k)
    assert told == pytest.approx(expected, abs=1e-12)


@given(st.lists(st.tuples(st.sampled_from([None, 0.0, 0.3, 0.7]), st.booleans()), min_size=1, max_size=7), st.data())
def test_best_of_k_equals_brute_force(drawn: list[tuple[float | None, bool]], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(drawn)))

    def best(subset: tuple[tuple[float | None, bool], ...]) -> float:
        ranks = [-1.0 if value is None else value for value, _ in subset]
        return fmean(right for rank, (_, right) in zip(ranks, subset, strict=True) if rank == max(ranks))

    expected = fmean(best(subset) for subset in combinations(drawn, k))
    values, right = zip(*drawn, strict=True)
    assert expected_best(values, right, k) == pytest.approx(expected, abs=1e-12)


def test_64_samples_in_many_classes_stay_exact() -> None:
    sizes = [20, 18, *[1] * 16]
    told = expected_majority(sizes, [True] + [False] * 17, abstaining=10, k=64)
    assert told == pytest.approx(1.0, abs=1e-9)  # all are drawn, and the right class has the most
    everything = sum(expected_majority(sizes, [i == c for i in range(18)], 10, 16) for c in range(18))
    nobody = comb(10, 16) / comb(64, 16)  # only abstainers: impossible here
    assert everything == pytest.approx(1.0 - nobody, abs=1e-9)


@pytest.mark.parametrize("k", [0, 4])
def test_more_or_fewer_samples_than_there_are_is_an_error(k: int) -> None:
    with pytest.raises(ValueError, match=f"k={k} samples"):
        expected_majority([2, 1], [True, False], 0, k)
    with pytest.raises(ValueError, match=f"k={k} samples"):
        expected_best([0.1, 0.2, 0.3], [True, False, True], k)


def test_a_weighted_vote_agrees_with_brute_force_within_its_own_error() -> None:
    rng = Random(0)
    classes = [0, 1, 0, 2, None, 0, 1, 2, 0, 1]
    values = [rng.random() for _ in classes]
    right = [number == 0 for number in classes]
    for k in (1, 3, 5):

        def wins(subset: tuple[int, ...]) -> bool:
            totals = {c: sum(values[i] for i in subset if classes[i] == c) for c in {classes[i] for i in subset}}
            totals.pop(None, None)
            return bool(totals) and max(totals, key=totals.__getitem__) == 0

        expected = fmean(wins(subset) for subset in combinations(range(10), k))
        share, error = weighted_vote(classes, values, right, k)
        assert 0 < error < 0.02
        assert abs(share - expected) < 4 * error
    assert weighted_vote(classes, values, right, 3) == weighted_vote(classes, values, right, 3)


def test_a_weighted_vote_without_answers_is_wrong() -> None:
    assert weighted_vote([None, None], [0.5, 0.6], [False, False], 2) == (0.0, 0.0)


def test_a_class_is_right_where_its_first_answer_is() -> None:
    samples = Samples(classes=(0, 1, 0, None), values=(None,) * 4, right=(True, False, True, False))
    assert samples.majority(1) == 0.5
    assert samples.majority(4) == 1.0
