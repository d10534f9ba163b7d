"""What stands under one benchmark in one row of a table: a stored run's accuracy, or the threshold chosen among several.

cell = cell_of(row, "math500", stored)
cell.accuracy, cell.low, cell.high     # None without a run; shares, not percent
cell.whole                             # whether it enters averages and tests
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd

from rsd.errors import ReportError
from rsd.report.runs import samples_of
from rsd.report.statistics import Samples
from rsd.report.tables.layout import Row
from rsd.report.wanted import Asked, Index

Run = Mapping[str, Any]


@dataclass(frozen=True)
class Stored:
    """The stored runs that tables are made of: `runs` and `solutions` by the default grader, `reference` the runs that
    the reference grader has graded as well. Raises ReportError where two graders' verdicts are mixed."""

    runs: pd.DataFrame
    solutions: pd.DataFrame
    reference: pd.DataFrame

    def __post_init__(self) -> None:
        for frame, grader in ((self.runs, "default"), (self.reference, "reference")):
            others = set(frame["grader"]) - {grader}
            if others:
                raise ReportError(
                    f"Runs graded by {', '.join(sorted(others))} stand among those of the {grader} grader, and one column "
                    f'of a table holds verdicts of one grader only; load them with grader="{grader}".'
                )

    @cached_property
    def index(self) -> Index:
        """The runs by what identifies them."""
        return Index(self.runs)

    @cached_property
    def _rows(self) -> Mapping[tuple[str, str], pd.DataFrame]:
        return dict(tuple(self.solutions.groupby(["benchmark", "run_id"], sort=False)))

    @cached_property
    def _reference(self) -> Mapping[tuple[str, str], Run]:
        return {(row["benchmark"], row["run_id"]): row for row in self.reference.to_dict("records")}

    def samples(self, run: Run) -> Samples:
        """Verdicts on the questions of a run."""
        rows = self._rows[run["benchmark"], run["run_id"]]
        return samples_of(rows[rows["whole"]])

    def by_reference(self, run: Run) -> float | None:
        """The run's accuracy by the reference grader, where it has graded all of its questions."""
        row = self._reference.get((run["benchmark"], run["run_id"]))
        return None if row is None or not row["complete"] else number(row["accuracy"])


@dataclass(frozen=True, kw_only=True)
class Cell:
    """`answered` of `size` questions are; `accuracy` with its 95% interval is None where there is no run. `whole`: all
    questions are answered and graded. `run` tells what it took. `samples` are the verdicts behind the accuracy,
    `verdicts` those that enter the paired test, where it is `tested` at all. `delta`: the threshold that was chosen,
    `spread`: the standard deviation of a cross-fitted accuracy over its seeds; `grid`: of a chosen threshold, how many
    of the runs are whole, and of how many. `reference`: accuracy by the reference grader."""

    answered: int = 0
    size: int | None = None
    whole: bool = False
    accuracy: float | None = None
    low: float | None = None
    high: float | None = None
    run: Run | None = None
    samples: Samples = field(default_factory=dict)
    verdicts: Samples = field(default_factory=dict)
    tested: bool = True
    delta: float | None = None
    spread: float | None = None
    grid: tuple[int, int] | None = None
    reference: float | None = None


def cell_of(run: Run | None, stored: Stored) -> Cell:
    """The cell of one run."""
    if run is None:
        return Cell()
    whole = bool(run["complete"]) and number(run["accuracy"]) is not None
    samples = stored.samples(run) if whole else {}
    return Cell(
        answered=int(run["questions"]),
        size=int(run["size"]),
        whole=whole,
        accuracy=number(run["accuracy"]),
        low=number(run["low"]),
        high=number(run["high"]),
        run=run,
        samples=samples,
        verdicts=samples,
        reference=stored.by_reference(run),
    )


def found(row: Row, benchmark: str, stored: Stored) -> Sequence[Run | None]:
    """The stored runs behind a row's cell, in the order of its runs."""
    return [stored.index.find(Asked(benchmark, words)) for words in row.runs]


def number(value: Any) -> float | None:
    """A value of a frame, None where it is missing."""
    return None if pd.isna(value) else float(value)
