"""Level and subject of a benchmark's questions, where its rows say them.

    told = Questions()
    told.of(Path("results/runs/math500/…"))["4eb56012a1b8"]   # ("5", "Algebra")
"""

import sys
from pathlib import Path

from rsd.errors import RSDError
from rsd.store import read_manifest

Told = tuple[str | None, str | None]
FIELDS = {"level": ("level",), "subject": ("subject", "type", "subfield", "data_topic")}  # where rows say it


class Questions:
    """Reads each benchmark once, by the loader that its runs were made with."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], dict[str, Told]] = {}

    def of(self, folder: Path) -> dict[str, Told]:
        """{question_id: (level, subject)} of the benchmark that the run in `folder` answered, None for what its rows
        do not say; empty, with one line on stderr, where it cannot be loaded."""
        manifest = read_manifest(folder)
        data = manifest["identity"].get("benchmark", {}).get("data", str(folder))
        key = manifest["benchmark"], data
        if key not in self._known:
            self._known[key] = self._read(folder, manifest["benchmark"])
        return self._known[key]

    def _read(self, folder: Path, benchmark: str) -> dict[str, Told]:
        from rsd.grade import problems_of  # takes the configuration along

        try:
            problems = problems_of(folder)
        except (RSDError, KeyError) as error:
            print(f"{benchmark}: no levels and subjects, since its questions cannot be read: {error}", file=sys.stderr)
            return {}
        return {
            problem.question_id: (_value(problem.row, "level"), _value(problem.row, "subject")) for problem in problems
        }


def _value(row: object, key: str) -> str | None:
    assert isinstance(row, dict)
    found = next((row[name] for name in FIELDS[key] if row.get(name) is not None), None)
    return None if found is None else str(found)
