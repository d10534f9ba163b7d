r"""The rules of the evaluation code behind the paper's numbers, in our own words, for use beside the default grader::

    reference_equal("50", "0.5")  # True: it forgives a factor of 100

Known for what it forgives: a relative error of 1e-4, ×100 and ÷100, and the last standalone A-E of the text for a
choice. Where its rules need algebra, expressions are compared by value.
"""

import math
import re
from fractions import Fraction

from rsd.grading.answers import Answer, Matrix, Relation, Tuple, Value
from rsd.grading.evaluation import evaluate, proportion, same_value
from rsd.grading.expressions import difference, symbols
from rsd.grading.extract import extract_boxed
from rsd.grading.reading import read

RELATIVE_ERROR = 1e-4
_SAID = re.compile(r"(?:the answer is|final answer is|答案是)(.*?)(?:\.\s|\n|$)", re.IGNORECASE)
_NUMBER = re.compile(r"-?\d[\d,]*\.?\d*")
_STANDALONE = re.compile(r"\b([A-E])\b")
_UNITS = re.compile(
    r"\\(?:text|mathrm|mbox)\s*\{[^{}]*\}\s*$|\s*(?:degrees?|cm|dollars|units?|km|mph)\s*$|\\\$|\$|\^\{?\\circ\}?"
)


def reference_answer(response: str, kind: str) -> str | None:
    """The answer that those rules find: the last box, else what follows "answer is", else the last number of the text;
    for a choice the last standalone A-E of that."""
    found = extract_boxed(response)
    if found is None or not found.strip():
        said = _SAID.findall(response)
        numbers = _NUMBER.findall(response) if kind != "choice" else []
        found = said[-1] if said and said[-1].strip() else (numbers[-1] if numbers else None)
    if kind == "choice":
        letters = _STANDALONE.findall(found or response) or _STANDALONE.findall(response)
        return letters[-1] if letters else found
    return None if found is None else found.strip().strip("$").rstrip("./ ")


def reference_equal(gold: str, answer: str) -> bool:
    """Whether those rules call `answer` equal to `gold`."""
    gold, answer = (_UNITS.sub("", text).strip() for text in (gold, answer))
    if gold.lower() == answer.lower():
        return True
    number, other = _parsed_number(gold), _parsed_number(answer)
    if number is not None and other is not None:
        return any(_close(target, other) for target in (number / 100, number, number * 100))
    return any(_equal(x, y) for x in read(gold) for y in read(answer))


def _parsed_number(text: str) -> float | None:
    text = text.replace(",", "").replace("\\%", "%")
    try:
        return float(Fraction(text[:-1]) / 100) if text.endswith("%") else float(Fraction(text))
    except (ValueError, ZeroDivisionError, OverflowError):
        return None


def _close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=RELATIVE_ERROR)


def _equal(gold: Answer, answer: Answer) -> bool:
    gold, answer = (_without_name(x) for x in (gold, answer))
    match gold, answer:
        case Tuple(_, _, items), Tuple(_, _, others):  # whatever the brackets
            return len(items) == len(others) and all(map(_equal, items, others))
        case Matrix(rows), Matrix(others):
            return len(rows) == len(others) and all(
                len(row) == len(other) and all(map(_equal, row, other)) for row, other in zip(rows, others, strict=True)
            )
        case Value(a), Value(b):
            if same_value(a, b):
                return True
            if symbols(a) or symbols(b):
                return False
            try:
                x, y = (complex(value) for value in evaluate((a, b), {})[0])
            except (ArithmeticError, ValueError):
                return False
            return any(abs(x * scale - y) <= RELATIVE_ERROR * max(abs(x * scale), abs(y)) for scale in (0.01, 1, 100))
        case Relation(("=",), (Value(a), Value(b))), Relation(("=",), (Value(c), Value(d))):
            return proportion(difference(a, b), difference(c, d)) != 0
    return gold == answer


def _without_name(answer: Answer) -> Answer:
    """``x = 5`` without its single letter."""
    if isinstance(answer, Relation) and answer.operators == ("=",):
        side = answer.sides[0]
        if isinstance(side, Value) and len(getattr(side.expression, "name", "  ")) <= 1:
            return answer.sides[1]
    return answer
