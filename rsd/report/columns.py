"""A run's records as two tables of columns, one row a solution and one row a proposal.

They are read line by line, so that a run of a million proposals needs the memory of its columns only::

    tables = read_columns(folder, read_grades(folder), facts, told.append)
    tables.solutions, tables.proposals    # Arrow tables, in the order of question_id and sample
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from rsd.cost import UsageColumns
from rsd.errors import StoreError
from rsd.records import SCHEMA
from rsd.report.numbers import Facts, Values, numbers_of
from rsd.report.summary import ROLES
from rsd.store import GradeRecord, Key, read_lines

CHUNK = 100_000  # proposals turned into columns at a time

RECORD = {
    "question_id": pa.string(),
    "sample": pa.int32(),
    "invocation": pa.int32(),
    "prompt_tokens": pa.int32(),
    "end_reason": pa.string(),
    "error": pa.string(),
}
PROPOSAL = {
    "step": pa.int32(),
    "origin": pa.string(),
    "candidate": pa.int32(),
    "parent": pa.int32(),
    "accepted": pa.bool_(),
    "kept": pa.bool_(),
    "reward": pa.float64(),
    "omega": pa.float64(),
    "t0": pa.float64(),
    "t1": pa.float64(),
    "tokens": pa.int32(),
    "diagnostic": pa.binary(),
}
USAGE = tuple(UsageColumns.__dataclass_fields__)

_record = itemgetter(*RECORD)
_proposal = itemgetter(*(name for name in PROPOSAL if name not in ("tokens", "diagnostic")))
_usage = itemgetter(*USAGE)
_IDLE = (0,) * len(USAGE)  # of a role that did not work on a proposal

Line = tuple[tuple[Any, ...], list[tuple[Any, ...]], list[tuple[Any, ...]]]


@dataclass(frozen=True, slots=True)
class Tables:
    """A run's solutions and proposals."""

    solutions: pa.Table
    proposals: pa.Table


def read_columns(
    folder: Path, grades: Mapping[Key, GradeRecord], facts: Facts, damaged: Callable[[StoreError], None]
) -> Tables:
    """Read the records of `folder`; a record replaces one of the same sample that is an error.

    Broken lines are told to `damaged`, and the others used. Raises StoreError for a value of another type than its
    field's.
    """
    lines = read_lines(folder, "records", _load, damaged)
    try:
        return _joined(list(_chunks(lines, facts)), grades)
    except (TypeError, ValueError, OverflowError) as error:  # of Arrow and NumPy, about a value
        raise StoreError(
            f"{folder} holds a record with a value of another type ({error}); mend or delete it"
        ) from error


def no_columns() -> Tables:
    """The tables of a run without records."""
    return _joined(list(_chunks(iter(()), Facts(shapes={}))), {})


def _joined(chunks: Sequence[Tables], grades: Mapping[Key, GradeRecord]) -> Tables:
    """The records that count, in the order of their keys, with their grades."""
    solutions, proposals = (pa.concat_tables([getattr(chunk, name) for chunk in chunks]) for name in Tables.__slots__)
    lengths = solutions["proposals"].to_numpy()
    order = np.array(_standing(solutions), dtype=np.int64)
    first = np.cumsum(lengths) - lengths
    rows = [np.arange(first[i], first[i] + lengths[i]) for i in order]
    solutions = _graded(solutions.take(order), grades)
    proposals = proposals.take(np.concatenate([np.zeros(0, dtype=np.int64), *rows]))
    owner = np.repeat(np.arange(len(order)), lengths[order])
    for i, name in enumerate(("question_id", "sample")):
        proposals = proposals.add_column(i, name, solutions[name].take(owner))
    return Tables(solutions.drop_columns("proposals"), proposals)


def _load(line: bytes) -> Line:
    """A record's own values, those of its proposals, and of their usage. Raises ValueError when it is none."""
    data = orjson.loads(line)
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise ValueError(f"not a record of schema {SCHEMA}")
    try:
        proposals = data["proposals"]
        rows = [
            (*_proposal(p), len(p["token_ids"]), None if p["diagnostic"] is None else orjson.dumps(_told(p)))
            for p in proposals
        ]
        usages = [
            tuple(_usage(usage[role]) if role in usage else _IDLE for role in ROLES)
            for usage in (p["usage"] for p in proposals)
        ]
        return _record(data), rows, usages
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"not a record of schema {SCHEMA}: {error}") from error


def _told(proposal: Mapping[str, Any]) -> dict[str, Any]:
    """The diagnostic; beside the text of the target's step in the same context, whether it is the proposal's own."""
    told: dict[str, Any] = proposal["diagnostic"]
    return {**told, "same_text": told["target_text"] == proposal["text"]} if "target_text" in told else told


def _chunks(lines: Iterator[Line], facts: Facts) -> Iterator[Tables]:
    """Tables of whole records, of `CHUNK` proposals or a few more each; of no record at all, empty ones."""
    records: list[tuple[Any, ...]] = []
    proposals: list[tuple[Any, ...]] = []
    usages: list[tuple[Any, ...]] = []
    for record, rows, used in lines:
        records.append((*record, len(rows)))
        proposals += rows
        usages += used
        if len(proposals) >= CHUNK:
            yield _tables(records, proposals, usages, facts)
            records, proposals, usages = [], [], []
    yield _tables(records, proposals, usages, facts)


def _tables(
    records: Sequence[tuple[Any, ...]],
    proposals: Sequence[tuple[Any, ...]],
    usages: Sequence[tuple[Any, ...]],
    facts: Facts,
) -> Tables:
    made = zip(*proposals, strict=True) if proposals else ((),) * len(PROPOSAL)
    columns = {name: pa.array(values, kind) for (name, kind), values in zip(PROPOSAL.items(), made, strict=True)}
    counts = np.array(usages, dtype=np.float64).reshape(len(proposals), len(ROLES), len(USAGE))  # None: NaN
    used = {role: UsageColumns(*counts[:, i].T) for i, role in enumerate(ROLES)}
    told = list(zip(*records, strict=True)) if records else [()] * (len(RECORD) + 1)
    own = {name: pa.array(values, kind) for (name, kind), values in zip(RECORD.items(), told, strict=False)}
    lengths = np.array(told[-1], dtype=np.int64)
    numbers = numbers_of(columns, used, lengths, facts)
    own["draft_only"] = pa.array(numbers.pop("idle_target") & ~_failed(own))
    if not facts.scores_all:
        numbers["unscored"] = pc.equal(own["end_reason"], "prm_context").cast(pa.int64())
    return Tables(pa.table({**own, **numbers, "proposals": pa.array(lengths)}), pa.table(columns))


def _failed(solutions: Any) -> Values:
    """Which solutions, a table or its columns by name, are errors."""
    failed = pc.or_(pc.is_valid(solutions["error"]), pc.equal(solutions["end_reason"], "error"))
    return np.asarray(failed.to_numpy(zero_copy_only=False) if isinstance(failed, pa.Array) else failed.to_numpy())


def _standing(solutions: pa.Table) -> list[int]:
    """Rows of the records that count, in the order of their keys: the last of each sample up to the first that
    is no error."""
    chosen: dict[Key, int] = {}
    failed = _failed(solutions)
    keys = zip(solutions["question_id"].to_pylist(), solutions["sample"].to_pylist(), strict=True)
    for row, key in enumerate(keys):
        if key not in chosen or failed[chosen[key]]:
            chosen[key] = row
    return [chosen[key] for key in sorted(chosen)]


def _graded(solutions: pa.Table, grades: Mapping[Key, GradeRecord]) -> pa.Table:
    """With the verdicts. An error counts as graded and wrong; `whole`: failed, or through the grader's hands."""
    failed = _failed(solutions)
    keys = zip(solutions["question_id"].to_pylist(), solutions["sample"].to_pylist(), strict=True)
    found = [None if lost else grades.get(key) for key, lost in zip(keys, failed, strict=True)]
    verdicts = {
        "correct": pa.array([grade is not None and grade.correct for grade in found], pa.bool_()),
        "graded": pa.array(
            [lost or (g is not None and g.reason != "not graded") for g, lost in zip(found, failed, strict=True)],
            pa.bool_(),
        ),
        "whole": pa.array([lost or grade is not None for grade, lost in zip(found, failed, strict=True)], pa.bool_()),
        "extracted": pa.array([None if grade is None else grade.extracted for grade in found], pa.string()),
        "answer_class": pa.array([None if grade is None else grade.answer_class for grade in found], pa.int32()),
    }
    for i, (name, values) in enumerate(verdicts.items(), start=2):
        solutions = solutions.add_column(i, name, values)
    return solutions
