"""Compare runs of one benchmark, question by question, against a baseline.

The target alone is the baseline, where it is among them; else the first run, unless another is named::

    python -m rsd.compare results/runs/math500/*
    python -m rsd.compare results/runs/math500/* --baseline results/runs/math500/draft-alone-…

Below the table stand the questions that each run wins and loses against it, with the address of its trace page, which
``python -m rsd.report`` writes. From Python: `compare_paired`.
"""

import argparse
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table

from rsd.cost import ACCOUNTINGS, Accounting, ratio
from rsd.errors import RSDError, StoreError
from rsd.report.cells import NONE, flops_cell, flops_unit, percent, percent_interval, times

if TYPE_CHECKING:
    import pandas as pd

NO_RECORDS = "{} holds no records; name a run that has answered a question"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run as read: its folder, its row among the runs, its solutions, how many of these its last invocation asked for
    (None where that is not noted), and what it is called among others."""

    folder: Path
    row: dict[str, Any]
    solutions: "pd.DataFrame"
    asked: int | None
    name: str

    @property
    def unfinished(self) -> bool:
        """Whether it lacks some of what it was last asked for. Those that end first are the short ones, so that what it
        has is no sample of the rest."""
        return self.asked is not None and len(self.solutions) < self.asked

    def flops(self, accounting: Accounting, questions: Sequence[str] | None = None) -> float | None:
        """FLOPs per question, or per one of `questions`; None where not measured."""
        asked = self.solutions if questions is None else self.solutions[self.solutions["question_id"].isin(questions)]
        mean = float(asked[f"flops_{accounting}"].mean(skipna=False))
        return None if isnan(mean) else mean


def read_run(folder: Path) -> Run:
    """Read a run folder; damaged lines are told on stderr and left out.

    Raises StoreError when it is none, is empty, or is not graded throughout.
    """
    from rsd.report import cache, frames
    from rsd.state import asked_of

    _check_folder(folder)
    stored = cache.read_run(folder)
    for sentence in stored.damaged:
        print(sentence, file=sys.stderr)
    solutions = frames.frame_of(stored.solutions)
    if solutions.empty:
        raise StoreError(NO_RECORDS.format(folder))
    for _, waiting in solutions[~solutions["whole"]].iterrows():
        raise StoreError(
            f"question {waiting['question_id']}, sample {waiting['sample']} has no grade; grade the run before "
            "reporting it"
        )
    asked = asked_of(folder)
    return Run(folder=folder, row=dict(stored.row), solutions=solutions, asked=asked, name=stored.row["name"])


def _check_folder(folder: Path) -> None:
    """Raises StoreError where it is no run's, with what may have been meant."""
    if (folder / "manifest.json").exists():
        return
    mend = "python -m rsd.status lists the runs that there are"
    if not folder.exists():
        why = "no folder matches it" if set("*?[") & set(folder.name) else "it does not exist"
    elif any(folder.glob("*/manifest.json")):
        why, mend = "it holds several", f"name them, as {folder}/*"
    else:
        why = "it has no manifest.json" if any(folder.glob("*")) else "it is empty"
    raise StoreError(f"{folder} is not a run folder: {why}; {mend}")


def _awaited(folder: Path) -> bool:
    """Whether the folder is that of a run that has begun, or failed, and holds no answer yet."""
    from rsd.store import line_files

    begun = any(folder.glob("status*.json")) or (folder / "manifest.json").exists()
    return begun and not any(path.stat().st_size for path in line_files(folder, "records"))


def read_runs(folders: Sequence[Path]) -> list[Run]:
    """Read run folders as `read_run`, and give them names that tell them apart. Those of runs without an answer yet are
    left out, which is told on stderr, as long as there are others."""
    from rsd.report.apart import told_apart

    without = [folder for folder in folders if _awaited(folder)]
    if len(without) == len(folders):
        raise StoreError(NO_RECORDS.format(folders[0]))
    for folder in without:
        print(f"Left out: {folder} has no answer yet; python -m rsd.status tells why.", file=sys.stderr)
    runs = [read_run(folder) for folder in folders if folder not in without]
    names = told_apart([run.row for run in runs])
    return [replace(run, name=name) for run, name in zip(runs, names, strict=True)]


def compare(runs: Sequence[Run], baseline: Run) -> Table:
    """Tabulate `runs`, each against `baseline` on the questions that both have.

    Won and lost are the questions that only the run, or only the baseline, has right, with the
    exact McNemar p-value; with several samples per question there are none, and the interval of the
    difference is a bootstrap's instead of Newcombe's. Ratios of FLOPs are those on common questions.
    A run that is unfinished has no interval, and is not compared.
    Raises StoreError when a run is of another benchmark or shares no question with the baseline.
    """
    unit, size = flops_unit(run.flops(accounting) for run in runs for accounting in ACCOUNTINGS)
    table = Table(
        box=box.HORIZONTALS,
        padding=(0, 1),
        collapse_padding=True,
        pad_edge=False,
        leading=1,
        caption=f"{', '.join(ACCOUNTINGS)}: {unit} per question. [..]: 95% intervals. {NONE}: none, or not measured.\n"
        f"Difference, won/lost and ×: against {baseline.name}, on the questions that both have.\n"
        "Beyond context: steps scored with more tokens than the PRM was trained on.",
        caption_justify="left",
    )
    table.add_column(f"{baseline.row['benchmark']}\nrun", no_wrap=True)
    headers = ("n/N", "accuracy", "difference\nin points", "won/lost\nMcNemar", *ACCOUNTINGS)
    for header in (*headers, "accepted\nsteps", "draft\nonly", "tokens/\nquestion", "beyond\ncontext"):
        table.add_column(header, justify="right", no_wrap=True)
    for run in runs:
        row, costs = run.row, [flops_cell(run.flops(accounting), size) for accounting in ACCOUNTINGS]
        difference, paired, ratios = ("baseline", "", None) if run is baseline else _against(run, baseline)
        table.add_row(
            run.name,
            f"{row['questions']}/{row['size']}",
            _accuracy(run),
            difference,
            paired,
            *(f"{cost}\n{times(ratios[i]) if ratios else ''}" for i, cost in enumerate(costs)),
            percent(row["acceptance"]),
            percent(row["draft_only"]) if row["judged"] else NONE,
            f"{row['response_tokens']:,.0f}",
            NONE if row["beyond_context"] is None else f"{row['beyond_context']:,}",
            style="dim" if run.unfinished or row["questions"] < row["size"] else "",
        )
    return table


def _accuracy(run: Run) -> str:
    """The accuracy above its interval, or above the word that says why there is none."""
    if run.row["low"] is None:
        return NONE
    interval = "unfinished" if run.unfinished else percent_interval((run.row["low"], run.row["high"]))
    return f"{percent(run.row['accuracy'])}\n{interval}"


def _against(run: Run, baseline: Run) -> tuple[str, str, list[float | None] | None]:
    """Cells of the difference and of the paired test, and the ratios of FLOPs per question; nothing of these where one
    of the two is unfinished."""
    from rsd.report.paired import compare_paired

    own, other = run.row["benchmark"], baseline.row["benchmark"]
    if own != other:
        raise StoreError(f"{run.name} ran {own} and {baseline.name} ran {other}; compare one benchmark's runs")
    common = sorted(set(run.solutions["question_id"]) & set(baseline.solutions["question_id"]))
    if not common:
        raise StoreError(f"{run.name} and {baseline.name} have no question in common, so there is nothing to pair")
    if run.unfinished or baseline.unfinished:
        return NONE, NONE, None
    ratios = [ratio(run.flops(a, common), baseline.flops(a, common)) for a in ACCOUNTINGS]
    if run.row["accuracy"] is None or baseline.row["accuracy"] is None:  # nobody grades open-ended text
        return NONE, NONE, ratios
    found = compare_paired(run.solutions, baseline.solutions)
    low, high = found.interval
    paired = NONE if found.p is None else f"{found.won}/{found.lost}\np {found.p:.2g}"
    return f"{100 * found.difference:+.1f}\n[{100 * low:+.1f}, {100 * high:+.1f}]", paired, ratios


def decided(run: Run, baseline: Run, shown: int) -> Iterator[str]:
    """Lines with the first `shown` question_ids that `run` wins against `baseline`, and that it loses, each with the
    address where its trace page shows them, if there is one."""
    from rsd.report.pages import decided_by, trace_page
    from rsd.report.paired import questions_decided

    page = trace_page(run.folder.parent.parent.parent, run.folder)  # the run's is <results>/runs/<benchmark>/<run>
    for word, questions in zip(("Won", "Lost"), questions_decided(run.solutions, baseline.solutions), strict=True):
        more = f" … --questions={len(questions)} shows all" if len(questions) > shown else ""
        if questions:
            yield f"{word} by {run.name} against {baseline.name}: {','.join(questions[:shown])}{more}"
            if page.exists():
                yield f"  {decided_by(page, baseline.folder.name, word.lower())}"


def unfinished(runs: Sequence[Run]) -> Iterator[str]:
    """A sentence about each of `runs` that is unfinished."""
    for run in runs:
        if run.unfinished:
            answers = "questions" if run.row["samples"] <= 1 else "solutions"
            yield (
                f"Unfinished, {len(run.solutions):,} of {run.asked:,} {answers}: {run.name}. Short answers end first, "
                "so that these are not the numbers of a whole run, and it is not compared."
            )


def failed(runs: Sequence[Run]) -> Iterator[str]:
    """A sentence about each of `runs` of which solutions failed."""
    for run in runs:
        if run.row["errors"]:
            yield f"Failed, and count as wrong, {run.row['errors']:,} of {len(run.solutions):,} solutions: {run.name}."


def usual_baseline(runs: Sequence[Run]) -> Run:
    """The target alone, in one go and one sample a question, where `runs` hold one such run; else the first."""
    from rsd.report.runs import target_alone

    alone = [run for run in runs if target_alone(run.row)]
    return alone[0] if len(alone) == 1 else runs[0]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return the exit status, 2 for bad input."""
    parser = argparse.ArgumentParser(prog="python -m rsd.compare", description=__doc__.splitlines()[0])
    parser.add_argument(
        "runs", nargs="+", type=Path, metavar="RUN_FOLDER", help="folder with manifest.json and records"
    )
    parser.add_argument("--baseline", type=Path, metavar="RUN_FOLDER", help="compare with this one")
    parser.add_argument(
        "--questions", type=int, default=10, metavar="N", help="how many won and lost questions to name (%(default)s)"
    )
    options = parser.parse_args(arguments)
    folders = list(dict.fromkeys(folder.resolve() for folder in options.runs))
    if options.baseline and options.baseline.resolve() not in folders:
        folders.insert(0, options.baseline.resolve())
    try:
        if options.baseline and _awaited(options.baseline):
            raise StoreError(NO_RECORDS.format(options.baseline))
        runs = read_runs(folders)
        named = {run.folder: run for run in runs}
        baseline = named[options.baseline.resolve()] if options.baseline else usual_baseline(runs)
        table = compare(runs, baseline)
    except RSDError as error:
        print(error, file=sys.stderr)
        return 2
    console = Console()
    # In a narrower terminal lines fold, which is better than cells cut short.
    console.width = console.measure(table, options=console.options.update(max_width=1000)).maximum
    console.print(table)
    for line in [*unfinished(runs), *failed(runs)]:
        print(line)
    compared = [] if baseline.unfinished else [run for run in runs if not run.unfinished]
    for run in compared:
        if run is not baseline and options.questions > 0:
            for line in decided(run, baseline, options.questions):
                print(line)
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # whoever reads the output may have read enough, as head does
    sys.exit(main())
