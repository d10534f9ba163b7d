r"""The answer of a response is its last balanced ``\boxed{...}``."""

import time

import pytest

from rsd.grading import extract_boxed


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        (r"so \boxed{7}.", "7"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{1}, no: \boxed{2}", "2"),
        (r"\boxed{1}, no: \boxed{\frac{1}{2", "1"),
        (r"\boxed{\frac{1}{2} oh \boxed{3}", "3"),
        (r"in {1, 2 we find } and } \boxed{3}", "3"),
        (r"\boxed{\boxed{4}}", "4"),
        (r"\boxed {5}", "5"),
        (r"\boxed{}", ""),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        (r"\boxed{\left\{1\right.}", r"\left\{1\right."),
        (r"\boxed{1 \\}", r"1 \\"),
        (r"\boxed{6\}", None),
        ("x = 1 \\\\\\boxed{7}", "7"),
        (r"\\boxed{8}", "8"),
        (r"\boxed 9", None),
        (r"\boxed", None),
        (r"\boxedtext{9}", None),
        ("no box", None),
        ("", None),
        ("\\", None),
        ("\\boxed{1\n2}", "1\n2"),
    ],
)
def test_last_balanced_box(response: str, answer: str | None) -> None:
    assert extract_boxed(response) == answer


@pytest.mark.parametrize(
    ("response", "length"),
    [
        (r"\boxed{" + "{" * 100_000 + "}" * 100_000 + "}", 200_000),
        (r"\boxed{" * 100_000 + "}" * 100_000, 0),
        (r"\boxed{" + "{" * 1_000_000, None),
        (r"\boxed{" * 150_000, None),
        (r"\boxed{}" * 125_000, 0),
        ("\\" * 1_000_000 + r"boxed{}", 0),
        (r"\boxed" + " " * 1_000_000, None),
        (r"\boxed{" + "x" * 1_000_000 + "}", 1_000_000),
    ],
)
def test_long_responses_take_linear_time(response: str, length: int | None) -> None:
    start = time.process_time()
    answer = extract_boxed(response)
    assert time.process_time() - start < 2  # quadratic time would be minutes
    assert (None if answer is None else len(answer)) == length
