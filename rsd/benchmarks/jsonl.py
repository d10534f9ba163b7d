"""A benchmark in a file of rows: one object per question::

    benchmark = JsonLinesBenchmark(name="tiny_chain", path="…/tiny_chain.jsonl", size=500)
    problems = benchmark.problems()

``benchmark=custom benchmark.path=my.jsonl`` reads any file of questions and gold answers this way.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rsd.benchmarks.formats import FormatError, Item, Row, lacks_text
from rsd.benchmarks.rows import ENDINGS, file_rows
from rsd.errors import DataError
from rsd.grading.choices import LETTERS, choice_of
from rsd.records import FolderName, Problem, question_ids

HINTS = {"yes": " (Yes or No)", "no": " (Yes or No)", "true": " (True or False)", "false": " (True or False)"}


@dataclass(frozen=True, kw_only=True)
class JsonLinesBenchmark:
    """`path` holds the rows (``.jsonl .json .parquet .csv``); `question` and `answer` name their fields; `size` is the
    whole benchmark's number of questions (null: what the file holds). A row may also have a `kind` (math, choice,
    text) and the `choices` of a choice; a text needs no answer, and no row does where `answer` is null: nobody grades
    these. `answer_hint` appends " (Yes or No)" or " (True or False)" to questions with
    such a gold answer."""

    name: FolderName
    path: str | None
    question: str = "question"
    answer: str | None = "answer"
    answer_hint: bool = False
    size: int | None = None

    def problems(self) -> list[Problem]:
        """All questions in file order.

        Raises DataError that names the file and the line when one is not an object with a non-blank
        question and an answer, and when there is none at all.
        """
        places = [self._checked(place, row) for place, row in self._rows()]
        if not places:
            raise DataError(f"benchmark.path: {self.path} holds no question.")
        items = [item for item, _ in places]
        names = question_ids(item.question for item in items)
        return [
            Problem(
                question_id=name,
                question=item.question,
                answer=item.answer,
                kind=item.kind,
                choices=item.choices,
                row={**row, **(item.extra or {})},
            )
            for name, (item, row) in zip(names, places, strict=True)
        ]

    def _rows(self) -> Iterator[tuple[str, Any]]:
        """Every row, and where it stands."""
        if self.path is None:
            raise DataError(
                f"benchmark={self.name} has no file; give one ({' '.join(ENDINGS)}) with benchmark.path=FILE."
            )
        yield from file_rows(self.path)

    def _item(self, row: Row) -> Item:
        question, answer = row.get(self.question), "" if self.answer is None else row.get(self.answer)
        if not isinstance(question, str) or not question.strip():
            raise FormatError(f"no question in the field '{self.question}' (benchmark.question names it)")
        kind: Any = "text" if self.answer is None else row.get("kind", "math")
        choices = row.get("choices")
        if answer is None and kind == "text":
            answer = ""
        if lacks_text(answer):
            raise FormatError(
                f"no gold answer in the field '{self.answer}' (benchmark.answer names it; null where there is none)"
            )
        if kind not in ("math", "choice", "text"):
            raise FormatError(f"no kind of question in the field 'kind' (math, choice or text), but {kind!r}")
        options = tuple(map(str, choices)) if kind == "choice" and isinstance(choices, list) else None
        return Item(question=question, answer=str(answer), kind=kind, choices=options)

    def _kept(self, row: Row) -> dict[str, Any]:
        """What of a row is stored beside question and answer."""
        return {key: value for key, value in row.items() if key not in (self.question, self.answer)}

    def _checked(self, place: str, row: Any) -> tuple[Item, dict[str, Any]]:
        if not isinstance(row, dict):
            raise DataError(f"{place} is not a JSON object.")
        try:
            item = self._item(row)
        except FormatError as error:
            raise DataError(f"{place} has {error}.") from error
        if not item.question.strip():
            raise DataError(f"{place} has no question.")
        letters = LETTERS[: len(item.choices)] if item.choices else LETTERS
        if item.kind == "choice" and choice_of(item.answer, len(letters)) is None:
            raise DataError(f"{place} has no letter from A to {letters[-1]} as gold answer, but {item.answer!r}.")
        try:
            (item.question + item.answer).encode()
        except UnicodeEncodeError as error:
            raise DataError(f"{place} holds half of a character ({error}).") from error
        hint = HINTS.get(item.answer.strip().lower(), "") if self.answer_hint and item.kind == "math" else ""
        if hint:
            item = Item(question=item.question.rstrip() + hint, answer=item.answer, extra=item.extra)
        return item, self._kept(row)


def data_hash(problems: list[Problem]) -> str:
    """Fingerprint of questions and gold answers, in order: part of a run's identity."""
    digest = hashlib.blake2b(digest_size=8)
    for problem in problems:
        digest.update(json.dumps([problem.question, problem.answer]).encode())
    return digest.hexdigest()
