r"""Sort the answers of one question into classes of equal answers::

    answer_classes(["0.5", None, r"\frac{1}{2}", "0.6", "0.5"], equivalent)  # [0, None, 0, 1, 0]

Majority voting counts classes, not strings.
"""

from collections.abc import Callable, Sequence


def answer_classes(answers: Sequence[str | None], equivalent: Callable[[str, str], bool]) -> list[int | None]:
    """The class of each answer, numbered from 0 in the order of first appearance; None where there is no answer.

    An answer that is blank is none. Identical strings (but for surrounding white space) share a class; any other is
    compared, in order, with the first answer of each class, and joins the first that `equivalent` says it equals.
    So `equivalent` is called at most (distinct answers) × (classes) times, never twice for the same pair.
    """
    representatives: list[str] = []
    known: dict[str, int] = {}
    classes: list[int | None] = []
    for answer in answers:
        text = (answer or "").strip()
        if not text:
            classes.append(None)
            continue
        if text not in known:
            matches = (number for number, first in enumerate(representatives) if equivalent(first, text))
            known[text] = next(matches, len(representatives))
            if known[text] == len(representatives):
                representatives.append(text)
        classes.append(known[text])
    return classes
