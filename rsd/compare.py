"""Compare runs of one benchmark, question by question, against a baseline.

The first run is the baseline unless another is named::

    python -m rsd.compare results/runs/math500/target results/runs/math500/rsd-0.7
    python -m rsd.compare results/runs/math500/* --baseline results/runs/math500/target
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from rsd.cost import ACCOUNTINGS, Accounting, Shape, ratio
from rsd.errors import RSDError, StoreError
from rsd.records import Record, Role
from rsd.report.statistics import Samples, bootstrap_difference, pair
from rsd.report.summary import Summary, right_of_samples, summarise
from rsd.report.terminal import NONE, flops_cell, flops_unit, percent, percent_interval, times
from rsd.store import GradeRecord, Key, read_grades, read_manifest, read_records


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run folder as read; `size` is the number of questions that its benchmark has."""

    name: str
    benchmark: str
    size: int
    shapes: Mapping[Role, Shape]
    records: Mapping[Key, Record]
    grades: Mapping[Key, GradeRecord]

    def summary(self, questions: set[str] | None = None) -> Summary:
        """Sum up the run, or its part on `questions`."""
        records = [record for record in self.records.values() if questions is None or record.question_id in questions]
        return summarise(records, self.grades, self.shapes)

    def samples(self) -> Samples:
        """Of each question, how many samples are right and how many there are."""
        return right_of_samples(self.records.values(), self.grades)


def read_run(folder: Path) -> Run:
    """Read a run folder. Raises StoreError when it is none, is empty, or is not graded throughout."""
    manifest = read_manifest(folder)
    name, benchmark, size = manifest["name"], manifest["benchmark"], manifest["benchmark_size"]
    shapes = {role: Shape(**shape) for role, shape in manifest["shapes"].items()}
    records = read_records(folder)
    if not records:
        raise StoreError(f"{folder} holds no records; name a run that has answered a question")
    return Run(name=name, benchmark=benchmark, size=size, shapes=shapes, records=records, grades=read_grades(folder))


def compare(runs: Sequence[Run], baseline: Run) -> Table:
    """Tabulate `runs`, each against `baseline` on the questions that both have.

    Won and lost are the questions that only the run, or only the baseline, has right, with the
    exact McNemar p-value; with several samples per question there are none, and the interval of the
    difference is a bootstrap's instead of Newcombe's. Ratios of FLOPs are those on common questions.
    Raises StoreError when a run is of another benchmark or shares no question with the baseline.
    """
    summaries = [run.summary() for run in runs]
    unit, size = flops_unit(value for summary in summaries for value in summary.flops.values())
    table = Table(
        box=box.HORIZONTALS,
        padding=(0, 1),
        collapse_padding=True,
        pad_edge=False,
        leading=1,
        caption=f"{', '.join(ACCOUNTINGS)}: {unit} per question. [..]: 95% intervals. {NONE}: none, or not measured.\n"
        f"Difference, won/lost and ×: against {baseline.name}, on the questions that both have.",
        caption_justify="left",
    )
    table.add_column(f"{baseline.benchmark}\nrun", no_wrap=True)
    headers = ("n/N", "accuracy", "difference\nin points", "won/lost\nMcNemar", *ACCOUNTINGS)
    for header in (*headers, "accepted\nsteps", "draft\nonly", "tokens/\nquestion"):
        table.add_column(header, justify="right", no_wrap=True)
    for run, summary in zip(runs, summaries, strict=True):
        costs = [flops_cell(summary.flops[accounting], size) for accounting in ACCOUNTINGS]
        difference, paired, ratios = ("baseline", "", {}) if run is baseline else _against(run, baseline)
        table.add_row(
            run.name,
            f"{summary.questions}/{run.size}",
            f"{percent(summary.accuracy)}\n{percent_interval(summary.interval)}" if summary.interval else NONE,
            difference,
            paired,
            *(f"{cost}\n{times(ratios[a]) if ratios else ''}" for a, cost in zip(ACCOUNTINGS, costs, strict=True)),
            percent(summary.acceptance_rate),
            percent(summary.draft_only) if summary.judged else NONE,
            NONE if summary.response_tokens is None else f"{summary.response_tokens:,.0f}",
            style="" if summary.questions >= run.size else "dim",
        )
    return table


def _against(run: Run, baseline: Run) -> tuple[str, str, Mapping[Accounting, float | None]]:
    """Cells of the difference and of the paired test, and the ratios of FLOPs per question."""
    if run.benchmark != baseline.benchmark:
        raise StoreError(
            f"{run.name} ran {run.benchmark} and {baseline.name} ran {baseline.benchmark}; compare one benchmark's runs"
        )
    first, second = run.samples(), baseline.samples()
    common = first.keys() & second.keys()
    if not common:
        raise StoreError(f"{run.name} and {baseline.name} have no question in common, so there is nothing to pair")
    if all(first[question][1] == second[question][1] == 1 for question in common):
        outcome = pair(*({question: right == 1 for question, (right, _) in s.items()} for s in (first, second)))
        difference, interval = outcome.difference, outcome.interval
        paired = f"{outcome.won}/{outcome.lost}\np {outcome.p:.2g}"
    else:
        difference = sum(_share(first[question]) - _share(second[question]) for question in common) / len(common)
        interval, paired = bootstrap_difference(first, second), NONE
    own, other = run.summary(common).flops, baseline.summary(common).flops
    ratios = {accounting: ratio(own[accounting], other[accounting]) for accounting in ACCOUNTINGS}
    return f"{100 * difference:+.1f}\n[{100 * interval[0]:+.1f}, {100 * interval[1]:+.1f}]", paired, ratios


def _share(sample: tuple[int, int]) -> float:
    right, count = sample
    return right / count


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return the exit status, 2 for bad input."""
    parser = argparse.ArgumentParser(prog="python -m rsd.compare", description=__doc__.splitlines()[0])
    parser.add_argument(
        "runs", nargs="+", type=Path, metavar="RUN_FOLDER", help="folder with manifest.json and records"
    )
    parser.add_argument("--baseline", type=Path, metavar="RUN_FOLDER", help="compare with this run, not with the first")
    options = parser.parse_args(arguments)
    folders = list(dict.fromkeys(folder.resolve() for folder in options.runs))
    baseline = options.baseline.resolve() if options.baseline else folders[0]
    if baseline not in folders:
        folders.insert(0, baseline)
    try:
        runs = {folder: read_run(folder) for folder in folders}
        table = compare(list(runs.values()), runs[baseline])
    except RSDError as error:
        print(error, file=sys.stderr)
        return 2
    console = Console()
    # In a narrower terminal lines fold, which is better than cells cut short.
    console.width = console.measure(table, options=console.options.update(max_width=1000)).maximum
    console.print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
