"""A benchmark in a JSON-lines file: one object per question::

benchmark = JsonLinesBenchmark(name="tiny_chain", path="…/tiny_chain.jsonl", size=500)
problems = benchmark.problems()
"""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rsd.errors import DataError
from rsd.records import FolderName, Problem, question_ids


@dataclass(frozen=True, kw_only=True)
class JsonLinesBenchmark:
    """`path` holds the rows; `question` and `answer` name their fields; `size` is the whole
    benchmark's number of questions (null: what the file holds). `answer_pattern`: where a gold answer
    ends a worked solution, the regular expression whose first group is the answer."""

    name: FolderName
    path: str | None
    question: str = "question"
    answer: str = "answer"
    answer_pattern: str | None = None
    size: int | None = None

    def problems(self) -> list[Problem]:
        """All questions in file order.

        Raises DataError that names the file and the line when one is not an object with a non-blank
        question and an answer, and when there is none at all.
        """
        rows = [self._checked(place, row) for place, row in self._rows()]
        if not rows:
            raise DataError(f"benchmark.path: {self.path} holds no question.")
        names = question_ids(str(row[self.question]) for row in rows)
        return [
            Problem(
                question_id=name,
                question=str(row[self.question]),
                answer=str(row[self.answer]),
                row={key: value for key, value in row.items() if key not in (self.question, self.answer)},
            )
            for name, row in zip(names, rows, strict=True)
        ]

    def _rows(self) -> Iterator[tuple[str, Any]]:
        """Every row, and where it stands."""
        try:
            text = Path(str(self.path)).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"benchmark.path: cannot read {self.path}: {error}") from error
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                place = f"benchmark.path: line {number} of {self.path}"
                try:
                    yield place, json.loads(line)
                except ValueError as error:
                    raise DataError(f"{place} is not JSON ({error}).") from error

    def _checked(self, place: str, row: Any) -> dict[str, Any]:
        if not isinstance(row, dict):
            raise DataError(f"{place} is not a JSON object.")
        if not isinstance(row.get(self.question), str) or not row[self.question].strip():
            raise DataError(f"{place} has no question in the field '{self.question}' (benchmark.question names it).")
        if isinstance(row.get(self.answer), (dict, list, type(None))):
            raise DataError(f"{place} has no gold answer in the field '{self.answer}' (benchmark.answer names it).")
        try:
            (row[self.question] + str(row[self.answer])).encode()
        except UnicodeEncodeError as error:
            raise DataError(f"{place} holds half of a character ({error}).") from error
        if self.answer_pattern is None:
            return row
        found = re.search(self.answer_pattern, str(row[self.answer]))
        if found is None:
            raise DataError(
                f"{place} has no gold answer of the form {self.answer_pattern} in the field '{self.answer}' "
                "(benchmark.answer_pattern gives the form)."
            )
        return {**row, self.answer: found[1], "worked_answer": row[self.answer]}


def data_hash(problems: list[Problem]) -> str:
    """Fingerprint of questions and gold answers, in order: part of a run's identity."""
    digest = hashlib.blake2b(digest_size=8)
    for problem in problems:
        digest.update(json.dumps([problem.question, problem.answer]).encode())
    return digest.hexdigest()
