"""The Pareto front against its definition."""

from math import inf, isnan, nan

from hypothesis import given
from hypothesis import strategies as st

from rsd.report.pareto import pareto

values = st.one_of(st.integers(0, 5).map(float), st.just(nan))


def test_by_hand() -> None:
    """The third costs more than the second and is no better; the fourth is as good as the first at more cost."""
    assert pareto([1, 2, 3, 4, 5], [0.5, 0.7, 0.7, 0.5, 0.9]).tolist() == [True, True, False, False, True]


def test_equal_points_stand_together_and_unknown_ones_nowhere() -> None:
    assert pareto([1, 1, nan, 0], [0.5, 0.5, 1.0, nan]).tolist() == [True, True, False, False]
    assert pareto([inf, 1], [0.9, 0.5]).tolist() == [True, True]
    assert pareto([], []).tolist() == []


@given(st.lists(st.tuples(values, values), max_size=12))
def test_by_definition(points: list[tuple[float, float]]) -> None:
    for (cost, accuracy), on_front in zip(points, pareto(*zip(*points, strict=True)) if points else [], strict=True):
        beaten = any(c <= cost and a >= accuracy and (c < cost or a > accuracy) for c, a in points)
        assert on_front == (not beaten and not isnan(cost) and not isnan(accuracy))
