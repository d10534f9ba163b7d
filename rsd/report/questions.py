"""Level and subject of a benchmark's questions, where its rows say them.

questions = Questions()
questions.of(Path("results/runs/math500/…"))["4eb56012a1b8"]   # ("5", "Algebra")
"""

from pathlib import Path

import orjson

from rsd.errors import RSDError, StoreError
from rsd.report.cache import tell
from rsd.store import read_manifest, write_json

Told = tuple[str | None, str | None]


class Questions:
    """Reads each benchmark once, by the loader that its runs were made with, and keeps it in the `cache` folder."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._known: dict[str, dict[str, Told]] = {}

    def of(self, folder: Path) -> dict[str, Told]:
        """{question_id: (level, subject)} of the benchmark that the run in `folder` answered, None for what its rows
        do not say; empty, with one line on stderr, where it cannot be loaded."""
        manifest = read_manifest(folder)
        try:
            name = f"{manifest['benchmark']}-{manifest['identity']['benchmark']['data']}.json"
        except KeyError:
            tell(f"{manifest['benchmark']}: no levels and subjects, since manifests do not say which data they are of")
            return {}
        if name not in self._known:
            self._known[name] = self._stored(self._cache / name, folder, manifest["benchmark"])
        return self._known[name]

    def _stored(self, path: Path, folder: Path, benchmark: str) -> dict[str, Told]:
        """From the cache, whose file is named by the questions' hash; else from the benchmark, and into the cache."""
        try:
            return {
                question: (level, subject) for question, (level, subject) in orjson.loads(path.read_bytes()).items()
            }
        except (OSError, ValueError, AttributeError):
            pass
        try:
            told = _read(folder)
        except RSDError as error:
            tell(f"{benchmark}: no levels and subjects, since its questions cannot be read: {error}")
            return {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_json(path, told)
        except (OSError, StoreError) as error:
            tell(f"{benchmark}: its levels and subjects are not stored: {error}")
        return told


def _read(folder: Path) -> dict[str, Told]:
    from rsd.benchmarks.choice import value_of
    from rsd.grade import problems_of  # these take the whole configuration along

    return {
        problem.question_id: (value_of(problem, "level") or None, value_of(problem, "subject") or None)
        for problem in problems_of(folder)
    }
