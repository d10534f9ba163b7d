"""Run folders read once: their tables lie in ``<results>/cache/`` until a file of theirs changes.

    run = read_run(Path("results/runs/math500/target-alone-…"), "default")
    run.row["accuracy"], run.solutions(), run.proposals()

An entry belongs to the sizes and times of change of the run's files and to `VERSION`; delete the folder whenever you
like.
"""

import secrets
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from rsd.errors import StoreError
from rsd.report.columns import Tables, read_columns
from rsd.report.runs import described, facts_of, totals
from rsd.store import line_files, read_grades, read_lines, read_manifest

if TYPE_CHECKING:
    import pandas as pd

VERSION = 3  # of what is stored; any change of the columns' meaning is a new one
TABLES = ("solutions", "proposals")
METADATA = b"rsd"


@dataclass(frozen=True)
class StoredRun:
    """A run as the cache has it. `row`: its values, `damaged`: sentences about lines that could not be read,
    `invocations`: those that ended."""

    folder: Path
    row: Mapping[str, Any]
    damaged: tuple[str, ...]
    invocations: tuple[Mapping[str, Any], ...]
    read: Callable[[str], pa.Table]

    @cached_property
    def solutions(self) -> pa.Table:
        """One row a solution."""
        return self.read("solutions")

    @cached_property
    def proposals(self) -> pa.Table:
        """One row a proposal."""
        return self.read("proposals")


def read_run(folder: Path, grader: str = "default") -> StoredRun:
    """The run in `folder` with the verdicts of `grader`, from the cache where it is there and up to date.

    Raises StoreError when the folder is no run's.
    """
    manifest = read_manifest(folder)
    key = [VERSION, _state(folder, grader)]
    place = _place(folder, grader)
    entry = _entry(place, key) if place is not None else None
    if place is not None and entry is not None:
        told = tuple(entry["damaged"]), tuple(entry["invocations"])
        return StoredRun(folder, entry["row"], *told, lambda name: pq.read_table(_path(place, name)))
    tables, damaged, invocations = _tables(folder, manifest, grader)
    row = row_of(folder, manifest, grader, tables.solutions.to_pandas())
    if place is not None:
        _write(place, tables, {"key": key, "row": row, "damaged": damaged, "invocations": invocations})
    return StoredRun(folder, row, tuple(damaged), tuple(invocations), lambda name: getattr(tables, name))


@cache
def tell(sentence: str) -> None:
    """Say something on stderr, once in a process."""
    print(sentence, file=sys.stderr)


def row_of(folder: Path, manifest: Mapping[str, Any], grader: str, solutions: "pd.DataFrame") -> dict[str, Any]:
    """A row of ``load(rows="runs")``."""
    values = totals(solutions, size=manifest["benchmark_size"])
    return {**described(folder, manifest), "grader": grader, **values}


def named(tables: Tables, run_id: str, benchmark: str) -> Tables:
    """The tables of a run with its name in front."""

    def front(table: pa.Table) -> pa.Table:
        named = table.add_column(0, "benchmark", pa.repeat(benchmark, len(table)))
        return named.add_column(0, "run_id", pa.repeat(run_id, len(table)))

    return Tables(front(tables.solutions), front(tables.proposals))


def _tables(
    folder: Path, manifest: Mapping[str, Any], grader: str
) -> tuple[Tables, list[str], list[Mapping[str, Any]]]:
    """The run's tables, what is damaged, and its invocations that ended."""
    damaged: list[str] = []

    def told(error: StoreError) -> None:
        damaged.append(str(error))

    tables = read_columns(
        folder,
        read_grades(folder, None if grader == "default" else grader, told),
        facts_of(manifest),
        told,
    )
    lines = read_lines(folder, "invocations", orjson.loads, told)
    return (
        named(tables, folder.name, manifest["benchmark"]),
        damaged,
        [line for line in lines if isinstance(line, dict) and "end" in line],
    )


def _state(folder: Path, grader: str) -> list[list[Any]]:
    """Name, size and time of change of each file that the tables are made from."""
    grades = "grades" if grader == "default" else f"grades-{grader}"
    names = [path for name in ("records", grades, "invocations") for path in line_files(folder, name)]
    told = [(path.name, path.stat()) for path in (folder / "manifest.json", *names)]
    return [[name, stat.st_size, stat.st_mtime_ns] for name, stat in told]


def _place(folder: Path, grader: str) -> Path | None:
    """Where the entry lies, without an ending; None for a folder that is not ``<results>/runs/<benchmark>/<run>``."""
    folder = folder.resolve()
    if folder.parents[1].name != "runs":
        return None
    return folder.parents[2] / "cache" / folder.parent.name / f"{folder.name}.{grader}"


def _path(place: Path, name: str) -> Path:
    return place.with_name(f"{place.name}.{name}.parquet")


def _entry(place: Path, key: list[Any]) -> dict[str, Any] | None:
    """What is stored beside the tables, in the metadata of each; None where one is missing, broken or out of date."""
    try:
        entries = [orjson.loads(pq.read_schema(_path(place, name)).metadata[METADATA]) for name in TABLES]
    except (OSError, pa.ArrowInvalid, KeyError, TypeError, orjson.JSONDecodeError):
        return None
    entry: dict[str, Any] = entries[0]
    return entry if all(other["key"] == key for other in entries) else None


def _write(place: Path, tables: Tables, entry: Mapping[str, Any]) -> None:
    """Store the tables; where the disk refuses, everything works without, only slower."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        for name in TABLES:
            path = _path(place, name)
            temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
            try:
                pq.write_table(
                    getattr(tables, name).replace_schema_metadata({METADATA: orjson.dumps(entry)}), temporary
                )
                temporary.replace(path)
            finally:
                temporary.unlink(missing_ok=True)
    except OSError as error:
        tell(f"{place.parents[1]}: cannot store the tables ({error}); the next report reads the records again.")
