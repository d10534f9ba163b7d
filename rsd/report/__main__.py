"""Write every table and figure of the paper from the runs that are stored, without a model, in seconds.

    python -m rsd.report                              # results/runs/ into results/tables/ and results/figures/
    python -m rsd.report --results /scratch/results --preset tiny
    python -m rsd.report seed=1                       # of runs with another seed, limit or model, as they were run

``results/tables/`` holds the paper's layout, ``results/tables/tiny/`` that of the tiny family, and so for every preset.
What is missing is left empty; the runs that would fill it are listed with their commands.
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
    options = parser.parse_args(arguments)
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # levels of questions come from benchmarks that are here, or from none
    try:
        for line in report(options.results, options.overrides, options.preset):
            print(line)
    except RSDError as error:
        print(error, file=sys.stderr)
        return error.status
    return 0


def report(results: Path, overrides: Sequence[str] = (), chosen: Sequence[str] | None = None) -> list[str]:
    """Write tables and figures below `results`, of the presets `chosen` or all; return what to tell: what was written,
    and what is missing.

    Raises ReportError where there is no run or no such preset, before anything is written.
    """
    from rsd.report.tables.cells import Stored
    from rsd.report.wanted import configuration, presets

    stored = Stored.read(results)
    with configuration():
        known = presets()
        for preset in set(chosen or ()) - set(known):
            raise ReportError(f"--preset {preset}: there are {', '.join(known)}.")
        first, *others = chosen or known
        with ExitStack() as stack:
            elsewhere = [stack.enter_context(_started(results, overrides, preset)) for preset in others]
            lines = _write(stored, results, overrides, first)
            for process in elsewhere:
                output, error = process.communicate()
                if process.returncode:
                    raise ReportError(error.strip())
                lines += output.splitlines()
    return lines


def _write(stored: "Stored", results: Path, overrides: Sequence[str], preset: str) -> list[str]:
    from rsd.report import load
    from rsd.report.figures import write_all
    from rsd.report.missing import lacking
    from rsd.report.tables.layout import PAPER
    from rsd.report.tables.write import write_tables

    part = "" if preset == PAPER else preset  # the paper's stand at the top
    tables = write_tables(stored, preset, overrides, results / "tables" / part)
    figures = write_all(partial(load, results), results / "figures" / part, preset, overrides)
    written = (
        f"preset={preset}: {len(tables)} files in {results / 'tables' / part}, {len(figures)} in "
        f"{results / 'figures' / part}."
    )
    return [written, *lacking(preset, stored.index, overrides, results)]


def _started(results: Path, overrides: Sequence[str], preset: str) -> subprocess.Popen[str]:
    """A process that writes the reports of one preset: drawing is most of the time, and keeps one core busy."""
    command = [sys.executable, "-m", "rsd.report", "--results", str(results), "--preset", preset, *overrides]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


if __name__ == "__main__":
    sys.exit(main())
