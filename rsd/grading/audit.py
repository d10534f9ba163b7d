"""Which gold answers of a benchmark can be graded::

Counter(verdict(problem) for problem in problems)  # {'equal': 383, 'ungradable': 2}
"""

from typing import Literal

from rsd.grading.choices import choice_of
from rsd.grading.matching import matches
from rsd.grading.reading import read, words_of
from rsd.records import Problem

Verdict = Literal["equal", "text", "ungradable", "not graded"]


def verdict(problem: Problem) -> Verdict:
    """`equal`: the gold is read, and so equals itself in whatever form; `text`: is not read as mathematics, and equals
    only the same text (or what math-verify says); `ungradable`: is blank, or is no letter where a letter is due;
    `not graded`: the benchmark has no golds."""
    gold = problem.answer
    if problem.kind == "text":
        return "not graded"
    if problem.kind == "choice":
        return "ungradable" if choice_of(gold) is None else "equal"
    if not gold.strip():
        return "ungradable"
    return "equal" if words_of(gold) or any(matches(x, x) for x in read(gold)) else "text"
