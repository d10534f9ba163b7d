r"""What each benchmark's row holds: question, gold, kind and options, from the hub's columns or a local file's::

    FORMATS["gsm8k"]({"question": "1+1?", "answer": "1+1=2\n#### 2"})  # Item(question="1+1?", answer="2")

A function raises FormatError with what it missed; `row` always stays whole in the record of the problem.
"""

import hashlib
import json
import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rsd.grading.choices import LETTERS
from rsd.grading.extract import extract_boxed
from rsd.records import Kind

Row = Mapping[str, Any]


class FormatError(ValueError):
    """A row that lacks what its benchmark needs; the message says what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A question and its gold answer; `choices` in the order of their letters; `extra` joins the stored row."""

    question: str
    answer: str
    kind: Kind = "math"
    choices: tuple[str, ...] | None = None
    extra: Mapping[str, Any] | None = None


def lacks_text(value: Any) -> bool:
    """Whether a field holds nothing that a question or a gold can be: null, NaN, an infinity, a list or an object."""
    return isinstance(value, (dict, list, type(None))) or (isinstance(value, float) and not math.isfinite(value))


def _text(row: Row, *names: str) -> str:
    """The first of the columns `names` that the row has, as text."""
    for name in names:
        value = row.get(name)
        if not lacks_text(value):
            return str(value)
    raise FormatError(f"no text in the field {' or '.join(map(repr, names))}")


def math500(row: Row) -> Item:
    """MATH500 and files like it: `problem`, `answer`."""
    return Item(question=_text(row, "problem", "question"), answer=_text(row, "answer"))


def gsm8k(row: Row) -> Item:
    """A worked solution that ends in ``#### gold``; or the gold alone."""
    answer = _text(row, "answer")
    found = re.search(r"#### (.+)", answer)
    if found is None and "\n" in answer.strip():
        raise FormatError("no gold answer of the form #### (.+) in the field 'answer'")
    return Item(question=_text(row, "question"), answer=found[1].strip() if found else answer.strip())


def question_answer(row: Row) -> Item:
    """`question`, `answer`: GaoKao-2023-En, College Math."""
    return Item(question=_text(row, "question", "problem"), answer=_text(row, "answer"))


def olympiadbench(row: Row) -> Item:
    """`final_answer` is a list of one string (the answers joined by commas); units stand beside it."""
    final = row.get("final_answer", row.get("answer"))
    answers = [final] if isinstance(final, str) else final
    if not isinstance(answers, (list, tuple)) or not all(isinstance(answer, str) for answer in answers) or not answers:
        raise FormatError("no list of texts in the field 'final_answer'")
    return Item(question=_text(row, "question"), answer=", ".join(answers))


def minerva_math(row: Row) -> Item:
    r"""The hub's `question`, `answer`; or the local file's `problem`, whose `solution` boxes the gold."""
    if row.get("answer") is not None:
        return Item(question=_text(row, "question", "problem"), answer=_text(row, "answer"))
    answer = extract_boxed(_text(row, "solution"))
    if answer is None:
        raise FormatError("no boxed gold answer in the field 'solution'")
    return Item(question=_text(row, "problem", "question"), answer=answer)


def cn_middle_school(row: Row) -> Item:
    """A letter in `choice_answer` where the question offers options (41 rows), a value in `answer` otherwise (60)."""
    question = _text(row, "question")
    letter = str(row.get("choice_answer") or "").strip()
    if not letter:
        return Item(question=question, answer=_text(row, "answer"))
    return Item(question=question, answer=letter, kind="choice", choices=_options(question))


def _options(question: str) -> tuple[str, ...] | None:
    """The options A to D that a question lists itself; None where they cannot be told apart."""
    marks = [re.search(rf"(?<![A-Za-z]){letter}\s*[.．、:：)]", question) for letter in "ABCD"]
    places = [(mark.start(), mark.end()) for mark in marks if mark]
    if len(places) < 4 or places != sorted(places):
        return None
    ends = [start for start, _ in places[1:]] + [len(question)]
    return tuple(question[start:end].strip() for (_, start), end in zip(places, ends, strict=True))


def mmlu_stem(row: Row) -> Item:
    """`choices` and the index of the right one in `answer`; the subject is `subject`, or `type` in the local file."""
    choices = row.get("choices")
    if isinstance(choices, str):
        choices = json.loads(choices)
    answer = row.get("answer")
    if not isinstance(choices, Sequence) or not all(isinstance(choice, (str, int, float)) for choice in choices):
        raise FormatError("no list of options in the field 'choices'")
    letters = LETTERS[: len(choices)]
    letter = str(answer).strip().upper()
    if letter not in letters or not letter:
        if not letter.isdigit() or int(letter) >= len(choices):
            raise FormatError("no index of an option in the field 'answer'")
        letter = letters[int(letter)]
    subject = row.get("subject") or row.get("type")
    return _choice(_text(row, "question"), tuple(map(str, choices)), letter, {"subject": subject})


def gpqa(row: Row) -> Item:
    """`Question`, `Correct Answer`, `Incorrect Answer 1` to `3`, in an order drawn from a hash of the question, which
    the row keeps: `order[i]` is the column (0: the correct one) that stands at letter i."""
    question = _text(row, "Question", "question").strip()
    columns = ("Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")
    options = [_text(row, column).strip() for column in columns]
    order = [0, 1, 2, 3]
    random.Random(hashlib.sha256(question.encode()).digest()).shuffle(order)
    choices = tuple(options[column] for column in order)
    return _choice(question, choices, LETTERS[order.index(0)], {"order": order})


def _choice(question: str, choices: tuple[str, ...], letter: str, extra: Row) -> Item:
    listed = " ".join(f"({LETTERS[i]}) {choice}" for i, choice in enumerate(choices))
    return Item(
        question=f"{question}\nAnswer Choices: {listed}", answer=letter, kind="choice", choices=choices, extra=extra
    )


def alpaca_eval(row: Row) -> Item:
    """Instructions without a gold answer: `instruction`."""
    return Item(question=_text(row, "instruction", "question"), answer="", kind="text")


FORMATS: dict[str, Callable[[Row], Item]] = {
    function.__name__: function
    for function in (
        *(math500, gsm8k, question_answer, olympiadbench, minerva_math, cn_middle_school, mmlu_stem, gpqa, alpaca_eval),
    )
}
