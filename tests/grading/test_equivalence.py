"""Which answers are the same mathematics, in either order and from any thread."""

import threading

import pytest

from rsd.grading import equivalent


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        (r"\frac{1}{2}", "0.5", True),
        (r"\frac{1}{2}", "0.6", False),
        (r"\dfrac{\sqrt{8}}{2}", r"\sqrt{2}", True),
        ("(x+1)^2", "x^2 + 2x + 1", True),
        ("(x+1)^2", "x^2 + 2x", False),
        ("x = 7", "7", True),
        ("1,000", "1000", True),
        ("(1, 2)", "(1,2)", True),
        ("(1, 2)", "(2, 1)", False),
        ("[0, 1)", "[0, 1]", False),
        ("1 < x < 2", "(1, 2)", True),
        (r"\text{Evelyn}", "Evelyn", True),
        ("y = 2x", "y = 3x", False),
        (r"\unreadable{", r"\unreadable{", True),
        ("7", "\x00\x1b[2J\n7", False),
        ("7", "", False),
    ],
)
def test_equivalent_is_symmetric(a: str, b: str, equal: bool) -> None:
    assert equivalent(a, b) is equal
    assert equivalent(b, a) is equal


def test_equivalent_works_outside_the_main_thread() -> None:
    results: list[bool] = []
    thread = threading.Thread(target=lambda: results.append(equivalent("0.25", r"\frac{1}{4}")))
    thread.start()
    thread.join()
    assert results == [True]
