"""A table with its numbers: every cell with its interval, every comparison paired with its baseline.

lines = fill(rows(TABLES["table2"], "tiny"), columns(TABLES["table2"], "tiny"), stored)
lines[0].cells["tiny_chain"].accuracy, lines[1].comparisons["tiny_chain"].p_holm, lines[1].average.value
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from rsd.report.statistics import Interval, average, average_difference, bootstrap_difference, holm, pair
from rsd.report.tables.cells import Cell, Stored, cell_of, chosen_cell, fitted_cell, found
from rsd.report.tables.layout import Row
from rsd.report.wanted import Asked, Words

CROSS_FITTED = "delta* cross-fitted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A cell less that of the baseline, on the same questions. `won` and `lost` count the questions that only one of
    both has right, where each has one sample of each question; `p` is McNemar's exact one, `p_holm` adjusted for all
    comparisons of the table with this baseline. None where nothing is tested: the threshold was chosen on the test
    set, or an outcome is not 0 or 1."""

    difference: float
    interval: Interval
    won: int | None = None
    lost: int | None = None
    p: float | None = None
    p_holm: float | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean of benchmarks, or the difference of two, with its 95% interval."""

    value: float
    interval: Interval


@dataclass(frozen=True, kw_only=True)
class Line:
    """A row of a table, filled. `average` and `difference` (of the averages, to the baseline) are None unless every
    cell is whole. `paper`: what the paper prints in this row, nothing where it has none. `baseline`: the words of the
    run that it is compared with."""

    labels: Mapping[str, str]
    cells: Mapping[str, Cell]
    comparisons: Mapping[str, Comparison]
    average: Estimate | None = None
    difference: Estimate | None = None
    paper: Mapping[str, str]
    baseline: Words


def fill(rows: Sequence[Row], columns: Mapping[str, str], stored: Stored) -> list[Line]:
    """The lines of a table with these rows and {heading: benchmark} columns; δ* gives two, as the paper chooses it and
    cross-fitted."""
    lines = []
    for row in rows:
        runs = {heading: found(row, benchmark, stored) for heading, benchmark in columns.items()}
        alone = {heading: _baseline(row.baseline, benchmark, stored) for heading, benchmark in columns.items()}
        if row.starred:
            lines.append(_line(row, {h: chosen_cell(row, runs[h], stored) for h in columns}, alone))
            fitted = replace(row, labels={**row.labels, "setting": CROSS_FITTED}, paper={})
            lines.append(_line(fitted, {h: fitted_cell(row, runs[h], stored) for h in columns}, alone))
        else:
            lines.append(_line(row, {h: cell_of(next(iter(runs[h]), None), stored) for h in columns}, alone))
    return _adjusted(lines)


def _baseline(words: Words, benchmark: str, stored: Stored) -> Cell:
    return cell_of(stored.index.find(Asked(benchmark, words)) if words else None, stored)


def _line(row: Row, cells: Mapping[str, Cell], alone: Mapping[str, Cell]) -> Line:
    compared = {heading: _compared(cells[heading], alone[heading]) for heading in cells}
    comparisons = {heading: comparison for heading, comparison in compared.items() if comparison is not None}
    whole = all(cell.whole for cell in cells.values())
    pairs = {heading: (cells[heading].samples, alone[heading].samples) for heading in comparisons}
    return Line(
        labels=row.labels,
        cells=cells,
        comparisons=comparisons,
        average=Estimate(*average({heading: cell.samples for heading, cell in cells.items()})) if whole else None,
        difference=Estimate(*average_difference(pairs)) if len(pairs) == len(cells) else None,
        paper=row.paper,
        baseline=row.baseline,
    )


def _compared(cell: Cell, alone: Cell) -> Comparison | None:
    """Both must be whole, and of two runs."""
    if not (cell.whole and alone.whole) or (cell.run and alone.run and cell.run["run_id"] == alone.run["run_id"]):
        return None
    samples = cell.samples, alone.samples
    share = [fmean(right / count for right, count in of.values()) for of in samples]
    verdicts = cell.verdicts, alone.verdicts
    if any(count != 1 for of in verdicts for _, count in of.values()):
        return Comparison(difference=share[0] - share[1], interval=bootstrap_difference(*samples))
    outcome = pair(*({question: right == 1 for question, (right, _) in of.items()} for of in verdicts))
    same = cell.samples is cell.verdicts
    return Comparison(
        difference=share[0] - share[1],
        interval=outcome.interval if same else bootstrap_difference(*samples),
        won=outcome.won,
        lost=outcome.lost,
        p=outcome.p if cell.tested else None,
    )


def _adjusted(lines: Sequence[Line]) -> list[Line]:
    """With Holm's adjustment over all tested cells of the table that are compared with one baseline."""
    families: defaultdict[Words, list[tuple[int, str]]] = defaultdict(list)
    for number, line in enumerate(lines):
        for heading, comparison in line.comparisons.items():
            if comparison.p is not None:
                families[line.baseline].append((number, heading))
    adjusted: list[dict[str, Comparison]] = [dict(line.comparisons) for line in lines]
    for family in families.values():
        p_values = [adjusted[number][heading].p or 0.0 for number, heading in family]
        for (number, heading), p_holm in zip(family, holm(p_values), strict=True):
            adjusted[number][heading] = replace(adjusted[number][heading], p_holm=float(p_holm))
    return [replace(line, comparisons=own) for line, own in zip(lines, adjusted, strict=True)]
