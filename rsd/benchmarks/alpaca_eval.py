"""AlpacaEval beyond its questions: what its judge is given, and what the judge leaves.

    write_outputs(plan.folder, plan.everything, records)     # model_outputs.json
    alpaca_eval --model_outputs results/runs/alpaca_eval/RUN/model_outputs.json    # not called from here
    for judged in verdicts(folder):
        judged.judge, judged.win_rate, judged.length_controlled

The judge writes ``leaderboard.csv`` and ``annotations.json`` beside its input, or into a folder of its own name there.
"""

import csv
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from rsd.errors import ReportError
from rsd.records import Problem, Record
from rsd.store import Key, write_json

OUTPUTS, LEADERBOARD, ANNOTATIONS = "model_outputs.json", "leaderboard.csv", "annotations.json"


def write_outputs(folder: Path, problems: Sequence[Problem], records: Mapping[Key, Record]) -> None:
    """Write the first sample of every question that is answered, in the order of the benchmark; of one that failed,
    nothing. The generator is the run's id."""
    rows = [
        {
            "dataset": problem.row.get("dataset", ""),
            "instruction": problem.question,
            "output": records[problem.question_id, 0].response.strip(),
            "generator": folder.name,
        }
        for problem in problems
        if (problem.question_id, 0) in records
    ]
    write_json(folder / OUTPUTS, rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What a judge made of a run, in percent: its wins over the reference's outputs, their standard error, and the wins
    with lengths made equal; None where the judge does not tell. `annotated`: questions."""

    judge: str
    win_rate: float
    standard_error: float | None
    length_controlled: float | None
    annotated: int | None


def verdicts(folder: Path) -> Iterator[Judged]:
    """What judges have left in the folder of a run. Raises ReportError where a file of theirs cannot be read."""
    places = {path.parent for name in (LEADERBOARD, ANNOTATIONS) for path in folder.rglob(name)}
    for place in sorted(places):
        judge = str(place.relative_to(folder)).removeprefix(".")
        preferences = _preferences(place / ANNOTATIONS, folder.name)
        standing = _standing(place / LEADERBOARD, folder.name)
        if standing is not None:
            yield Judged(
                judge=judge,
                win_rate=float(standing["win_rate"]),
                standard_error=_number(standing.get("standard_error")),
                length_controlled=_number(standing.get("length_controlled_winrate")),
                annotated=len(preferences) or None,
            )
        elif preferences:
            wins = [100 * (preference - 1) for preference in preferences]
            error = stdev(wins) / math.sqrt(len(wins)) if len(wins) > 1 else None
            yield Judged(
                judge=judge,
                win_rate=fmean(wins),
                standard_error=error,
                length_controlled=None,
                annotated=len(wins),
            )


def _standing(path: Path, generator: str) -> dict[str, str] | None:
    """The run's line among those of other models, whose names are the first column."""
    if not path.is_file():
        return None
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        found = next((row for row in rows if next(iter(row.values())) == generator), None)
        if found is not None:
            float(found["win_rate"])
    except (KeyError, ValueError, TypeError, csv.Error) as error:
        raise _unreadable(path, error) from error
    return found


def _preferences(path: Path, generator: str) -> list[float]:
    """For each question how much the run's output is preferred, from 1 (the reference's) to 2; 0 is AlpacaEval's old
    sign for a draw."""
    if not path.is_file():
        return []
    try:
        rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
        told = [row["preference"] for row in rows if row.get("generator_2", generator) == generator]
        return [float(value) or 1.5 for value in told if value is not None and not math.isnan(value)]
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise _unreadable(path, error) from error


def _number(text: str | None) -> float | None:
    return float(text) if text else None


def _unreadable(path: Path, error: Exception) -> ReportError:
    return ReportError(f"{path} is no file of alpaca_eval ({error}); delete it, or let alpaca_eval write it again.")
