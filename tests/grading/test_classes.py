"""Classes of equal answers: what counts as one, and how few comparisons it takes."""

import asyncio
from collections.abc import Callable, Sequence

from rsd.grading import equivalent
from rsd.grading.classes import AnswerClasses


def classes(answers: Sequence[str | None], equal: Callable[[str, str], bool]) -> list[int | None]:
    async def first_equal(answer: str, others: Sequence[str]) -> int | None:
        return next((number for number, other in enumerate(others) if equal(other, answer)), None)

    async def place() -> list[int | None]:
        placed = AnswerClasses(first_equal)
        return [await placed.place("question", answer) for answer in answers]

    return asyncio.run(place())


def test_equal_answers_share_a_class_numbered_by_first_appearance() -> None:
    answers = ["0.5", None, r"\frac{1}{2}", "0.6", " 0.5 ", "", r"\frac{3}{5}", "7"]
    assert classes(answers, equivalent) == [0, None, 0, 1, 0, None, 1, 2]


def test_the_first_class_that_matches_wins() -> None:
    """Equality up to a tolerance is not transitive, so the order decides."""

    def near(a: str, b: str) -> bool:
        return abs(int(a) - int(b)) <= 1

    assert classes(["1", "3", "2", "4"], near) == [0, 1, 0, 1]


def test_identical_answers_are_not_compared() -> None:
    compared: list[tuple[str, str]] = []

    def note(a: str, b: str) -> bool:
        compared.append((a, b))
        return False

    assert classes(["a", "b", "a", "b", None, "c"] * 10, note) == [0, 1, 0, 1, None, 2] * 10
    assert compared == [("a", "b"), ("a", "c"), ("b", "c")]


def test_no_answers() -> None:
    assert classes([], equivalent) == []
    assert classes([None, " "], equivalent) == [None, None]
