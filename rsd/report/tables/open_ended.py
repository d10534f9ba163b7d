"""Table 6: win rates on AlpacaEval, and the share of tokens that the draft wrote.

    open_ended("paper", stored)    # [{"method": "RSD", …, "win_rate_pct": "19.1", "win_rate_pct_paper": "18.85", …}, …]

Win rates are given by AlpacaEval's own judge, which no run here calls: they are read from the files that it leaves in a
run's folder, a line for each judge there.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rsd.benchmarks.alpaca_eval import Judged, verdicts
from rsd.report.names import words
from rsd.report.paper import numbers
from rsd.report.tables.cells import Run, Stored, number
from rsd.report.tables.layout import PAPER, swept
from rsd.report.wanted import Asked, Words, asked, composed, preset

WIN, SHARE = "win_rate_pct", "share_of_tokens_by_draft_only_pct"
JUDGES = ("judge", "win_rate_se", "length_controlled_win_rate_pct", "annotated")
ROLES = {"draft": "Draft Model only", "target": "Target Model only"}


def open_ended(chosen: str, stored: Stored, overrides: Sequence[str] = ()) -> list[dict[str, str]]:
    """The rows of the table with the preset `chosen`; with the paper's, its own with its numbers beside ours."""
    if chosen == PAPER:
        every = [(printed, swept(printed["run"], overrides)[0]) for printed in numbers("table6")]
    else:
        runs = dict.fromkeys(run.words for run in asked("table6", f"preset={chosen}", *overrides))
        every = [(_labels(run), run) for run in runs]
    benchmark = preset(chosen)["open_benchmark"]
    return [line for labels, run in every for line in _lines(labels, stored.index.find(Asked(benchmark, run)))]


def headings() -> list[str]:
    """The table's columns, the paper's own first."""
    return list(_row(numbers("table6")[0], None, None))


def _labels(run: Words) -> dict[str, str]:
    """A row's first columns, as the paper's are."""
    known = composed(run)
    told, role = words(known), known.method.settings.get("role")
    models = {"draft": told["draft"], "target": told["target"], "ORM": told["prm"]}
    model = told[role] if role else " / ".join(f"{key} {name}" for key, name in models.items())
    setting = "" if role else told["setting"]
    return {"method": ROLES.get(str(role), told["method"]), "model": model, "setting": setting}


def _lines(labels: Mapping[str, str], run: Run | None) -> Iterator[dict[str, str]]:
    """A row, once for each judge of its run."""
    judged: list[Judged | None] = [] if run is None else [*verdicts(Path(run["folder"]))]
    for one in judged or [None]:
        yield _row(labels, run, one)


def _row(labels: Mapping[str, str], run: Run | None, judged: Judged | None) -> dict[str, str]:
    ours = {WIN: None if judged is None else judged.win_rate, SHARE: _share(run)}
    row = {key: _text(ours[key]) if key in ours else labels.get(key, "") for key in numbers("table6")[0]}
    row = {key: value for key, value in row.items() if key not in ("quality", "run")}
    for key, value in ours.items():
        printed = labels.get(key, "")
        less = "" if value is None or not printed else _text(value - float(printed))
        row |= {f"{key}_paper": printed, f"{key}_minus_paper": less}
    told = (judged.judge, judged.standard_error, judged.length_controlled, judged.annotated) if judged else ("",) * 4
    row |= dict(zip(JUDGES, map(_text, told), strict=True))
    answered = {} if run is None else {"questions": run["questions"], "size": run["size"], "run_id": run["run_id"]}
    row |= {name: _text(answered.get(name)) for name in ("questions", "size", "run_id")}
    return {**row, "paper_quality": labels.get("quality", "")}


def _share(run: Run | None) -> float | None:
    """Of the tokens of RSD's responses, those that the draft wrote, in percent."""
    tokens = None if run is None or run["method"] != "rsd" else number(run["response_tokens"])
    if run is None or not tokens:
        return None
    return 100 * float(run["tokens_draft"] - run["wasted_tokens"]) / tokens


def _text(value: object) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
