"""A filled table as a Markdown page, for people: accuracies, the paired comparison, and how the answers ended.

page(TABLES["table2"], sections(TABLES["table2"], columns, lines), chosen="preset=tiny")
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from rsd.report.paired import Average
from rsd.report.paper import slips
from rsd.report.tables.cells import Cell, Run, number
from rsd.report.tables.fill import Line
from rsd.report.tables.layout import SUMS, Layout
from rsd.report.tables.sheet import TRUNCATED
from rsd.report.tables.text import MINUS, markdown, percent, points, signed, with_interval

PRINTED = "*the paper*"
ABOUT = """\
Accuracy in % with its 95% interval (Wilson's; a two-level bootstrap's where a question has several outcomes). Averages
are over benchmarks, their intervals a bootstrap's that resamples the questions of each. *Partial n/N*: a run that has
answered n of N questions, which has no interval and enters no average and no test. Beneath a row, in italics: what the
paper prints, and in brackets ours less that.
"""
EMPTY = """\
Empty: not run yet, or, of an average and its difference, not of every benchmark; the model alone has no difference from
itself. In the paper's rows: not in the paper.
"""
STAR = """\
The row delta\\* is the threshold (in brackets) with the best accuracy on the test set itself, as in the paper; its
intervals take the choice as given, and it is not tested. *Cross-fitted* chooses on four fifths of the questions and
counts the last fifth: mean over 20 divisions ± their standard deviation; the verdicts of the first one enter the test.
A choice on four fifths of the questions slightly overstates how much a choice on all of them flatters.
"""
PAIRED = """\
Each accuracy less that of the single {role} on the same questions, in points, with its 95% interval (Newcombe's; a
bootstrap's where a question has several outcomes); questions won/lost; McNemar's exact p, adjusted by Holm for all
cells of this table that are compared with the same run. Empty: one of the two runs is missing or partial.
"""
ENDED = """\
Solutions that failed (they count as wrong) or were cut off by a limit; steps and samples that were too long for the PRM
(RSD then ends, search drops the step, Best-of-N the sample), and steps that it scored beyond the length it was trained
on; all benchmarks together. Shares of the draft's steps, and of their tokens, that were accepted, of questions answered
without the target, and what a question took: means over benchmarks. *Partial n/N*: of the questions answered so far.
Empty: the method has no such thing.
"""


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of a table's page: rows of cells, each row with its runs by column where cells stand for one. A row that
    begins with `PRINTED` belongs to the one above it."""

    title: str
    about: Sequence[str]
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    runs: Sequence[Mapping[int, Run]]


def page(layout: Layout, sections: Sequence[Section], *, chosen: str) -> str:
    """The page of a table as Markdown; `chosen`: the settings that its runs share."""
    parts = [f"# {layout.title}\n", f"`{chosen}`. Everything here and more, for programs: `{layout.name}.csv`.\n"]
    for section in sections:
        before, after = section.about[:1], section.about[1:]
        parts += [f"## {section.title}\n"] if section.title else []
        parts += [*before, markdown(section.headings, section.rows), *after]
    return "\n".join(parts)


def sections(layout: Layout, columns: Mapping[str, str], lines: Sequence[Line]) -> list[Section]:
    """What the page of a table with the {heading: benchmark} `columns` consists of."""
    shown = list(columns) if layout.shows_benchmarks else []
    accuracies = [*_accuracies(layout, shown, lines)]
    notes = [STAR] if any(line.labels.get("setting", "").startswith("delta*") for line in lines) else []
    notes += [f"{slip.column}: {slip.note}\n" for slip in slips(layout.name) if any(line.paper for line in lines)]
    parts = [
        Section(
            title="",
            about=[ABOUT, EMPTY, *notes],
            headings=[*layout.labels, *shown, *_sums(layout)],
            rows=[row for row, _ in accuracies],
            runs=[runs for _, runs in accuracies],
        )
    ]
    if any(line.comparisons for line in lines):
        rows = [_paired(layout, columns, line) for line in lines if line.comparisons]
        title, about = f"Against the single {layout.baseline}", PAIRED.format(role=layout.baseline)
        headings = [*layout.labels, *columns]
        parts.append(Section(title=title, about=[about], headings=headings, rows=rows, runs=[{}] * len(rows)))
    if any(cell.run for line in lines for cell in line.cells.values()):
        headings, rows = _ended(layout, lines)
        title = "How answers ended, and what they took"
        parts.append(Section(title=title, about=[ENDED], headings=headings, rows=rows, runs=[{}] * len(rows)))
    return parts


def _sums(layout: Layout) -> list[str]:
    return [*SUMS[:1], f"diff_vs_single_{layout.baseline}"]


def _accuracies(
    layout: Layout, shown: Sequence[str], lines: Sequence[Line]
) -> Iterator[tuple[list[str], dict[int, Run]]]:
    """Rows, and the runs behind their cells."""
    for line in lines:
        means = [_estimate(line.average, percent), _estimate(line.difference, points)]
        labels = [line.labels.get(label, "") for label in layout.labels]
        runs = {i: run for i, h in enumerate(shown, start=len(labels)) if (run := line.cells[h].run) is not None}
        yield [*labels, *(_accuracy(line.cells[heading]) for heading in shown), *means], runs
        if line.paper:
            ours = {h: cell.accuracy for h, cell in line.cells.items() if cell.whole}
            sums = zip(_sums(layout), (line.average, line.difference), strict=True)
            ours |= {name: estimate.value for name, estimate in sums if estimate is not None}
            printed = [_printed(line, name, ours.get(name)) for name in (*shown, *_sums(layout))]
            yield [PRINTED, *[""] * (len(labels) - 1), *printed], {}


def _accuracy(cell: Cell) -> str:
    if cell.grid is not None and not cell.whole:
        return f"*{cell.grid[0]} of {cell.grid[1]} thresholds*" if cell.grid[0] else ""
    shown = with_interval(percent(cell.accuracy), percent(cell.low), percent(cell.high))
    shown += "" if cell.delta is None else f" ({cell.delta:g})"
    shown += "" if cell.spread is None else f" ±{percent(cell.spread)}"
    return shown if cell.whole or not shown else f"*partial {cell.answered}/{cell.size}: {shown}*"


def _printed(line: Line, name: str, ours: float | None) -> str:
    """The paper's number, with ours less it."""
    printed = line.paper.get(name)
    if not printed:
        return ""
    about = "" if line.paper["quality"] == "exact" else f" {line.paper['quality']}"
    less = "" if ours is None else f" ({signed(100 * ours - float(printed))})"
    return f"*{printed.replace('-', MINUS)}{about}{less}*"


def _estimate(estimate: Average | None, show: Callable[[float], str]) -> str:
    return "" if estimate is None else with_interval(show(estimate.value), *map(show, estimate.interval))


def _paired(layout: Layout, columns: Mapping[str, str], line: Line) -> list[str]:
    labels = [line.labels.get(label, "") for label in layout.labels]
    return [*labels, *(_comparison(line, heading) for heading in columns)]


def _comparison(line: Line, heading: str) -> str:
    found = line.comparisons.get(heading)
    if found is None:
        return ""
    shown = with_interval(points(found.difference), *map(points, found.interval))
    shown += "" if found.won is None else f", {found.won}/{found.lost}"
    return shown + (f", p = {line.p_values[heading]:.2g}" if heading in line.p_values else "")


def _ended(layout: Layout, lines: Sequence[Line]) -> tuple[list[str], list[list[str]]]:
    """Headings and rows of what became of each line's solutions."""
    rows = []
    for line in lines:
        runs = [cell.run for cell in line.cells.values() if cell.run is not None]
        if not runs:
            continue

        def total(*names: str, runs: Sequence[Run] = runs) -> str:
            values = [number(run.get(name)) for run in runs for name in names]
            return f"{sum(value or 0 for value in values):,.0f}" if any(v is not None for v in values) else ""

        def mean(name: str, show: Callable[[float], str], runs: Sequence[Run] = runs) -> str:
            values = [value for run in runs if (value := number(run.get(name))) is not None]
            return show(fmean(values)) if values else ""

        answered = total("questions")
        if not all(run["complete"] for run in runs):
            answered = f"*partial {answered}/{total('size')}*"
        rows.append(
            [
                *(line.labels.get(label, "") for label in layout.labels),
                *(answered, total("errors"), total(*TRUNCATED), total("unscored")),
                *(total("beyond_context"), mean("acceptance", percent), mean("acceptance_tokens", percent)),
                mean("draft_only", percent) if any(run["judged"] for run in runs) else "",
                *(mean(name, "{:.1f}".format) for name in ("steps", "response_tokens", "prm_calls", "wasted_tokens")),
            ]
        )
    headings = ["questions", "failed", "cut off", "too long for PRM", "beyond its context", "steps accepted, %"]
    headings += ["tokens accepted, %", "draft alone, %", "steps", "tokens", "PRM calls", "draft tokens wasted"]
    return [*layout.labels, *headings], rows
