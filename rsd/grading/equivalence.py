r"""Decide whether two final answers are the same mathematics, with the library math-verify::

    equivalent(r"\frac{1}{2}", "0.5")  # True

An answer is untrusted: comparing it can take for ever, or all memory. Grade through `rsd.grading.Grader`, which
compares in a process that it can kill.
"""

import logging

# It warns once per process that its own time limit is off, which is intended: that limit rests on signal.alarm.
logging.getLogger("math_verify").setLevel(logging.ERROR)


def equivalent(a: str, b: str) -> bool:
    r"""Whether two answers, each the content of a ``\boxed{...}``, are equal; symmetric in `a` and `b`.

    Text that math-verify cannot read equals only its identical text. No limit of time or memory is set here.
    """
    if a == b:
        return True
    # Loads SymPy, so not when rsd.grading is imported.
    from math_verify import LatexExtractionConfig, parse, verify

    # Outside a box math-verify collapses equations to numbers; with its second way of reading (ExprExtractionConfig)
    # it picks any number out of a text that is not LaTeX.
    left, right = (parse(rf"\boxed{{{x}}}", [LatexExtractionConfig()], parsing_timeout=None) for x in (a, b))
    # Its comparison depends on the order for intervals and assignments; either direction counts.
    return any(verify(*pair, timeout_seconds=None) for pair in ((left, right), (right, left)))
