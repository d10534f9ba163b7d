r"""The answer of a response: its last balanced ``\boxed{...}``, else what it calls its answer."""

import json
import time

import pytest

from rsd.grading import extract_answer, extract_boxed
from rsd.grading.equivalence import equivalent_here
from tests.conftest import SHARED


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
        (r"\boxed 9", "9"),
        (r"so \boxed 12.5.", "12.5"),
        (r"\fbox{7}", "7"),
        (r"\boxed{1}, as \boxed{} asks", "1"),
        (r"use \boxed to show that it is \boxed{4}", "4"),
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
        (r"\boxed{" * 100_000 + "}" * 100_000, 8),
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


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        (r"The answer is 3, in a box: \boxed{4}", "4"),
        (r"\[ \boxed{x=5} \]", "x=5"),
        (r"put it in \boxed{}. The answer is 3.", "3"),
        (r"\boxed{4. The answer is 5.", "5"),
        (r"write \boxed around it. So the answer is 9", "9"),
        ("The answer is **42**.", "42"),
        ("**Answer:** 42", "42"),
        ("**Final Answer**\n42", "42"),
        ("### Final Answer\n\n\\[ 42 \\]", "42"),
        ("Answer: \n\n$$12$$", "12"),
        (r"The answer is \(\pi\)", r"\pi"),
        ("The final answer is $\\frac{1}{2}$. I hope it is correct.", "\\frac{1}{2}"),
        ("The answer is 3.5.", "3.5"),
        ("The answer is: 1,234.", "1,234"),
        ("The answer is x = 5, because y is.", "x = 5"),
        ("The answer is $28$ percent.", "28 percent"),
        ("So, the answers are 2 and 3.", "2 and 3"),
        ("The answer is 1. No: the answer is 2.", "2"),
        ("He adds them.\n#### 18", "18"),
        ("答案是：5。", "5"),
        ("因此，答案是 $\\frac12$。", "\\frac12"),
        ("最终答案为12", "12"),
        ("$\\frac12$", "\\frac12"),
        ("42", "42"),
        ("3+4=7, then 7*2 = 14", None),
        ("It is 7.", None),
        ("I don't know the answer. It is 7", None),
        (r"\boxed{4", None),
        ("", None),
    ],
)
def test_what_a_response_calls_its_answer(response: str, answer: str | None) -> None:
    assert extract_answer(response) == answer


def test_full_width_digits_in_a_box() -> None:
    answer = extract_answer("所以 \\boxed{２３}")
    assert answer is not None
    assert equivalent_here(answer, "23")


def test_all_labelled_responses() -> None:
    rows = [json.loads(line) for line in (SHARED / "grading/responses.jsonl").read_text().splitlines()]
    answers = [extract_answer(row["response"]) for row in rows]
    correct = [
        answer is not None and equivalent_here(row["gold"], answer) for row, answer in zip(rows, answers, strict=True)
    ]
    assert len(rows) == 400
    assert [row for row, right in zip(rows, correct, strict=True) if right is not row["correct"]] == []
