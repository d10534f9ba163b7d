r"""Decide whether two final answers are the same mathematics::

    equivalent_here(r"\frac{1}{2}", "0.5")  # True

An answer is untrusted: comparing it can take for ever, or all memory. Use `rsd.grading.equivalent` or
`rsd.grading.Grader`, which compare in a process that they can kill. Nothing of an answer is ever evaluated as code.
"""

import logging

from rsd.grading.matching import matches
from rsd.grading.reading import read, words_of

# It warns once per process that its own time limit is off, which is intended: that limit rests on signal.alarm.
logging.getLogger("math_verify").setLevel(logging.ERROR)

LIBRARY_LENGTH = 2000  # characters; math-verify's parser takes seconds for more


def equivalent_here(a: str, b: str) -> bool:
    r"""Whether two answers, each the content of a ``\boxed{...}``, are equal; symmetric. No limits are set here.

    Both are read by the grammar of `rsd.grading.answers`; math-verify decides where that grammar reads neither, or
    only one that holds what math-verify alone knows (sums, integrals, limits). Text equals the same text.
    """
    if a.strip() == b.strip():
        return True
    left, right = words_of(a), words_of(b)
    if left and left == right:
        return True
    readings, others = read(a), read(b)
    if readings and others:
        try:
            return any(matches(x, y) for x in readings for y in others)
        except RecursionError:  # an expression of thousands of nested operations
            return False
    if max(len(a), len(b)) > LIBRARY_LENGTH or left or right:
        return False
    return by_library(a, b)


def by_library(a: str, b: str) -> bool:
    """math-verify's own verdict, in either direction: its comparison depends on the order."""
    # Loads SymPy, so not when rsd.grading is imported.
    from math_verify import LatexExtractionConfig, parse, verify

    # Outside a box math-verify collapses equations to numbers; with its second way of reading (ExprExtractionConfig)
    # it picks any number out of a text that is not LaTeX.
    left, right = (parse(rf"\boxed{{{x}}}", [LatexExtractionConfig()], parsing_timeout=None) for x in (a, b))
    return any(verify(*pair, timeout_seconds=None) for pair in ((left, right), (right, left)))
