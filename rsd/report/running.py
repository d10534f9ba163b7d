"""A run in numbers while it goes on, for loggers; at its end they are those of its summary.

running = Running(shapes)
running.add(record, grade)
running.metrics()   # {"questions": 1, "accuracy": 1.0, …}
"""

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rsd.cost import ACCOUNTINGS, Accounting, Shape, add, flops_by_role, ratio
from rsd.records import Record, Role
from rsd.store import GradeRecord


@dataclass(slots=True)
class _Sums:
    records: int = 0
    right: int = 0
    judged: int = 0
    accepted: int = 0


class Running:
    """Sums over the records so far. `shapes`: of the run's models. `before`: records and grades of earlier
    invocations, which count but for the speed."""

    def __init__(self, shapes: Mapping[Role, Shape], before: Iterable[tuple[Record, GradeRecord | None]] = ()) -> None:
        self._shapes = shapes
        self._sums = _Sums()
        self._tokens: Counter[Role] = Counter()
        self._flops: dict[Accounting, int | None] = dict.fromkeys(ACCOUNTINGS, 0)
        for record, grade in before:
            self.add(record, grade)
        self._earlier = self._sums.records
        self._began = time.monotonic()

    def add(self, record: Record, grade: GradeRecord | None) -> None:
        """Count a record with its grade; without one, decoding failed, and it is wrong."""
        sums = self._sums
        sums.records += 1
        sums.right += grade is not None and grade.correct
        for proposal in record.proposals:
            sums.judged += proposal.accepted is not None
            sums.accepted += bool(proposal.accepted)
            for role, usage in proposal.usage.items():
                self._tokens[role] += usage.verified if role == "prm" else usage.generated
        for accounting, roles in flops_by_role(record.proposals, self._shapes).items():
            self._flops[accounting] = add(self._flops[accounting], *roles.values())

    def metrics(self) -> dict[str, float | None]:
        """Records so far (`questions`; each sample of a question is one), shares, tokens that each model wrote or
        scored, FLOPs per record, and records per second of this invocation. None: over nothing, or not measured."""
        sums, seconds = self._sums, time.monotonic() - self._began
        return {
            "questions": sums.records,
            "accuracy": ratio(sums.right, sums.records),
            "acceptance_rate": ratio(sums.accepted, sums.judged),
            "questions_per_second": ratio(sums.records - self._earlier, seconds),
            **{f"tokens/{role}": count for role, count in self._tokens.items()},
            **{f"flops/{accounting}": ratio(cost, sums.records) for accounting, cost in self._flops.items()},
        }
