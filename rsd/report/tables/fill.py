"""A table with its numbers: every cell with its interval, every comparison paired with its baseline.

lines = fill(rows(TABLES["table2"], "tiny"), columns(TABLES["table2"], "tiny"), stored)
lines[0].cells["tiny_chain"].accuracy, lines[1].comparisons["tiny_chain"].won, lines[1].average.value
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rsd.report.paired import Average, Comparison, average_accuracy, average_difference, compare_paired
from rsd.report.statistics import holm
from rsd.report.tables.cells import Cell, Run, Stored, cell_of, starred_cells
from rsd.report.tables.layout import Row
from rsd.report.wanted import Asked, Words

CROSS_FITTED = "delta* cross-fitted"


@dataclass(frozen=True, kw_only=True)
class Line:
    """A row of a table, filled: {heading: …} of each benchmark. `comparisons`: with the run of `baseline`, on the same
    questions; `p_values`: of those tested, adjusted for all of the table with this baseline (Holm). `average` and
    `difference` (of the averages, to the baseline's) are None unless every cell is whole. `paper`: what the paper
    prints in this row, nothing where it has none."""

    labels: Mapping[str, str]
    baseline: Words
    cells: Mapping[str, Cell]
    comparisons: Mapping[str, Comparison] = field(default_factory=dict)
    p_values: Mapping[str, float] = field(default_factory=dict)
    average: Average | None = None
    difference: Average | None = None
    paper: Mapping[str, str] = field(default_factory=dict)


def fill(rows: Sequence[Row], columns: Mapping[str, str], stored: Stored) -> list[Line]:
    """The lines of a table with these rows and {heading: benchmark} columns; δ* gives two, as the paper chooses it and
    cross-fitted."""
    return _adjusted([_compared(line, columns, stored) for row in rows for line in _lines(row, columns, stored)])


def _lines(row: Row, columns: Mapping[str, str], stored: Stored) -> Iterator[Line]:
    """A row's lines with their cells."""
    runs = {heading: _found(row, benchmark, stored) for heading, benchmark in columns.items()}
    if not row.starred:
        cells = {heading: cell_of(next(iter(found.values()), None), stored) for heading, found in runs.items()}
        yield Line(labels=row.labels, baseline=row.baseline, cells=cells, paper=row.paper)
        return
    both = {heading: starred_cells(found, stored) for heading, found in runs.items()}
    yield Line(labels=row.labels, baseline=row.baseline, cells={h: b[0] for h, b in both.items()}, paper=row.paper)
    labels = {**row.labels, "setting": CROSS_FITTED}
    yield Line(labels=labels, baseline=row.baseline, cells={h: b[1] for h, b in both.items()})


def _found(row: Row, benchmark: str, stored: Stored) -> dict[float, Run | None]:
    """The stored runs behind a row's cell, by threshold (0 where there is none)."""
    every = [Asked(benchmark, words) for words in row.runs]
    return {float(run.word("delta") or 0): stored.index.find(run) for run in every}


def _compared(line: Line, columns: Mapping[str, str], stored: Stored) -> Line:
    """With its averages, and compared with its baseline; a run is not compared with itself."""
    pairs, comparisons = {}, {}
    for heading, benchmark in columns.items():
        own = line.cells[heading]
        alone = cell_of(stored.index.find(Asked(benchmark, line.baseline)) if line.baseline else None, stored)
        if own.whole and alone.whole and not _same(own.run, alone.run):
            pairs[heading] = own.samples, alone.samples
            tested = compare_paired(own.verdicts, alone.verdicts)
            mean = tested if own.verdicts is own.samples else compare_paired(*pairs[heading])
            comparisons[heading] = replace(
                tested,
                difference=mean.difference,
                newcombe=mean.newcombe,
                bootstrap=mean.bootstrap,
                p=tested.p if own.tested else None,
            )
    whole = all(cell.whole for cell in line.cells.values())
    return replace(
        line,
        comparisons=comparisons,
        average=average_accuracy({h: cell.samples for h, cell in line.cells.items()}) if whole else None,
        difference=average_difference(pairs) if len(pairs) == len(columns) else None,
    )


def _same(one: Run | None, other: Run | None) -> bool:
    return one is not None and other is not None and one["run_id"] == other["run_id"]


def _adjusted(lines: Sequence[Line]) -> list[Line]:
    """With Holm's adjustment over all tested cells of the table that are compared with one baseline."""
    families: defaultdict[Words, list[tuple[int, str, float]]] = defaultdict(list)
    for number, line in enumerate(lines):
        for heading, comparison in line.comparisons.items():
            if comparison.p is not None:
                families[line.baseline].append((number, heading, comparison.p))
    adjusted: list[dict[str, float]] = [{} for _ in lines]
    for family in families.values():
        for (number, heading, _), p in zip(family, holm([p for *_, p in family]), strict=True):
            adjusted[number][heading] = p
    return [replace(line, p_values=own) for line, own in zip(lines, adjusted, strict=True)]
