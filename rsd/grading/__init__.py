r"""Grading: which answer a response gives, and whether it equals the gold answer::

    grade(gold=r"\frac{1}{2}", response=r"The answer is \boxed{0.5}.")  # Grade(correct=True, extracted='0.5', …)
    equivalent("x > 2", r"(2, \infty)")  # True

Both compare in a process of their own, which an answer that takes too long or too much memory costs its life;
`Grader` does the same for many answers at once. Importing this loads neither SymPy nor torch.
"""

import atexit
from collections.abc import Sequence
from functools import cache

from rsd.grading.choices import extract_choice
from rsd.grading.extract import extract_answer, extract_boxed
from rsd.grading.judge import GraderName
from rsd.grading.pool import Grade, Grader, Reason
from rsd.records import Kind

__all__ = [
    "Grade",
    "Grader",
    "GraderName",
    "Reason",
    "equivalent",
    "extract_answer",
    "extract_boxed",
    "extract_choice",
    "grade",
]


def grade(*, gold: str, response: str, kind: Kind = "math", choices: Sequence[str] | None = None) -> Grade:
    """Grade one response; gold and response are both untrusted. `choices`: the options of a `choice`, in order.

    Never raises for what they hold. Raises RSDError when no grading process can be started.
    """
    return _shared().grade_now(gold=gold, response=response, kind=kind, choices=choices)


def equivalent(a: str, b: str) -> bool:
    r"""Whether two answers, each the content of a ``\boxed{...}``, are equal; symmetric, and safe with any text.

    Raises RSDError when no grading process can be started.
    """
    return _shared().equivalent(a, b)


@cache
def _shared() -> Grader:
    grader = Grader()
    atexit.register(grader.close)
    return grader
