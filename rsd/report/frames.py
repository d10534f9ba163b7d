"""Stored runs as data frames: what every table, figure and comparison reads.

    from rsd.report import load

    runs = load(method="rsd", benchmark=["math500", "gsm8k"])      # one row a run
    solutions = load("results", rows="solutions", delta=0.7)       # one row a run, question and sample
    steps = load(rows="proposals", run_id=runs["run_id"])          # one row a proposal, kept or not

``docs/api.md`` lists the columns. The second call takes what it needs from ``results/cache/``.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

import orjson
import pandas as pd
import pyarrow as pa

from rsd.errors import StoreError, hint
from rsd.grading import GraderName
from rsd.report.cache import StoredRun, named, read_ahead, read_run, row_of, tell
from rsd.report.columns import Tables, no_columns
from rsd.report.questions import Questions
from rsd.report.runs import PER_QUESTION
from rsd.report.summary import ROLES

Rows = Literal["runs", "solutions", "proposals", "invocations"]

INTEGERS = ("n", "seed", "answer_class", "parent", "near_delta", "beyond_context")  # that may be missing
WORDS = (
    *("method", "role", "model", "draft", "target", "prm", "weighting", "tag", "interval_method"),
    *("extracted", "error", "level", "subject"),
)
NUMBERS = ("delta", "temperature", "top_p", "accuracy", "low", "high", "acceptance", "acceptance_tokens", *PER_QUESTION)
NOTHING = {"name": "", "benchmark": "", "benchmark_size": 0, "identity": {}}  # a manifest


def load(
    results: str | Path = "results",
    rows: Rows = "runs",
    grader: str = "default",
    levels: bool = True,
    **filters: Any,
) -> pd.DataFrame:
    """The runs below ``<results>/runs/`` as a frame, sorted by benchmark, run, question, sample and step.

    `rows` is what a row stands for; `grader` whose verdicts count: runs that another grader than the default one has
    not graded are left out. `filters` are values, or lists of values, of the columns of ``rows="runs"``, whatever
    `rows` is; None stands for a missing value. Missing values are NaN, None or <NA>, never invented. Of solutions,
    `levels` has the benchmarks read for each question's level and subject.

    Damaged lines of a run are named on stderr, once in a process, and the others used. Raises StoreError for rows, a
    grader or a column that do not exist.
    """
    if rows not in get_args(Rows):
        raise StoreError(f"rows={rows!r}: choose one of {', '.join(get_args(Rows))}")
    if grader not in get_args(GraderName):
        raise StoreError(f"grader={grader!r}: choose one of {', '.join(get_args(GraderName))}")
    runs = _chosen(list(_runs(Path(results), grader)), filters)
    if rows == "runs":
        return frame_of_runs(runs)
    if rows == "invocations":
        return frame_of_invocations(runs)
    frame = frame_of(pa.concat_tables([getattr(run, rows) for run in runs] or [getattr(_nothing(), rows)]))
    if rows == "solutions" and levels:
        questions = Questions(Path(results) / "cache")
        told = {run.row["run_id"]: questions.of(run.folder) for run in runs}
        pairs = [
            told[run].get(question, (None, None))
            for run, question in zip(frame["run_id"], frame["question_id"], strict=True)
        ]
        frame["level"], frame["subject"] = (pd.Series([p[i] for p in pairs], dtype="str") for i in range(2))
    return frame


def frame_of_runs(runs: Iterable[StoredRun]) -> pd.DataFrame:
    """A row for each of `runs`."""
    rows = [{**run.row, "folder": str(run.folder)} for run in runs]
    return _typed(pd.DataFrame(rows or [_no_run()])).iloc[: len(rows)]


def frame_of(table: pa.Table) -> pd.DataFrame:
    """A table of solutions or proposals as a frame."""
    frame = _typed(table.to_pandas())
    if "diagnostic" in frame:
        frame["accepted"] = frame["accepted"].astype("boolean")
        frame["diagnostic"] = [None if told is None else orjson.loads(told) for told in frame["diagnostic"]]
    return frame


def frame_of_invocations(runs: Iterable[StoredRun]) -> pd.DataFrame:
    """A row for each invocation of `runs` that ended."""
    return pd.DataFrame([_invocation(run.row, line) for run in runs for line in run.invocations], columns=INVOCATION)


@cache
def _nothing() -> Tables:
    """The tables of a run without records."""
    return named(no_columns(), "", "")


@cache
def _no_run() -> dict[str, Any]:
    """The row of a run without records, whose keys are the columns of ``rows="runs"``."""
    return row_of(Path(), NOTHING, "", frame_of(_nothing().solutions))


def _typed(frame: pd.DataFrame) -> pd.DataFrame:
    """With the same types whatever is missing."""
    for names, kind in ((INTEGERS, "Int64"), (NUMBERS, "float64"), (WORDS, "str")):
        for name in names:
            if name in frame and (kind == "Int64" or frame[name].dtype == object):
                frame[name] = frame[name].astype(kind)
    return frame


def _runs(results: Path, grader: str) -> Iterator[StoredRun]:
    folders = [path.parent for path in sorted(results.glob("runs/*/*/manifest.json"))]
    if grader != "default":
        folders = [folder for folder in folders if (folder / f"grades-{grader}.jsonl").exists()]
    read_ahead(folders, grader)
    for folder in folders:
        try:
            run = read_run(folder, grader)
        except StoreError as error:
            tell(f"Left out: {error}")
            continue
        for sentence in run.damaged:
            tell(sentence)
        yield run


def _chosen(runs: Sequence[StoredRun], filters: Mapping[str, Any]) -> list[StoredRun]:
    for name in filters.keys() - _no_run().keys():
        raise StoreError(f"Runs have no column {name}; {hint(name, _no_run())}")
    return [run for run in runs if all(_matches(run.row[name], wanted) for name, wanted in filters.items())]


def _matches(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, str) or not isinstance(wanted, Iterable) or isinstance(wanted, Mapping):
        return bool(value == wanted)
    return value in list(wanted)


INVOCATION = [
    *("run_id", "benchmark", "invocation", "engine", "devices", "memo", "host", "cores", "concurrency"),
    *("scheduling", "start", "end", "seconds", "questions", "solutions", "records", "stopped"),
    *(f"run_{name}_{role}" for role in ROLES for name in ("tokens", "seconds")),
]


def _invocation(row: Mapping[str, Any], line: Mapping[str, Any]) -> dict[str, Any]:
    """A line of ``invocations.jsonl`` as a row; without `memo`, older than it, there was none."""
    concurrency = line["solutions"] if line["concurrency"] == "auto" else min(line["concurrency"], line["solutions"])
    told = {
        "run_id": row["run_id"],
        "benchmark": row["benchmark"],
        "engine": line["engine"].get("_target_", "").rpartition(".")[2],
        "devices": line.get("devices", {}),
        "memo": bool(line.get("memo", False)),
        "concurrency": concurrency,
        "start": pd.Timestamp(line["start"]),
        "end": pd.Timestamp(line["end"]),
    }
    totals = line.get("totals") or {}
    ran = {f"run_{name}_{role}": told[name] for role, told in totals.items() for name in ("tokens", "seconds")}
    return {**{name: line[name] for name in INVOCATION if name in line}, **told, **ran}
