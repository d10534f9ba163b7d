r"""Grading: which answer a response gives, and whether it equals the gold answer::

    with Grader(workers=2) as grader:
        grade = await grader.grade(gold=r"\frac{1}{2}", response=r"The answer is \boxed{0.5}.")
    assert grade.correct and grade.extracted == "0.5"

Importing this loads neither SymPy nor torch.
"""

from rsd.grading.equivalence import equivalent
from rsd.grading.extract import extract_boxed
from rsd.grading.pool import Grade, Grader
from rsd.grading.worker import Reason

__all__ = ["Grade", "Grader", "Reason", "equivalent", "extract_boxed"]
