"""A table of runs and their states, and the failures below it.

print_states([("tiny_chain/rsd-…", state, ["89.2%"])], ["accuracy"])
print_failures([("tiny_chain/rsd-…", state)])
"""

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rsd.state import State, StateName

STYLES: dict[StateName, str] = {
    "done": "green", "running": "cyan", "queued": "cyan", "gone": "yellow", "partial": "yellow", "missing": "",
    "failed": "bold red",
}  # fmt: skip
Row = tuple[str, State, Sequence[str]]  # a run's name, its state, and more cells


def print_states(rows: Iterable[Row], headers: Sequence[str]) -> None:
    """Print the runs, each with a cell under each of `headers`. Where the output is no terminal, a row is a line."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("run", overflow="fold")
    table.add_column("status", no_wrap=True)
    for header in headers:
        table.add_column(header, justify="right", no_wrap=True)
    for name, state, cells in rows:
        table.add_row(Text(name), Text(state.text, style=STYLES[state.name]), *cells)
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = console.measure(table, options=console.options.update(max_width=1000)).maximum
    console.print(table)


def print_failures(runs: Iterable[tuple[str, State]]) -> None:
    """Print why each failed run failed, what became of jobs that left a run undone, and the files that tell more."""
    alike: dict[str, list[str]] = {}
    for name, state in runs:
        for noted, job in state.jobs if state.name not in ("done", "running", "failed") else ():
            where = "cannot be asked about" if job is None else f"is {job.phase} ({job.word})"
            if job is not None and job.phase == "running":
                where += " and has not come to this run yet"
            print(f"{name}: Slurm job {noted.job} {where}. Log: {noted.log}")
        if state.name == "failed":
            why = state.error or f"{state.errors} of {state.asked} solutions failed; its records hold their errors."
            alike.setdefault(f"{why}{f' Log: {state.log}' if state.log else ''}", []).append(name)
    for why, names in alike.items():
        others = f" and {len(names) - 1} more" if len(names) > 1 else ""
        print(f"{names[0]}{others}: {why}")
