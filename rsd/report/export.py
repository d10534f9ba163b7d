"""Stored runs as Parquet files, for whatever else reads them (DuckDB, Polars, R)::

    python -m rsd.report.export tables                     # of results/runs, into tables/{runs,solutions,…}.parquet
    python -m rsd.report.export tables --results elsewhere --grader reference

The columns are those of `rsd.report.load`; dictionaries are JSON.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import orjson

from rsd.errors import RSDError, StoreError, described
from rsd.grading import GraderName


def export(results: str | Path, folder: str | Path, grader: str = "default", **filters: Any) -> dict[str, int]:
    """Write a Parquet file for each kind of rows into `folder`, and return how many rows each has.

    `results`, `grader` and `filters` are those of `load`. Raises StoreError where there is no run, or the folder cannot
    be written.
    """
    from rsd.report.frames import Rows, load

    counts = {}
    for rows in get_args(Rows):
        frame = load(results, rows, grader, **filters)
        if rows == "runs" and frame.empty:
            raise StoreError(f"there is no such run below {Path(results) / 'runs'}; python -m rsd.run makes one")
        for name in [name for name in frame if frame[name].dtype == object]:
            frame[name] = frame[name].map(_json).astype("str")
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
            frame.to_parquet(Path(folder) / f"{rows}.parquet", index=False)
        except OSError as error:
            raise StoreError(f"cannot write {folder}/{rows}.parquet: {described(error)}") from error
        counts[rows] = len(frame)
    return counts


def _json(value: Any) -> Any:
    return orjson.dumps(value).decode() if isinstance(value, (dict, list)) else value


def main(arguments: Sequence[str] | None = None) -> int:
    """Export; return the exit status, 2 for bad input."""
    parser = argparse.ArgumentParser(prog="python -m rsd.report.export", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where to write the files")
    parser.add_argument(
        "--results", type=Path, default=Path("results"), help="the folder that holds runs/ (%(default)s)"
    )
    parser.add_argument("--grader", choices=get_args(GraderName), default="default", help="default: %(default)s")
    options = parser.parse_args(arguments)
    try:
        counts = export(options.results, options.folder, options.grader)
    except RSDError as error:
        print(error, file=sys.stderr)
        return 2
    for rows, count in counts.items():
        print(f"{options.folder / rows}.parquet: {count:,} {rows}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
