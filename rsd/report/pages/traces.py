"""What a run did with each question, as the data of its trace page.

    summary, lines = traces(run, problems)

`summary` tells what the page's list and filters need of every question, `lines` hold one JSON object a question, which
the page reads when it shows it.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import orjson
import pandas as pd

from rsd.cost import ACCOUNTINGS, Shape, add, flops
from rsd.records import Problem, Proposal, Record, Role, load
from rsd.report.cache import StoredRun
from rsd.report.pages.mathml import Formulas
from rsd.report.runs import threshold
from rsd.report.summary import ROLES
from rsd.store import is_error, read_lines, read_manifest

MOST = 20_000  # solutions on a page; of more, the first samples of each question
EXCERPT = 90  # characters of a question in the list
Shares = Mapping[str, float | None]  # {question_id: the share of its samples that are right}, None where nobody grades


def shares(solutions: pd.DataFrame) -> dict[str, float | None]:
    """Of each question of one run, the share of its samples that are right."""
    graded = solutions[solutions["whole"]]
    means = graded.groupby("question_id")["correct"].mean()
    return means.to_dict() if graded["graded"].any() else dict.fromkeys(means.index)


def traces(run: StoredRun, problems: Mapping[str, Problem]) -> tuple[dict[str, Any], list[bytes]]:
    """The data of a run's page. `problems`: its questions by name, as far as they can be read."""
    records: defaultdict[str, dict[int, Record]] = defaultdict(dict)
    for record in read_lines(run.folder, "records", load, damaged=lambda fault: None):  # the tables have told of it
        known = records[record.question_id]
        if record.sample not in known or is_error(known[record.sample]):
            known[record.sample] = record
    names = [*(name for name in problems if name in records), *sorted(records.keys() - problems.keys())]
    manifest = read_manifest(run.folder)
    shapes = {role: Shape(**shape) for role, shape in manifest["shapes"].items()}
    solutions = run.solutions.to_pandas()
    numbers = {(told["question_id"], told["sample"]): told for told in solutions.to_dict("records")}
    verdicts, samples = shares(solutions), max(1, MOST // max(1, len(names)))
    lines, listed = [], []
    for name in names:
        told = [records[name][sample] for sample in sorted(records[name])]
        lines.append(orjson.dumps(_question(name, problems.get(name), told[:samples], numbers, shapes)))
        asked = problems[name].question if name in problems else ""
        listed.append([name, " ".join(asked.split())[:EXCERPT], rounded(verdicts.get(name)), _strip(told)])
    proposals = (p for every in records.values() for record in every.values() for p in record.proposals)
    summary = {
        "delta": threshold(manifest),
        "range": _range([p.reward for p in proposals if p.reward is not None]),
        "left_out": max((len(every) - samples for every in records.values()), default=0),
        "questions": listed,
    }
    return summary, lines


def _range(rewards: Sequence[float]) -> tuple[float, float]:
    """What a bar of rewards spans: 0 to 1, or where a PRM goes beyond, from its least to its greatest."""
    low, high = min(rewards, default=0.0), max(rewards, default=1.0)
    return (0.0, 1.0) if low >= 0.0 and high <= 1.0 else (low, high)


def rounded(share: float | None) -> float | None:
    """A number as pages hold it, None where it is missing."""
    return None if share is None or pd.isna(share) else round(share, 4)


def _strip(records: Sequence[Record]) -> str:
    """Who wrote the steps of the first answer: d or t for each that was kept, x for one that was rejected."""
    steps = [p for p in records[0].proposals if p.kept or p.accepted is False]
    return "".join("x" if not p.kept else p.origin[0] for p in steps)[:40]


def _question(
    name: str,
    problem: Problem | None,
    records: Sequence[Record],
    numbers: Mapping[tuple[str, int], Mapping[str, Any]],
    shapes: Mapping[Role, Shape],
) -> dict[str, Any]:
    formulas = Formulas()
    return {
        "id": name,
        "question": formulas.text(problem.question) if problem else None,
        "gold": formulas.answer(problem.answer) if problem else None,
        "samples": [_solution(record, numbers.get(record.key, {}), shapes, formulas) for record in records],
        "formulas": formulas.trees,
    }


def _solution(
    record: Record, numbers: Mapping[str, Any], shapes: Mapping[Role, Shape], formulas: Formulas
) -> dict[str, Any]:
    extracted = numbers.get("extracted")
    return {
        "sample": record.sample,
        "correct": bool(numbers["correct"]) if numbers.get("graded") else None,
        "extracted": formulas.answer(extracted) if isinstance(extracted, str) else None,
        "end": record.end_reason,
        "error": record.error,
        "tokens": {role: rounded(numbers.get(f"tokens_{role}")) for role in ROLES},
        "flops": {accounting: rounded(numbers.get(f"flops_{accounting}")) for accounting in ACCOUNTINGS},
        "steps": [
            [_proposal(proposal, shapes, formulas) for proposal in step]
            for _, step in groupby(record.proposals, key=lambda proposal: proposal.step)
        ],
    }


def _proposal(proposal: Proposal, shapes: Mapping[Role, Shape], formulas: Formulas) -> dict[str, Any]:
    """What is shown of a proposal, without what it has not."""
    costs = [flops(usage, shapes[role], "passes") if role in shapes else None for role, usage in proposal.usage.items()]
    own = proposal.usage.get(proposal.origin)
    told = dict(proposal.diagnostic or {})
    shown = {
        "origin": proposal.origin,
        "kept": proposal.kept,
        "accepted": proposal.accepted,
        "candidate": proposal.candidate or None,
        "text": formulas.text(proposal.text.strip("\n")),
        "reward": proposal.reward,
        "omega": proposal.omega,
        "u": proposal.u,
        "cut": proposal.finish == "length" or None,
        "tokens": own.generated if own else len(proposal.token_ids),
        "flops": add(*costs),
        "ahead": [own.drafted, own.accepted, own.passes] if own and own.drafted else None,
        "sample": told.get("sample"),
        "class": told.get("answer_class"),
        "target": formulas.text(told["target_text"]) if "target_text" in told else None,
        "target_reward": told.get("target_reward"),
    }
    return {name: value for name, value in shown.items() if value is not None}
