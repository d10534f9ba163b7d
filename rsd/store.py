"""The append-only files of one run folder: written so that a kill or a full disk costs at most a line.

A run folder holds ``records.jsonl``, ``grades.jsonl``, ``invocations.jsonl``, ``manifest.json`` and
``summary.json``; a shard `i` writes ``records-i.jsonl``, and readers take the union, also of files packed by gzip
(``records.jsonl.gz``)::

    with JsonLines(create_folder(folder) / "records.jsonl") as records:
        records.append(dump(record))
    done = read_records(folder)
"""

import errno
import gzip
import logging
import mmap
import os
import re
import secrets
import tempfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

import orjson

from rsd.errors import StoreError
from rsd.records import SCHEMA, Record, load

logger = logging.getLogger(__name__)

MANIFEST_KEYS = {"name", "benchmark", "benchmark_size", "identity", "shapes"}  # what readers of runs rely on
PACKED = ".gz"  # of files of lines that are kept, and only read
Key = tuple[str, int]  # question_id, sample
Line = TypeVar("Line")

# What is wrong, and what to do about it.
FAULTS = {
    errno.ENOSPC: ("the disk is full", "free some space"),
    errno.EDQUOT: ("the disk quota is used up", "free some space"),
    errno.EFBIG: ("the limit on the size of files is reached", "raise it (`ulimit -f`)"),
    errno.EROFS: ("the file system is read-only", "make it writable"),
    errno.EACCES: ("permission is denied", "make it writable"),
    errno.EPERM: ("permission is denied", "make it writable"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeRecord:
    """The verdict on one sample of one question: a line of ``grades.jsonl``. Equal answers to a question have the same
    `answer_class`, None where there is no answer (or the grade is older than classes)."""

    question_id: str
    sample: int
    correct: bool
    extracted: str | None
    reason: str | None
    answer_class: int | None = None


def write_error(path: Path, error: OSError) -> StoreError:
    """Say in one sentence why `path` cannot be written and how to go on."""
    fault, mend = _fault(error)
    return StoreError(
        f"cannot write {path}: {fault}; {mend} and run the same command again: everything up to here is kept"
    )


def create_folder(folder: Path) -> Path:
    """Create a run folder with its parents and return it.

    Raises StoreError when it cannot be created or nothing can be written into it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):  # a folder that exists may still refuse files
            return folder
    except OSError as error:
        raise StoreError(
            f"cannot write into {folder}: {_fault(error)[0]}; set results_dir to a folder that can be written"
        ) from error


class JsonLines:
    """A file of JSON lines, open for append by one process; a torn last line is dropped on opening.

    Raises StoreError, here and in `append`, when the file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._torn_at: int | None = None  # where half a line starts that could not be cut off
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
            self._drop_torn_line()
        except OSError as error:
            raise write_error(path, error) from error

    def append(self, data: bytes) -> None:
        """Hand one line of JSON, given without its newline, to the system: wholly or not at all.

        From then on it outlives this process, however that ends. It is not forced onto the disk, which
        would cost milliseconds a line and guard only against the machine itself going down.
        """
        try:
            if self._torn_at is not None:
                self._cut(self._torn_at)
            end = os.fstat(self._descriptor).st_size
            try:
                rest = memoryview(data + b"\n")
                while rest:  # a disk that fills up takes part of a line before it refuses
                    rest = rest[os.write(self._descriptor, rest) :]
            except BaseException:
                self._torn_at = end
                with suppress(OSError):  # the next append or the next opening cuts it off
                    self._cut(end)
                raise
        except OSError as error:
            raise write_error(self.path, error) from error

    def close(self) -> None:
        """Close the file. Raises StoreError where a network file system reports a failed write only now."""
        try:
            os.close(self._descriptor)
        except OSError as error:
            raise write_error(self.path, error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _cut(self, end: int) -> None:
        os.ftruncate(self._descriptor, end)
        self._torn_at = None

    def _drop_torn_line(self) -> None:
        size = os.fstat(self._descriptor).st_size
        if size == 0:  # nothing to map
            return
        with mmap.mmap(self._descriptor, size, access=mmap.ACCESS_READ) as content:
            start = content.rfind(b"\n", 0, size - 1) + 1
            torn = _is_torn(content[start:])
        if torn:
            logger.warning("%s: dropped its torn last line of %d bytes", self.path, size - start)
            self._cut(start)


def read_records(folder: Path) -> dict[Key, Record]:
    """Read the records of a run, those of its shards included; a record replaces one that is an error.

    Raises StoreError when a line other than a torn last one is broken.
    """
    records: dict[Key, Record] = {}
    for record in read_lines(folder, "records", load):
        if record.key not in records or is_error(records[record.key]):
            records[record.key] = record
    return records


@dataclass(slots=True)
class Attempts:
    """What became of one sample of one question: whether it is `answered`, and the `failures` over all invocations."""

    answered: bool = False
    failures: int = 0


def read_attempts(folder: Path) -> dict[Key, Attempts]:
    """Of each sample that a run has begun, how far it is: much quicker than to read its records.

    Raises StoreError when a line other than a torn last one is broken.
    """
    attempts: defaultdict[Key, Attempts] = defaultdict(Attempts)
    for key, failed in read_lines(folder, "records", _load_attempt):
        attempts[key].answered |= not failed
        attempts[key].failures += failed
    return attempts


def is_error(record: Record) -> bool:
    """Whether decoding failed, so that a later record takes the place of this one."""
    return record.error is not None or record.end_reason == "error"


def read_grades(
    folder: Path, grader: str | None = None, damaged: Callable[[StoreError], None] | None = None
) -> dict[Key, GradeRecord]:
    """Read the grades by the default grader, or by another from ``grades-<grader>.jsonl``; the last one counts.

    A line other than a torn last one that is broken is told to `damaged`, and raises StoreError where there is none.
    """
    name = "grades" if grader is None else f"grades-{grader}"
    return {(grade.question_id, grade.sample): grade for grade in read_lines(folder, name, _load_grade, damaged)}


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read what a run is from its ``manifest.json``. Raises StoreError when there is none, or it is broken."""
    path = folder / "manifest.json"
    try:
        manifest = orjson.loads(path.read_bytes())
    except OSError as error:
        raise StoreError(f"{folder} is not a run folder: cannot read {path.name} ({error.strerror})") from error
    except orjson.JSONDecodeError as error:
        raise StoreError(f"{path} is not the manifest of a run: {error}") from error
    if not isinstance(manifest, dict) or not manifest.keys() >= MANIFEST_KEYS:
        raise StoreError(f"{path} is not the manifest of a run: it needs the keys {', '.join(sorted(MANIFEST_KEYS))}")
    return manifest


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file, as `write_file`."""
    write_file(path, orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def write_file(path: Path, content: bytes) -> None:
    """Write a file at once: whoever reads it sees the old content or the new.

    Raises StoreError when it cannot be written; the old content then stands.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        try:
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())  # else a crash could leave the new name without its content
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise write_error(path, error) from error


def _fault(error: OSError) -> tuple[str, str]:
    return FAULTS.get(error.errno or 0, (error.strerror or str(error), "mend that"))


def _load_attempt(line: bytes) -> tuple[Key, bool]:
    data = orjson.loads(line)
    try:
        if data["schema"] != SCHEMA:
            raise ValueError(f"not a record of schema {SCHEMA}")
        return (data["question_id"], data["sample"]), data["error"] is not None or data["end_reason"] == "error"
    except (TypeError, KeyError) as error:
        raise ValueError(f"not a record: {error}") from error


def _load_grade(line: bytes) -> GradeRecord:
    try:
        return GradeRecord(**orjson.loads(line))
    except TypeError as error:
        raise ValueError(f"not a grade: {error}") from error


def read_lines(
    folder: Path,
    name: str,
    load_line: Callable[[bytes], Line],
    damaged: Callable[[StoreError], None] | None = None,
) -> Iterator[Line]:
    """Read ``<name>.jsonl`` and the ``<name>-i.jsonl`` of shards, line by line, without torn last lines.

    A broken line is told to `damaged` and passed over; where there is none to tell, it raises StoreError.
    """
    for path in line_files(folder, name):
        for number, line in _whole_lines(path):
            try:
                yield load_line(line)
            except ValueError as error:
                mend = "delete that line and run the same command again: only what it held is done anew"
                fault = StoreError(f"{path}, line {number} is broken ({error}); {mend}")
                if damaged is None:
                    raise fault from error
                damaged(fault)


def line_files(folder: Path, name: str) -> list[Path]:
    """``<name>.jsonl`` and the ``<name>-i.jsonl`` of shards that a run folder holds, after those packed by gzip."""
    pattern = re.compile(re.escape(name) + r"(-\d+)?\.jsonl(\.gz)?")
    found = [path for path in folder.glob("*.jsonl*") if pattern.fullmatch(path.name)]
    return sorted(found, key=lambda path: (path.suffix != PACKED, path))


def _whole_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with gzip.open(path) if path.suffix == PACKED else path.open("rb") as file:
            number, line = 1, file.readline()
            while line:
                following = file.readline()
                if following or not _is_torn(line):
                    yield number, line
                number, line = number + 1, following
    except (OSError, EOFError, zlib.error) as error:
        fault = getattr(error, "strerror", None) or error
        raise StoreError(f"cannot read {path}: {fault}; mend that and run the same command again") from error


def _is_torn(line: bytes) -> bool:
    if not line.endswith(b"\n"):
        return True
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return True
    return False
