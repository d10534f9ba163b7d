"""Rows of a benchmark, from a local file or the hub, each with the place where it stands::

for place, row in file_rows("my.jsonl"): …
for place, row in hub_rows(Hub("openai/gsm8k", "main", "test"), name="gsm8k"): …
"""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rsd.errors import DataError

Row = tuple[str, Any]
ENDINGS = (".jsonl", ".json", ".parquet", ".csv")


@dataclass(frozen=True, slots=True)
class Hub:
    """A data set of the hub: `configs` are joined in order; `file` names one file of it to read, without its script."""

    id: str
    split: str
    configs: tuple[str, ...] | None = None
    revision: str | None = None
    file: str | None = None


def file_rows(path: str) -> Iterator[Row]:
    """The rows of a ``.jsonl``, ``.json`` (a list of objects), ``.parquet`` or ``.csv`` file; any other ending is read
    as JSON lines.

    Raises DataError that names the file, and the line where there is one.
    """
    place = f"of {path}"
    try:
        match Path(path).suffix.lower():
            case ".csv":
                with Path(path).open(encoding="utf-8-sig", newline="") as file:
                    yield from (
                        (f"benchmark.path: row {n} {place}", row) for n, row in enumerate(csv.DictReader(file), 1)
                    )
            case ".json":
                rows = json.loads(Path(path).read_text(encoding="utf-8-sig"))
                if not isinstance(rows, list):
                    raise DataError(f"benchmark.path: {path} is not a JSON list of objects; use .jsonl for JSON lines.")
                yield from ((f"benchmark.path: row {n} {place}", row) for n, row in enumerate(rows, 1))
            case ".parquet":
                yield from _parquet(path)
            case _:
                yield from _json_lines(path)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"benchmark.path: cannot read {path}: {error}") from error
    except json.JSONDecodeError as error:
        raise DataError(f"benchmark.path: {path} is not JSON ({error}).") from error


def _json_lines(path: str) -> Iterator[Row]:
    for number, line in enumerate(Path(path).read_text(encoding="utf-8-sig").split("\n"), 1):
        if line.strip():
            place = f"benchmark.path: line {number} of {path}"
            try:
                yield place, json.loads(line)
            except ValueError as error:
                raise DataError(f"{place} is not JSON ({error}).") from error


def _parquet(path: str) -> Iterator[Row]:
    import pyarrow.parquet  # comes with datasets
    from pyarrow import ArrowInvalid

    try:
        rows = pyarrow.parquet.read_table(path).to_pylist()
    except ArrowInvalid as error:
        raise DataError(f"benchmark.path: {path} is not a Parquet file ({error}).") from error
    yield from ((f"benchmark.path: row {number} of {path}", row) for number, row in enumerate(rows, 1))


def hub_rows(hub: Hub, name: str) -> Iterator[Row]:
    """The rows of a data set of the hub, or of its cache. Raises DataError when neither has it."""
    number = 0
    for config in hub.configs or (None,):
        for row in load(hub, config, name):
            yield f"benchmark={name}: row {number} of {hub.id}", dict(row)
            number += 1


def load(hub: Hub, config: str | None, name: str) -> Any:
    """One configuration of a data set as `datasets` gives it. Raises DataError when it cannot be had."""
    from datasets import load_dataset  # takes a second to import
    from datasets.utils.logging import disable_progress_bar

    disable_progress_bar()
    try:
        if hub.file is not None:
            address = f"hf://datasets/{hub.id}{f'@{hub.revision}' if hub.revision else ''}/{hub.file}"
            return load_dataset("json", data_files=address, split="train")
        return load_dataset(hub.id, config, split=hub.split, revision=hub.revision)
    except Exception as error:  # of many kinds: each library below raises its own
        cause = " ".join(str(error).split())[:300]
        gated = " (the data set is gated: ask for access on its page and log in with hf auth login)"
        raise DataError(
            f"benchmark={name}: cannot load {hub.id} from the hub ({cause})"
            f"{gated if 'gated' in cause.lower() else ''}; name a local file with "
            f"benchmark.path=FILE, or run python -m rsd.fetch benchmark={name} where there is a network."
        ) from error
