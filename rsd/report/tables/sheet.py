"""A filled table as CSV: the paper's columns first, ours behind them.

Under the paper's headings stand our own numbers in percent, and nothing where a run is missing or partial, so that a
column can be averaged as it is. Behind them come the averages' intervals and the paper's averages, then for each
benchmark B its accuracy's interval (``B_low``, ``B_high``), what the paper prints (``B_paper``, ``B_minus_paper``), the
comparison with the baseline, counts, and what the run took. ``docs/tables.md`` lists them.
"""

import csv
import io
from collections.abc import Mapping, Sequence

from rsd.report.paper import slips
from rsd.report.statistics import Interval
from rsd.report.tables.cells import Cell, number
from rsd.report.tables.fill import Line
from rsd.report.tables.layout import Layout

TRUNCATED = ("end_max_steps", "end_response_limit", "end_context_limit", "end_repetition")
WORK = (  # of the runs' own columns, means over questions
    *("steps", "response_tokens", "prm_calls", "wasted_tokens", "tokens_draft", "tokens_target", "tokens_prm"),
    *("flops_passes", "flops_positions", "flops_full"),
)

Value = str | int | float | None


def csv_of(layout: Layout, columns: Mapping[str, str], lines: Sequence[Line]) -> str:
    """The table's lines as text, under headings; {heading: benchmark} are the benchmarks'."""
    text = io.StringIO()
    nothing = Line(labels={}, baseline=(), cells=dict.fromkeys(columns, Cell()))
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(record(layout, nothing))
    writer.writerows([_text(value) for value in record(layout, line).values()] for line in lines)
    return text.getvalue()


def record(layout: Layout, line: Line) -> dict[str, Value]:
    """One line of the table, with every column in its order."""
    own = {heading: _percent(cell.accuracy if cell.whole else None) for heading, cell in line.cells.items()}
    sums = {"Avg": line.average, f"diff_vs_single_{layout.baseline}": line.difference}
    values = {name: None if estimate is None else _percent(estimate.value) for name, estimate in sums.items()}
    notes = [slip.note for slip in slips(layout.name) if slip.run == line.paper.get("run", None)]
    found: dict[str, Value] = {
        **{label: line.labels.get(label) for label in layout.labels},
        **(own if layout.shows_benchmarks else {}),
        **{name: values[name] for name in layout.columns},
        **{name: value for name, value in values.items() if name not in layout.columns},
    }
    for name, estimate in sums.items():
        interval = None if estimate is None else estimate.interval
        found |= {**_interval(name, interval), **_beside_paper(name, values[name], line)}
    found |= {"paper_quality": line.paper.get("quality"), "paper_note": " ".join(notes) or None}
    for heading, cell in line.cells.items():
        found |= {} if layout.shows_benchmarks else {heading: own[heading]}
        found |= _accuracy(heading, cell, line)
        found |= _comparison(heading, line)
        found |= _run(heading, cell)
    return found


def _accuracy(heading: str, cell: Cell, line: Line) -> dict[str, Value]:
    whole = _percent(cell.accuracy if cell.whole else None)
    by_reference = _percent(cell.reference)
    return {
        f"{heading}_low": _percent(cell.low),
        f"{heading}_high": _percent(cell.high),
        f"{heading}_n": None if cell.size is None else cell.answered,
        f"{heading}_size": cell.size,
        f"{heading}_partial": _percent(None if cell.whole else cell.accuracy),
        **_beside_paper(heading, whole, line),
        f"{heading}_reference": by_reference,
        f"{heading}_reference_minus_paper": _less(by_reference, line.paper.get(heading)),
        f"{heading}_delta": cell.delta,
        f"{heading}_delta_paper": line.paper.get(f"{heading}_delta"),
        f"{heading}_spread": _percent(cell.spread),
    }


def _comparison(heading: str, line: Line) -> dict[str, Value]:
    name, found = f"{heading}_difference", line.comparisons.get(heading)
    return {
        name: None if found is None else _percent(found.difference),
        **_interval(name, None if found is None else found.interval),
        **{f"{heading}_{key}": getattr(found, key, None) for key in ("won", "lost", "p")},
        f"{heading}_p_holm": line.p_values.get(heading),
    }


def _run(heading: str, cell: Cell) -> dict[str, Value]:
    """Counts of what went wrong, shares of what the draft did, and the run's work."""
    run = cell.run or {}

    def told(name: str) -> float | None:
        return number(run.get(name))

    truncated = [told(name) for name in TRUNCATED]
    shares = ("acceptance", "acceptance_tokens", "draft_only")
    counts = {"failed": told("errors"), "prm_context": told("end_prm_context"), "near_delta": told("near_delta"),
              "beyond_context": told("beyond_context"), "unscored": told("unscored")}  # fmt: skip
    return {
        f"{heading}_truncated": sum(int(n or 0) for n in truncated) if run else None,
        **{f"{heading}_{name}": None if value is None else int(value) for name, value in counts.items()},
        **{f"{heading}_{name}": _percent(told(name)) for name in shares},
        **{f"{heading}_{name}": told(name) for name in WORK},
        f"{heading}_run": run.get("run_id"),
    }


def _interval(name: str, interval: Interval | None) -> dict[str, Value]:
    low, high = interval or (None, None)
    return {f"{name}_low": _percent(low), f"{name}_high": _percent(high)}


def _beside_paper(name: str, ours: float | None, line: Line) -> dict[str, Value]:
    printed = line.paper.get(name)
    return {f"{name}_paper": printed, f"{name}_minus_paper": _less(ours, printed)}


def _less(ours: float | None, printed: str | None) -> float | None:
    return None if ours is None or not printed else round(ours - float(printed), 4)


def _percent(share: float | None) -> float | None:
    return None if share is None else round(100 * share, 4)


def _text(value: Value) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
