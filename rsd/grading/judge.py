r"""What a grading process does: decide about one answer, for one of three graders::

    judge("default", gold="0.5", answer=r"\frac{1}{2}", kind="math", choices=None)  # ('equal', '\\frac{1}{2}')

Runs inside `rsd.grading.worker`, under its limits.
"""

from collections.abc import Callable, Sequence
from typing import Literal

from rsd.grading.choices import choice_by_value, choice_of
from rsd.grading.equivalence import by_library, equivalent_here
from rsd.grading.reference import reference_equal
from rsd.records import Kind

GraderName = Literal["default", "math_verify", "reference"]
EQUALITIES: dict[str, Callable[[str, str], bool]] = {
    "default": equivalent_here,
    "math_verify": by_library,
    "reference": reference_equal,
}


def judge(
    grader: GraderName, *, gold: str, answer: str, kind: Kind, choices: Sequence[str] | None
) -> tuple[Literal["equal", "different"], str]:
    """The verdict, and the answer as it was understood: the letter, where an option's own text or value was given."""
    equal = EQUALITIES[grader]
    if kind == "choice" and grader != "math_verify":
        count = {"count": len(choices)} if choices else {}
        letter = choice_of(answer, **count)
        if letter is None and choices:
            letter = choice_by_value(answer, choices, equal)
        answer = letter or answer
        return ("equal" if letter is not None and letter == choice_of(gold, **count) else "different"), answer
    return ("equal" if equal(gold, answer) else "different"), answer


def first_equal(grader: GraderName, answer: str, others: Sequence[str]) -> int | None:
    """The index of the first of `others` that equals `answer`, None where none does."""
    return next((index for index, other in enumerate(others) if EQUALITIES[grader](other, answer)), None)
