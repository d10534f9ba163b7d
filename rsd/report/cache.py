"""Run folders read once: their tables lie in ``<results>/cache/`` until a file of theirs changes.

    run = read_run(Path("results/runs/math500/target-alone-…"), "default")
    run.row["accuracy"], run.solutions(), run.proposals()

An entry belongs to the sizes and times of change of the run's files and to `VERSION`; delete the folder whenever you
like.
"""

import os
import secrets
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
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

VERSION = 4  # of what is stored; any change of the columns' meaning is a new one
TABLES = ("solutions", "proposals")
METADATA = b"rsd"
MUCH = 64 * 2**20  # bytes of records that several processes share
MOST_PROCESSES = 4  # which take half a GiB each


@dataclass(frozen=True)
class StoredRun:
    """A run as the cache has it. `key`: the state of its files, `row`: its values, `damaged`: sentences about lines
    that could not be read, `invocations`: those that ended, `source`: its tables, or their files, and `written`, the
    state of these."""

    folder: Path
    key: list[Any]
    row: Mapping[str, Any]
    damaged: list[str]
    invocations: list[Mapping[str, Any]]
    source: Tables | Mapping[str, Path]
    written: list[Any]

    @property
    def solutions(self) -> pa.Table:
        """One row a solution."""
        return self._table("solutions")

    @property
    def proposals(self) -> pa.Table:
        """One row a proposal."""
        return self._table("proposals")

    @property
    def there(self) -> bool:
        """Whether its tables can still be had: somebody may have deleted the cache, or written it anew."""
        return isinstance(self.source, Tables) or _state(self.source.values()) == self.written

    def _table(self, name: str) -> pa.Table:
        return getattr(self.source, name) if isinstance(self.source, Tables) else pq.read_table(self.source[name])


_known: dict[tuple[Path, str], StoredRun] = {}  # what this process has read


def read_run(folder: Path, grader: str = "default") -> StoredRun:
    """The run in `folder` with the verdicts of `grader`, from the cache where it is there and up to date.

    Raises StoreError when the folder is no run's.
    """
    run, key = _stored(folder, grader)
    if run is None:
        manifest = read_manifest(folder)
        tables, damaged, invocations = _tables(folder, manifest, grader)
        row = row_of(folder, manifest, grader, tables.solutions.to_pandas())
        files = _files(folder, grader)
        source = files if _write(files, tables, key, (row, damaged, invocations)) else tables
        run = StoredRun(folder, key, row, damaged, invocations, source, _state(files.values()))
    _known[folder, grader] = run
    return run


def _stored(folder: Path, grader: str) -> tuple[StoredRun | None, list[Any]]:
    """The run where this process or the cache has it as its files are now; and the state of these."""
    key, run = _key(folder, grader), _known.get((folder, grader))
    if run is not None and run.key == key and run.there:
        return run, key
    files = _files(folder, grader)
    told = _told(files, key)
    return (StoredRun(folder, key, *told, files, _state(files.values())) if told else None), key


def read_ahead(folders: Collection[Path], grader: str) -> None:
    """Fill the cache by several processes where much is to be read; `read_run` finds what they leave behind.

    They are commands of their own, since a forked process would inherit Arrow's threads, and a spawned one would run
    the user's script again.
    """
    if not is_much(folders):
        return
    lacking = [folder for folder in sorted(folders, key=_size, reverse=True) if not _stored(folder, grader)[0]]
    processes = min(len(os.sched_getaffinity(0)), MOST_PROCESSES, len(lacking))
    if processes > 1 and is_much(lacking):
        command = [sys.executable, "-m", "rsd.report.cache", grader]
        parts = [lacking[i::processes] for i in range(processes)]
        running = [subprocess.Popen([*command, *map(str, part)], stderr=subprocess.DEVNULL) for part in parts]
        for process in running:
            process.wait()


def is_much(folders: Iterable[Path]) -> bool:
    """Whether the records of these runs are worth another process."""
    return sum(map(_size, folders)) > MUCH


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in line_files(folder, "records"))


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


def _key(folder: Path, grader: str) -> list[Any]:
    """What an entry belongs to: the files that the tables are made from."""
    grades = "grades" if grader == "default" else f"grades-{grader}"
    lines = [path for name in ("records", grades, "invocations") for path in line_files(folder, name)]
    return [VERSION, _state([folder / "manifest.json", *lines])]


def _state(paths: Iterable[Path]) -> list[list[Any]]:
    """Name, size and time of change of each file that is there."""
    told = [(path.name, path.stat()) for path in paths if path.exists()]
    return [[name, stat.st_size, stat.st_mtime_ns] for name, stat in told]


def _files(folder: Path, grader: str) -> dict[str, Path]:
    """Where the tables lie; nowhere for a folder that is not ``<results>/runs/<benchmark>/<run>``."""
    folder = folder.resolve()
    if folder.parents[1].name != "runs":
        return {}
    place = folder.parents[2] / "cache" / folder.parent.name
    return {name: place / f"{folder.name}.{grader}.{name}.parquet" for name in TABLES}


def _told(files: Mapping[str, Path], key: list[Any]) -> tuple[Any, Any, Any] | None:
    """Row, damaged lines and invocations, stored in the metadata of each table beside its key; None where one of the
    tables is missing, broken or out of date."""
    try:
        entries = [orjson.loads(pq.read_schema(path).metadata[METADATA]) for path in files.values()]
    except (OSError, pa.ArrowInvalid, KeyError, TypeError, orjson.JSONDecodeError):
        return None
    if not entries or any(entry["key"] != key for entry in entries):
        return None
    row, damaged, invocations = entries[0]["told"]
    return row, damaged, invocations


def _write(files: Mapping[str, Path], tables: Tables, key: list[Any], told: Sequence[Any]) -> bool:
    """Store the tables, and return whether they are; where the disk refuses, everything works without, only slower."""
    entry = {METADATA: orjson.dumps({"key": key, "told": told})}
    for name, path in files.items():
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                pq.write_table(getattr(tables, name).replace_schema_metadata(entry), temporary)
                temporary.replace(path)
            finally:
                temporary.unlink(missing_ok=True)
        except OSError as error:
            tell(f"{path.parents[1]}: cannot store tables ({error}); the next report reads the records again.")
            return False
    return bool(files)


def main(grader: str, *folders: str) -> None:
    """Read runs for `read_ahead`; what is wrong with them, it will find by itself."""
    for folder in folders:
        with suppress(StoreError):
            read_run(Path(folder), grader)


if __name__ == "__main__":
    main(*sys.argv[1:])
