"""Classes of equal answers: what counts as one, and how few comparisons it takes."""

from rsd.grading import equivalent
from rsd.grading.classes import answer_classes


def test_equal_answers_share_a_class_numbered_by_first_appearance() -> None:
    answers = ["0.5", None, r"\frac{1}{2}", "0.6", " 0.5 ", "", r"\frac{3}{5}", "7"]
    assert answer_classes(answers, equivalent) == [0, None, 0, 1, 0, None, 1, 2]


def test_the_first_class_that_matches_wins() -> None:
    """Equality up to a tolerance is not transitive, so the order decides."""

    def near(a: str, b: str) -> bool:
        return abs(int(a) - int(b)) <= 1

    assert answer_classes(["1", "3", "2", "4"], near) == [0, 1, 0, 1]


def test_identical_answers_are_not_compared() -> None:
    compared: list[tuple[str, str]] = []

    def note(a: str, b: str) -> bool:
        compared.append((a, b))
        return False

    assert answer_classes(["a", "b", "a", "b", None, "c"] * 10, note) == [0, 1, 0, 1, None, 2] * 10
    assert compared == [("a", "b"), ("a", "c"), ("b", "c")]


def test_no_answers() -> None:
    assert answer_classes([], equivalent) == []
    assert answer_classes([None, " "], equivalent) == [None, None]
