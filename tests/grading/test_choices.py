"""The letter that a response to a multiple-choice question commits to, through the whole of `grade`."""

import pytest

from rsd.grading import Grade, extract_choice, grade


@pytest.mark.parametrize(
    ("response", "letter"),
    [
        ("The answer is (A).", "A"),
        ("A.", "A"),
        ("A", "A"),
        ("[B]", "B"),
        ("B: mitochondria", "B"),
        (r"\boxed{A}", "A"),
        (r"\boxed{\text{A}}", "A"),
        (r"\boxed{\textbf{(A)}}", "A"),
        (r"\boxed{\mathrm{B}}", "B"),
        (r"\boxed{A. 5}", "A"),
        (r"\boxed{(A) the first of them}", "A"),
        (r"\boxed{\text{Option B}}", "B"),
        ("The answer is: $\\boxed{\\text{(C) }7}$", "C"),
        ("vitamin C is needed, so the answer is (A)", "A"),
        ("So the correct option is B.", "B"),
        ("Option B is correct.", "B"),
        ("I would choose C", "C"),
        ("I think it's B.", "B"),
        ("A is wrong. B is wrong. So C.", "C"),
        ("(A) is incorrect, (B) is correct", "B"),
        ("It cannot be (A). The answer is (B). (A) is incorrect.", "B"),
        ("The answer is not (A) but (B).", "B"),
        ("We eliminate A. Thus, B", "B"),
        ("Therefore, the correct choice is **(D)**.", "D"),
        ("**B**", "B"),
        ("the answer is\n\n(B)", "B"),
        ("We add them.\nC.", "C"),
        ("The answer is A because of the first law", "A"),
        ("The correct answer is (B) 5.", "B"),
        (r"the answer is \(\text{D}\)", "D"),
        ("故选：C", "C"),
        ("答案选B", "B"),
        ("故答案为：A", "A"),
        ("故选 A．", "A"),
        ("选D。", "D"),
    ],
)
def test_the_letter(response: str, letter: str) -> None:
    assert extract_choice(response, 4) == letter


@pytest.mark.parametrize(
    "response",
    [
        r"\boxed{A and C}",
        r"\boxed{A, C}",
        r"\boxed{AC}",
        r"\boxed{not A}",
        "The answer is not A.",
        "The answer is A and C.",
        "Answer is A or B",
        "Both (A) and (B) hold",
        "vitamin C",
        "A triangle has three sides",
        "the answer is a triangle",
        r"\boxed{E}",
        "",
    ],
)
def test_no_letter_or_more_than_one_is_wrong(response: str) -> None:
    assert extract_choice(response, 4) not in ("A", "B", "C", "D")
    assert not grade(gold="A", response=response, kind="choice", choices=["1", "2", "3", "4"]).correct


def test_an_options_own_text_or_value() -> None:
    choices = ["0.5", r"\frac{1}{3}", "The Moon", "2"]
    assert grade(gold="A", response=r"\boxed{\frac12}", kind="choice", choices=choices) == Grade(True, "A", "equal")
    assert grade(gold="B", response=r"\boxed{1/3}", kind="choice", choices=choices) == Grade(True, "B", "equal")
    assert grade(gold="C", response=r"\boxed{\text{the moon}}", kind="choice", choices=choices).correct
    assert grade(gold="A", response=r"\boxed{2}", kind="choice", choices=choices) == Grade(False, "D", "different")
    assert not grade(gold="A", response=r"\boxed{7}", kind="choice", choices=choices).correct
    assert not grade(gold="A", response=r"\boxed{1}", kind="choice", choices=["1.0", "1.00"]).correct


def test_the_gold_may_be_written_like_an_answer() -> None:
    assert grade(gold="(B)", response=r"\boxed{B}", kind="choice").correct
    assert not grade(gold="(B)", response=r"\boxed{C}", kind="choice").correct


def test_text_is_not_graded() -> None:
    assert grade(gold="", response="Dear Sir, …", kind="text") == Grade(False, None, "not graded")
