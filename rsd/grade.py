"""Grade the records of finished runs again, without decoding; or look at their benchmarks' gold answers::

    python -m rsd.grade results/runs/math500/*                        # with the default grader, into grades.jsonl
    python -m rsd.grade results/runs/math500/* --grader reference     # into grades-reference.jsonl, beside it
    python -m rsd.grade results/runs/math500/* --audit                # which golds can be graded

By the default grader it also writes the run's ``summary.json`` anew.
"""

import argparse
import asyncio
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import orjson
from omegaconf import OmegaConf

from rsd import benchmarks
from rsd.benchmarks.jsonl import data_hash
from rsd.command import CONFIGURATION
from rsd.config import build, locate
from rsd.errors import DataError, RSDError, StoreError
from rsd.grading import Grader, GraderName
from rsd.grading.audit import verdict
from rsd.grading.records import classes_of, grade_record
from rsd.lock import run_lock
from rsd.records import Problem
from rsd.report.summary import write_summary
from rsd.store import GradeRecord, is_error, read_grades, read_manifest, read_records, write_error

FOLDER = Path(CONFIGURATION["config_path"]) / "benchmark"
SHOWN = 60  # characters of a gold answer


def problems_of(folder: Path) -> list[Problem]:
    """The questions of a stored run's benchmark, from where the run read them; where that is gone, as for a run that
    another machine made, from the benchmark of the same name here.

    Raises StoreError when they are others by now than those that the run answered, and DataError when they cannot be
    read.
    """
    manifest = read_manifest(folder)
    try:
        problems: list[Problem] = _benchmark(manifest["config"]["benchmark"], folder).problems()
    except DataError as gone:
        path = FOLDER / f"{manifest['benchmark']}.yaml"
        if path not in FOLDER.glob("*.yaml"):
            raise
        try:
            problems = _benchmark(OmegaConf.to_container(OmegaConf.load(path), resolve=True), folder).problems()
        except DataError:
            raise gone from None
    if data_hash(problems) != manifest["identity"]["benchmark"]["data"]:
        raise StoreError(
            f"{folder} answered other questions than {manifest['benchmark']} holds now; restore the file that "
            "config.benchmark in its manifest.json names."
        )
    return problems


def _benchmark(node: Any, folder: Path) -> Any:
    """The benchmark that a manifest names. A manifest is data, perhaps somebody else's: it starts nothing but one of
    this project's benchmarks."""
    kind = str(node.get("_target_"))
    if kind.startswith(f"{benchmarks.__name__}."):
        found = locate(kind, "benchmark._target_")
        if isinstance(found, type) and found.__module__.startswith(f"{benchmarks.__name__}."):
            return build(node, "benchmark")
    raise StoreError(f"{folder}: its manifest.json names {kind}, which is no benchmark of rsd/benchmarks/.")


async def regrade(folder: Path, problems: Sequence[Problem], grader: Grader) -> list[GradeRecord]:
    """Grade every record of a run anew, with the classes of its answers, in the order of questions and samples."""
    named = {problem.question_id: problem for problem in problems}
    records = [record for _, record in sorted(read_records(folder).items()) if not is_error(record)]
    classes = classes_of(grader, ())
    limited = asyncio.Semaphore(1000)  # responses in memory at once

    async def one(number: int) -> GradeRecord:
        async with limited:
            return await grade_record(grader, classes, named[records[number].question_id], records[number])

    return list(await asyncio.gather(*map(one, range(len(records)))))


def write_grades(folder: Path, grades: Sequence[GradeRecord], grader: GraderName) -> None:
    """Replace a run's grades at once; those of another grader than the default stand in a file of their own.

    Raises StoreError when they cannot be written, or the run is being written by another process.
    """
    path = folder / ("grades.jsonl" if grader == "default" else f"grades-{grader}.jsonl")
    temporary = path.with_name(f".{path.name}")
    try:
        temporary.write_bytes(b"".join(orjson.dumps(grade) + b"\n" for grade in grades))
        temporary.replace(path)
    except OSError as error:
        raise write_error(path, error) from error


def grade_beside(folder: Path, problems: Sequence[Problem], name: GraderName) -> list[GradeRecord]:
    """Grade a run with grader `name` into its file, and return the grades. The caller holds the run's lock."""
    with Grader(workers=os.cpu_count() or 1, name=name) as grader:
        grades = asyncio.run(regrade(folder, problems, grader))
    write_grades(folder, grades, name)
    return grades


def _refresh_summary(folder: Path) -> None:
    """Write a run's summary from its new grades."""
    path = folder / "summary.json"
    delta = orjson.loads(path.read_bytes())["delta"] if path.exists() else None
    manifest = read_manifest(folder)
    write_summary(folder, delta=delta, context=manifest["config"]["prm"]["context"] if manifest.get("prm") else None)


def _line(folder: Path, name: GraderName, before: Mapping[tuple[str, int], GradeRecord], now: list[GradeRecord]) -> str:
    changed = [grade for grade in now if (old := before.get((grade.question_id, grade.sample))) and
               old.correct is not grade.correct]  # fmt: skip
    first = f", first {changed[0].question_id}" if changed else ""
    right = sum(grade.correct for grade in now)
    return f"{folder}: {right} of {len(now)} right by {name}; {len(changed)} verdicts differ from before{first}."


def audit(problems: Sequence[Problem]) -> str:
    """How many gold answers are read and equal themselves, and which are not read or ungradable (rows from 0)."""
    verdicts = [verdict(problem) for problem in problems]
    lines = [", ".join(f"{count} {name}" for name, count in Counter(verdicts).most_common())]
    for number, (problem, found) in enumerate(zip(problems, verdicts, strict=True)):
        if found in ("text", "ungradable"):
            lines.append(f"  {found}: row {number}, {problem.question_id}: {problem.answer[:SHOWN]!r}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Grade or audit; return the exit status, 2 for bad input."""
    parser = argparse.ArgumentParser(prog="python -m rsd.grade", description=__doc__.splitlines()[0])
    parser.add_argument(
        "runs", nargs="+", type=Path, metavar="RUN_FOLDER", help="folder with manifest.json and records"
    )
    parser.add_argument("--grader", choices=get_args(GraderName), default="default", help="default: %(default)s")
    parser.add_argument("--audit", action="store_true", help="show the benchmarks' gold answers instead of grading")
    options = parser.parse_args(arguments)
    try:
        benchmarks: dict[str, list[Problem]] = {}
        for folder in options.runs:
            problems = problems_of(folder)
            if options.audit:
                benchmarks[read_manifest(folder)["benchmark"]] = problems
                continue
            before = read_grades(folder)
            with run_lock(folder):
                now = grade_beside(folder, problems, options.grader)
                if options.grader == "default":
                    _refresh_summary(folder)
            print(_line(folder, options.grader, before, now))
        for name, problems in benchmarks.items():
            print(f"{name}: {audit(problems)}")
    except RSDError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
