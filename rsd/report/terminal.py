"""How a terminal shows a run's summary.

One panel of facts and one table of work and FLOPs, for 80 columns or more::

    rich.print(render(summary, title="rsd delta=0.7", seconds=12.5, questions_per_second=16.0))
"""

from collections.abc import Iterator, Mapping

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from rsd.cost import ACCOUNTINGS, Accounting
from rsd.report.cells import NONE, flops_cell, flops_unit, percent, percent_interval, times
from rsd.report.summary import NEAR_DELTA, ROLES, Summary


def render(
    summary: Summary,
    *,
    title: str,
    seconds: float | None = None,
    questions_per_second: float | None = None,
    relative: Mapping[Accounting, float | None] | None = None,
) -> RenderableType:
    """Show `summary` under `title`.

    `seconds` and `questions_per_second` are the wall-clock of the invocation. `relative` are the
    FLOPs per question over those of the target alone on the same questions: None where there is no
    such run, a None within it where one of the two was not measured.
    """
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(justify="right", style="bold", no_wrap=True)
    facts.add_column()
    for label, value, comment in _facts(summary, seconds, questions_per_second):
        facts.add_row(label, value, comment)
    parts: list[RenderableType] = [facts, Text(), _work(summary, relative)]
    notes = _notes(summary, relative)
    if notes:
        parts += [Text(), Text("\n".join(notes), style="dim")]
    return Panel(Group(*parts), title=Text(title, style="bold"), title_align="left", padding=(1, 2), expand=False)


def _facts(
    summary: Summary, seconds: float | None, questions_per_second: float | None
) -> Iterator[tuple[str, RenderableType, str]]:
    """Rows of label, value and what the value means."""
    asked = f"{summary.questions:,} questions"
    if summary.records != summary.questions:
        asked += f", {summary.records:,} samples"
    if summary.interval is not None:
        asked = f"95% interval {percent_interval(summary.interval)} ({summary.interval_method.title()}), {asked}"
    yield "accuracy", percent(summary.accuracy), asked
    if summary.errors:
        yield "errors", Text(f"{summary.errors:,}", style="bold red"), "failed; they count as wrong"
    if summary.judged:
        tokens = percent(summary.acceptance_rate_tokens)
        yield (
            "acceptance",
            percent(summary.acceptance_rate),
            f"of {summary.judged:,} draft steps, {tokens} of their tokens",
        )
        if summary.near_delta is not None:
            near = f"of them ({summary.near_delta:,}) decided within {NEAR_DELTA} of delta = {summary.delta:g}"
            yield "near delta", percent(summary.near_delta / summary.judged), near
        yield "draft only", percent(summary.draft_only), "of questions answered without the target"
    if summary.beyond_context:
        yield "prm context", f"{summary.beyond_context:,}", "steps scored beyond the length it was trained on"
    if summary.response_tokens is not None:
        yield "response", f"{summary.response_tokens:,.1f}", f"tokens in {summary.steps:,.1f} steps, on average"
    if summary.end_reasons:
        (first, count), *others = summary.end_reasons.items()
        yield "ended by", f"{count:,}", ", ".join([first, *(f"{count:,} {reason}" for reason, count in others)])
    if seconds is not None:
        speed = "" if questions_per_second is None else f"s, {questions_per_second:,.2f} questions/s"
        yield "wall time", f"{seconds:,.1f}", speed or "s"


def _work(summary: Summary, relative: Mapping[Accounting, float | None] | None) -> Table:
    unit, size = flops_unit(summary.flops.values())
    table = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        padding=(0, 1),
        pad_edge=False,
        title=f"{unit} per question",
        title_justify="right",
        title_style="dim",
    )
    table.add_column("", no_wrap=True)
    for name in ("calls", "tokens", "discarded", *ACCOUNTINGS):
        table.add_column(name, justify="right", no_wrap=True)
    for role in ROLES:
        if role in summary.work:
            work = summary.work[role]
            cells = [f"{work.calls:,}", f"{work.tokens:,}", f"{work.discarded:,}"]
            table.add_row(role, *cells, *(flops_cell(work.flops[a], size) for a in ACCOUNTINGS))
    table.add_section()
    table.add_row("all", "", "", "", *(flops_cell(summary.flops[a], size) for a in ACCOUNTINGS), style="bold")
    if relative is not None:
        table.add_row("vs. target alone", "", "", "", *(times(relative[a]) for a in ACCOUNTINGS), style="bold")
    return table


def _notes(summary: Summary, relative: Mapping[Accounting, float | None] | None) -> list[str]:
    notes = []
    if "prm" in summary.work:
        notes.append("Tokens of the PRM are those of the steps it scored.")
    if None in summary.flops.values() or (relative is not None and None in relative.values()):
        notes.append(f"{NONE}: not measured.")
    if relative is None:
        notes.append("FLOPs relative to the target alone: no run of the target alone found.")
    return notes
