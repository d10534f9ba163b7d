"""Word problems of the tiny family, and the exact label of every step of a solution to one.

A problem has one right solution: one step per operation (their number is the level), then the boxed
answer. `chain` applies operations to one number; `rsd.tiny.story` is about named quantities::

    from random import Random
    problem = chain(Random(0), level=2)
    problem.question   # "Mia has 47 shells. She finds 25 more. ... How many shells does Mia have now?"
    problem.steps      # ("Mia has 47+25=72 shells.\n\n", ..., "The answer is \\boxed{54}.")
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

LEVELS = (1, 2, 3, 4, 5)  # what training sees
LARGEST = 999  # no value exceeds it
NAMES = {
    "Mia": "She", "Ava": "She", "Zoe": "She", "Ida": "She", "Eva": "She", "Amy": "She", "Lea": "She", "Joy": "She",
    "Tom": "He", "Ben": "He", "Max": "He", "Leo": "He", "Sam": "He", "Dan": "He", "Tim": "He", "Rob": "He",
}  # fmt: skip
THINGS = ("shells", "coins", "cards", "stamps", "books", "pens", "beads", "nuts", "stones", "keys")

_STATED = re.compile(r"\d+|[-+*/=]")
_PHRASES = {
    "+": ("finds {n} more", "buys {n} more", "gets {n} more"),
    "-": ("loses {n}", "sells {n}", "gives away {n}"),
    "*": ("then has {n} times as many", "ends up with {n} times as many"),
    "/": ("keeps one of {n} equal shares", "divides them by {n}"),
}


@dataclass(frozen=True, slots=True)
class WordProblem:
    """A question, its one right solution step by step, its answer and its level (number of operations)."""

    question: str
    steps: tuple[str, ...]
    answer: str
    level: int

    def correct(self, steps: Sequence[str]) -> list[bool]:
        """Label each step: right iff it and every step before it state the reference's mathematics.

        That is the same numbers and signs in the same order; these problems allow no others. A wrong
        value makes every later step wrong, as it does in a real chain of reasoning. Calling the shells
        beads is bad style, not a wrong step.
        """
        right = True
        labels = []
        for i, step in enumerate(steps):
            right = right and i < len(self.steps) and _STATED.findall(step) == _STATED.findall(self.steps[i])
            labels.append(right)
        return labels

    def solved_by(self, steps: Sequence[str]) -> bool:
        """Whether `steps` are a whole right solution."""
        return len(steps) == len(self.steps) and self.correct(steps)[-1]


def operation(rng: Random, value: int) -> tuple[str, int, int]:
    """Draw an operation possible at `value` (1 to `LARGEST`): (sign, operand, result)."""
    signs = ["+"] * (value < LARGEST) + ["-"] * (value >= 3) + ["*"] * (2 <= value <= LARGEST // 2)
    divisors = [n for n in range(2, 10) if value % n == 0]
    sign = rng.choice(signs + ["/"] * bool(divisors))
    if sign == "+":
        n = rng.randint(1, LARGEST - value)
        return sign, n, value + n
    if sign == "-":
        n = rng.randint(2, value - 1)
        return sign, n, value - n
    if sign == "*":
        n = rng.randint(2, min(9, LARGEST // value))
        return sign, n, value * n
    n = rng.choice(divisors)
    return sign, n, value // n


def boxed(value: int) -> str:
    """The last step of every solution."""
    return f"The answer is \\boxed{{{value}}}."


def chain(rng: Random, level: int) -> WordProblem:
    """Generate a problem that applies `level` >= 1 operations to one number."""
    name = rng.choice(list(NAMES))
    thing = rng.choice(THINGS)
    value = rng.randint(2, 99)
    sentences = [f"{name} has {value} {thing}."]
    steps = []
    for _ in range(level):
        sign, n, result = operation(rng, value)
        sentences.append(f"{NAMES[name]} {rng.choice(_PHRASES[sign]).format(n=n)}.")
        steps.append(f"{name} has {value}{sign}{n}={result} {thing}.\n\n")
        value = result
    sentences.append(f"How many {thing} does {name} have now?")
    return WordProblem(" ".join(sentences), (*steps, boxed(value)), str(value), level)
