"""One run in numbers: accuracy, acceptance, tokens and FLOPs.

A pure function of records, grades and model shapes::

    summary = summarise(records.values(), grades, shapes, delta=0.7)
    Path("summary.json").write_bytes(orjson.dumps(summary.to_json()))
    rich.print(render(summary, title="rsd delta=0.7"))

Whatever is "per question" is a mean over records: the price of answering a question once. With
several samples per question, accuracy is the mean over questions of the share of right samples.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock

from rsd.cost import ACCOUNTINGS, Accounting, Shape, add, flops_by_role
from rsd.errors import StoreError
from rsd.records import Proposal, Record, Role, Usage
from rsd.report.statistics import Interval, Samples, bootstrap, wilson
from rsd.store import GradeRecord, Key, is_error, read_grades, read_manifest, read_records, write_json

NEAR_DELTA = 0.02  # a reward this close to delta could have fallen on the other side of it
ROLES: tuple[Role, ...] = ("draft", "target", "prm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What one role did in a run.

    `calls`: proposals of a policy (or those that it drafted ahead for), forward passes of a PRM. `tokens`: written
    by a policy (delimiter and EOS included), scored by a PRM. `discarded`: those of them in proposals that
    were not kept, or that the target did not take over from its drafter. `flops`: per question; None where
    not measured.
    """

    calls: int
    tokens: int
    discarded: int
    flops: Mapping[Accounting, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The numbers of one run. A share or mean over nothing is None.

    `judged` proposals are the draft's that the acceptance criterion decided; the acceptance rates
    are the shares of them, and of their tokens, that it accepted. `draft_only`: share of questions
    answered without a target call, right or wrong. `near_delta`: judged proposals whose reward lies
    within 0.02 of `delta`; None without a delta. `beyond_context`: proposals scored with more tokens
    than the PRM was trained on; None where that is unknown. `flops`: per question, all roles together.
    """

    questions: int
    records: int
    errors: int
    accuracy: float | None
    interval: Interval | None
    interval_method: Literal["wilson", "bootstrap"]
    judged: int
    accepted: int
    acceptance_rate: float | None
    acceptance_rate_tokens: float | None
    draft_only: float | None
    delta: float | None
    near_delta: int | None
    beyond_context: int | None
    steps: float | None
    response_tokens: float | None
    end_reasons: Mapping[str, int]
    work: Mapping[Role, Work]
    flops: Mapping[Accounting, float | None]

    def to_json(self) -> dict[str, Any]:
        """Plain dicts, numbers and lists, unrounded, as they stand in ``summary.json``."""
        return {**asdict(self), "interval": list(self.interval) if self.interval else None}


def summarise(
    records: Iterable[Record],
    grades: Mapping[Key, GradeRecord],
    shapes: Mapping[Role, Shape],
    delta: float | None = None,
    context: int | None = None,
) -> Summary:
    """Sum up a run's `records`, its last line for each sample of each question, with their `grades`.

    Errors count as wrong. The interval of accuracy is Wilson's where every question has one sample
    and a two-level bootstrap's otherwise: a mean over samples is not a 0/1 outcome. There is none of questions
    that nobody grades (open-ended text). `context`: tokens that the PRM was trained on. Raises StoreError
    when a record without an error has no grade.
    """
    records = list(records)
    samples = right_of_samples(records, grades)
    single = len(records) == len(samples)
    right = sum(right for right, _ in samples.values())
    proposals = [proposal for record in records for proposal in record.proposals]
    judged = [proposal for proposal in proposals if proposal.accepted is not None]
    accepted = [proposal for proposal in judged if proposal.accepted]
    kept = [proposal for proposal in proposals if proposal.kept]
    by_role = flops_by_role(proposals, shapes)
    interval = None
    graded = any(is_error(record) or grades[record.key].reason != "not graded" for record in records)
    if graded:
        interval = wilson(right, len(records)) if single else bootstrap(samples)
    return Summary(
        questions=len(samples),
        records=len(records),
        errors=sum(map(is_error, records)),
        accuracy=_ratio(sum(right / count for right, count in samples.values()), len(samples)) if graded else None,
        interval=interval,
        interval_method="wilson" if single else "bootstrap",
        judged=len(judged),
        accepted=len(accepted),
        acceptance_rate=_ratio(len(accepted), len(judged)),
        acceptance_rate_tokens=_ratio(_tokens(accepted), _tokens(judged)),
        draft_only=_ratio(sum(_draft_only(record) for record in records), len(records)),
        delta=delta,
        near_delta=None if delta is None else sum(_near(proposal, delta) for proposal in judged),
        beyond_context=None if context is None else sum(_beyond(proposal, context) for proposal in proposals),
        steps=_ratio(len(kept), len(records)),
        response_tokens=_ratio(_tokens(kept), len(records)),
        end_reasons=dict(Counter(record.end_reason for record in records).most_common()),
        work={
            role: _work(role, proposals, {a: _ratio(by_role[a][role], len(records)) for a in ACCOUNTINGS})
            for role in ROLES
            if role in by_role["passes"]
        },
        flops={a: _ratio(add(*by_role[a].values()), len(records)) for a in ACCOUNTINGS},
    )


def write_summary(folder: Path, *, delta: float | None, context: int | None) -> None:
    """Write a run's ``summary.json``, of all its records that are graded. Raises StoreError."""
    shapes = {role: Shape(**shape) for role, shape in read_manifest(folder)["shapes"].items()}
    with FileLock(folder / "summary.guard"):  # else what a shard has read before another one could be written after it
        records, grades = read_records(folder), read_grades(folder)
        whole = [record for key, record in records.items() if is_error(record) or key in grades]
        write_json(folder / "summary.json", summarise(whole, grades, shapes, delta=delta, context=context).to_json())


def right_of_samples(records: Iterable[Record], grades: Mapping[Key, GradeRecord]) -> Samples:
    """For each question, how many of its samples are right, and how many there are; errors are wrong.

    Raises StoreError when a record without an error has no grade.
    """
    verdicts = defaultdict(list)
    for record in records:
        answered = not is_error(record)
        if answered and record.key not in grades:
            raise StoreError(
                f"question {record.question_id}, sample {record.sample} has no grade; grade the run before reporting it"
            )
        verdicts[record.question_id].append(answered and grades[record.key].correct)
    return {question: (sum(right), len(right)) for question, right in verdicts.items()}


def _work(role: Role, proposals: list[Proposal], flops: Mapping[Accounting, float | None]) -> Work:
    if role == "prm":
        usages = [(proposal.usage["prm"], proposal.kept) for proposal in proposals if "prm" in proposal.usage]
        return Work(
            calls=sum(usage.passes for usage, _ in usages),
            tokens=sum(usage.verified for usage, _ in usages),
            discarded=sum(usage.verified for usage, kept in usages if not kept),
            flops=flops,
        )
    own = [p for p in proposals if p.origin == role]
    assisted = [p for p in proposals if p.origin != role and p.usage.get(role, Usage()).generated]
    in_vain = sum(p.usage[p.origin].drafted - p.usage[p.origin].accepted for p in assisted)
    return Work(
        calls=len(own) + len(assisted),
        tokens=sum(p.usage[role].generated for p in (*own, *assisted)),
        discarded=sum(p.usage[role].generated for p in own if not p.kept) + in_vain,
        flops=flops,
    )


def _tokens(proposals: Iterable[Proposal]) -> int:
    return sum(len(proposal.token_ids) for proposal in proposals)


def _draft_only(record: Record) -> bool:
    idle = all(proposal.usage.get("target", Usage()) == Usage() for proposal in record.proposals)
    return idle and not is_error(record)


def _near(proposal: Proposal, delta: float) -> bool:
    return proposal.reward is not None and abs(proposal.reward - delta) <= NEAR_DELTA


def _beyond(proposal: Proposal, context: int) -> bool:
    return "prm" in proposal.usage and proposal.usage["prm"].prompt > context


def _ratio(part: float | None, whole: float) -> float | None:
    return None if part is None or not whole else part / whole
