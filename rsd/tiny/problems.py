"""Generator of the tiny family's word problems, with the exact label of every step.

A *chain* problem applies one to five operations (its level) to a starting number. The reference
solution writes one step per operation and closes with the boxed answer::

    from random import Random
    problem = chain(Random(0), level=2)
    problem.question   # "Mia has 47 shells. She finds 25 more. ... How many shells does Mia have now?"
    problem.steps      # ("Mia has 47+25=72 shells.\n\n", ..., "The answer is \\boxed{54}.")
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

LEVELS = (1, 2, 3, 4, 5)
LARGEST = 5000  # no intermediate value exceeds it

_STATED = re.compile(r"\d+|[-+*/=]")
_NAMES = {
    "Mia": "She", "Ava": "She", "Zoe": "She", "Ida": "She", "Eva": "She",
    "Tom": "He", "Ben": "He", "Max": "He", "Leo": "He", "Sam": "He",
}  # fmt: skip
_OBJECTS = ("shells", "coins", "cards", "stamps", "books", "pens", "beads", "nuts", "stones", "keys")
_PHRASES = {
    "+": ("finds {n} more", "buys {n} more", "gets {n} more"),
    "-": ("loses {n}", "sells {n}", "gives away {n}"),
    "*": ("then has {n} times as many", "ends up with {n} times as many"),
    "/": ("keeps one of {n} equal shares", "divides them by {n}"),
}


@dataclass(frozen=True, slots=True)
class ChainProblem:
    """A question, its reference solution step by step, its answer and its level (1-5)."""

    question: str
    steps: tuple[str, ...]
    answer: str
    level: int

    def correct(self, steps: Sequence[str]) -> list[bool]:
        """Label each step: right iff it and every step before it state the reference's mathematics.

        That is the same numbers and signs in the same order; a chain problem allows no others. A wrong
        value makes every later step wrong, as it does in a real chain of reasoning. Calling the shells
        beads is bad style, not a wrong step.
        """
        right = True
        labels = []
        for i, step in enumerate(steps):
            right = right and i < len(self.steps) and _STATED.findall(step) == _STATED.findall(self.steps[i])
            labels.append(right)
        return labels


def _operation(rng: Random, value: int) -> tuple[str, int, int]:
    """Draw an operation possible at `value`: (sign, operand, result)."""
    divisors = [n for n in range(2, 10) if value % n == 0]
    signs = ["+", "-"] if value >= 3 else ["+"]
    if value * 2 <= LARGEST and value >= 2:
        signs.append("*")
    if divisors:
        signs.append("/")
    sign = rng.choice(signs)
    if sign == "+":
        n = rng.randint(2, min(999, LARGEST - value)) if value < LARGEST - 2 else 1
        return sign, n, value + n
    if sign == "-":
        n = rng.randint(2, min(999, value - 1))
        return sign, n, value - n
    if sign == "*":
        n = rng.randint(2, min(9, LARGEST // value))
        return sign, n, value * n
    n = rng.choice(divisors)
    return sign, n, value // n


def chain(rng: Random, level: int) -> ChainProblem:
    """Generate one chain problem of `level` operations (1-5) from `rng`."""
    name = rng.choice(list(_NAMES))
    thing = rng.choice(_OBJECTS)
    value = rng.randint(2, 99)
    sentences = [f"{name} has {value} {thing}."]
    steps = []
    for _ in range(level):
        sign, n, result = _operation(rng, value)
        sentences.append(f"{_NAMES[name]} {rng.choice(_PHRASES[sign]).format(n=n)}.")
        steps.append(f"{name} has {value}{sign}{n}={result} {thing}.\n\n")
        value = result
    sentences.append(f"How many {thing} does {name} have now?")
    steps.append(f"The answer is \\boxed{{{value}}}.")
    return ChainProblem(" ".join(sentences), tuple(steps), str(value), level)
