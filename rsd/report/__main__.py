"""Write every table and figure of the paper from the runs that are stored, without a model, in seconds.

    python -m rsd.report                              # results/runs/ into results/tables/ and results/figures/
    python -m rsd.report --results /scratch/results --preset tiny
    python -m rsd.report seed=1                       # of runs with another seed, limit or model, as they were run

``results/tables/`` holds the paper's layout, ``results/tables/tiny/`` that of the tiny family, and so for every preset.
What is missing is left empty; the runs that would fill it are listed with their commands. ``results/index.html`` is the
page to look at all of it, and at each run's questions.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rsd.errors import ReportError, RSDError

if TYPE_CHECKING:
    from rsd.report.tables.cells import Stored


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the reports; return the exit status, 2 where there is nothing to report."""
    parser = argparse.ArgumentParser(prog="python -m rsd.report", description=__doc__.splitlines()[0])
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="settings that the runs were made with")
    parser.add_argument("--preset", action="append", metavar="NAME", help="only of this preset; default: of all")
    parser.add_argument("--results", type=Path, default=Path("results"), metavar="FOLDER", help="default: %(default)s")
    parser.add_argument("--part", action="store_true", help=argparse.SUPPRESS)  # of a report that writes the pages
    options = parser.parse_args(arguments)
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # levels of questions come from benchmarks that are here, or from none
    try:
        for line in report(options.results, options.overrides, options.preset, pages=not options.part):
            print(line)
    except RSDError as error:
        print(error, file=sys.stderr)
        return error.status
    return 0


def report(
    results: Path, overrides: Sequence[str] = (), chosen: Sequence[str] | None = None, pages: bool = True
) -> list[str]:
    """Write tables and figures below `results`, of the presets `chosen` or all, and the `pages` of everything; return
    what to tell: what was written, and what is missing.

    Where runs are deleted meanwhile, it begins anew without them. Raises ReportError where there is no run or no such
    preset, before anything is written.
    """
    from rsd.report.cache import tell
    from rsd.report.tables.cells import Stored

    while True:
        stored = Stored.read(results)
        try:
            return _reported(stored, results, overrides, chosen, pages)
        except (RSDError, OSError, LookupError):
            gone = [folder for folder in stored.runs["folder"] if not Path(folder, "manifest.json").exists()]
            if not gone:
                raise
            for folder in gone:
                tell(f"Left out: {folder} was deleted while the report was written, which begins anew without it.")


def _reported(
    stored: "Stored", results: Path, overrides: Sequence[str], chosen: Sequence[str] | None, pages: bool
) -> list[str]:
    from rsd.report.cache import is_much
    from rsd.report.wanted import presets
    from rsd.sweep.compose import configuration

    with configuration():
        known = presets()
        for preset in set(chosen or ()) - set(known):
            raise ReportError(f"--preset {preset}: there are {', '.join(known)}.")
        if overrides:
            _check(overrides)
        first, *others = dict.fromkeys(chosen or known)
        with ExitStack() as stack:
            elsewhere = [
                stack.enter_context(_started("rsd.report", *_of_part(results, preset), *overrides)) for preset in others
            ]
            beside = pages and is_much(map(Path, stored.runs["folder"]))
            if beside:
                elsewhere.append(stack.enter_context(_started("rsd.report.pages.write", str(results))))
            lines = _write(stored, results, overrides, first)
            for process in elsewhere:
                output, error = process.communicate()
                if process.returncode:
                    raise ReportError(error.strip())
                lines += output.splitlines()
        if pages:
            from rsd.report.pages.write import write_index, write_traces

            if not beside:
                write_traces(results, stored.runs)
            index = write_index(results, stored.runs, known)
            lines.append(f"{index} shows all of it, and what each run did with every question.")
    return lines


def _check(overrides: Sequence[str]) -> None:
    """Raises ReportError or ConfigError where a word is no setting of a run, before anything is written."""
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    from rsd.command import sentence
    from rsd.report.wanted import composed, ordered

    for word in overrides:
        if word.startswith("preset="):
            raise ReportError(f"{word}: a report is told its preset as --preset {word.partition('=')[2]}.")
    try:
        for override in OverridesParser.create().parse_overrides(list(overrides)):
            if override.is_sweep_override():
                raise ReportError(f"{override.input_line}: a report is of one value of each setting.")
        composed(ordered(overrides))
    except (HydraException, OmegaConfBaseException) as error:
        raise ReportError(sentence(error)) from error


def _write(stored: "Stored", results: Path, overrides: Sequence[str], preset: str) -> list[str]:
    from rsd.report import load
    from rsd.report.figures import write_all
    from rsd.report.missing import lacking
    from rsd.report.pages.write import write_part
    from rsd.report.tables.layout import PAPER
    from rsd.report.tables.write import write_tables

    part = "" if preset == PAPER else preset  # the paper's stand at the top
    tables, files = write_tables(stored, preset, overrides, results / "tables" / part)
    figures = write_all(partial(load, results), results / "figures" / part, preset, overrides)
    told = list(lacking(preset, stored.index, overrides, results))
    write_part(results, preset, tables, figures, told)
    written = (
        f"preset={preset}: {len(files)} files in {results / 'tables' / part}, {len(figures)} in "
        f"{results / 'figures' / part}."
    )
    return [written, *told]


def _of_part(results: Path, preset: str) -> list[str]:
    return ["--results", str(results), "--preset", preset, "--part"]


def _started(*command: str) -> subprocess.Popen[str]:
    """A process that writes a part of the report: drawing, and traces, are most of the time, and keep a core busy."""
    return subprocess.Popen([sys.executable, "-m", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


if __name__ == "__main__":
    sys.exit(main())
