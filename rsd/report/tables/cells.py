"""What stands under one benchmark in one row of a table: a run's accuracy, or that of a threshold chosen among several.

cell = cell_of(stored.index.find(run), stored)
cell.accuracy, cell.low, cell.high     # shares, not percent; None without a run
cell.whole                             # whether it enters averages and tests
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import pandas as pd

from rsd.errors import ReportError, StoreError
from rsd.report.frames import load
from rsd.report.runs import samples_of
from rsd.report.statistics import Samples, bootstrap
from rsd.report.threshold import delta_star
from rsd.report.wanted import Index

Run = Mapping[str, Any]


@dataclass(frozen=True)
class Stored:
    """The stored runs that tables are made of: `runs` and `solutions` by the default grader, `reference` the runs that
    the reference grader has graded as well. Raises ReportError where two graders' verdicts are mixed."""

    runs: pd.DataFrame
    solutions: pd.DataFrame
    reference: pd.DataFrame

    @classmethod
    def read(cls, results: Path) -> Self:
        """All runs below ``<results>/runs/``. Raises ReportError where there is none."""
        runs = load(results)
        if runs.empty:
            raise ReportError(
                f"There are no runs in {results / 'runs'}, so nothing is written. Begin with python -m rsd.run -m "
                "+experiment=table2 (the tiny family), or name another folder with --results."
            )
        return cls(runs, load(results, rows="solutions", levels=False), load(results, grader="reference"))

    def __post_init__(self) -> None:
        for frame, grader in ((self.runs, "default"), (self.reference, "reference")):
            others = set(frame["grader"]) - {grader}
            if others:
                raise ReportError(
                    f"Runs graded by {', '.join(sorted(others))} stand among those of the {grader} grader, and one "
                    f'column holds verdicts of one grader; load them with grader="{grader}".'
                )

    @cached_property
    def index(self) -> Index:
        """The runs by what identifies them."""
        return Index(self.runs)

    @cached_property
    def _solutions(self) -> Mapping[Any, pd.DataFrame]:
        needed = self.solutions[["benchmark", "run_id", "question_id", "sample", "correct", "whole"]]
        return dict(tuple(needed.groupby(["benchmark", "run_id"], sort=False)))

    @cached_property
    def _samples(self) -> dict[Any, Samples]:
        return {}

    @cached_property
    def _reference(self) -> Mapping[tuple[str, str], Run]:
        return {(row["benchmark"], row["run_id"]): row for row in self.reference.to_dict("records")}

    def solutions_of(self, run: Run) -> pd.DataFrame:
        """A run's solutions."""
        return self._solutions[run["benchmark"], run["run_id"]]

    def samples_of(self, run: Run) -> Samples:
        """A run's verdicts."""
        key = run["benchmark"], run["run_id"]
        if key not in self._samples:
            self._samples[key] = samples_of(self._solutions[key])
        return self._samples[key]

    def by_reference(self, run: Run) -> float | None:
        """The run's accuracy by the reference grader, where it has graded all of its questions."""
        row = self._reference.get((run["benchmark"], run["run_id"]))
        return None if row is None or not row["complete"] else number(row["accuracy"])


@dataclass(frozen=True, kw_only=True)
class Cell:
    """`answered` of `size` questions are; `accuracy` is None where there is no run, its 95% interval unless the cell is
    `whole`: all questions are answered and graded. `run` tells what it took. `samples` are the verdicts behind the
    accuracy, `verdicts` those that enter the paired test, where it is `tested` at all; none unless it is whole.
    `delta`: the threshold that was chosen, `spread`: the standard deviation of a cross-fitted accuracy over divisions;
    `grid`: of a chosen threshold, how many of the runs are whole, and of how many. `reference`: accuracy by the
    reference grader."""

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
    accuracy = number(run["accuracy"])
    whole = bool(run["complete"]) and accuracy is not None
    samples = stored.samples_of(run) if whole else {}
    return Cell(
        answered=int(run["questions"]),
        size=int(run["size"]),
        whole=whole,
        accuracy=accuracy,
        low=number(run["low"]) if whole else None,
        high=number(run["high"]) if whole else None,
        run=run,
        samples=samples,
        verdicts=samples,
        reference=stored.by_reference(run),
    )


def starred_cells(runs: Mapping[float, Run | None], stored: Stored) -> tuple[Cell, Cell]:
    """The cells of a threshold chosen among `runs` {δ: run}: on the test set, as the paper does, and cross-fitted.

    Neither has an accuracy before every run is whole; cross-fitting needs a question for each fold as well.
    """
    cells = {delta: cell_of(runs[delta], stored) for delta in sorted(runs)}
    whole = sum(cell.whole for cell in cells.values())
    nothing = Cell(
        answered=min(cell.answered for cell in cells.values()),
        size=max((cell.size for cell in cells.values() if cell.size is not None), default=None),
        grid=(whole, len(cells)),
    )
    if whole < len(cells):
        return nothing, nothing
    best = max(cells, key=lambda delta: (round(cells[delta].accuracy or 0.0, 12), -delta))  # ties: the smaller one
    oracle = replace(cells[best], tested=False, delta=best, grid=nothing.grid)
    try:
        star = delta_star({delta: stored.solutions_of(run) for delta, run in runs.items() if run is not None})
    except StoreError:  # too few questions
        return oracle, nothing
    low, high = bootstrap(star.fitted_samples)
    fitted = replace(
        nothing,
        whole=True,
        accuracy=star.fitted_accuracy,
        low=low,
        high=high,
        samples=star.fitted_samples,
        verdicts={question: cells[delta].samples[question] for question, delta in star.fitted_deltas.items()},
        spread=star.fitted_spread,
    )
    return oracle, fitted


def number(value: Any) -> float | None:
    """A value of a frame, None where it is missing."""
    return None if pd.isna(value) else float(value)
