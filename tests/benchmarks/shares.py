"""Where the time of a whole RSD run goes, and how many tokens it runs beside the least possible."""

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import rsd.runner
from rsd.engines.batched import BatchedClassifier, BatchedPolicy
from rsd.engines.batcher import Batcher
from rsd.models import load_models
from rsd.plan import make_plan
from rsd.records import Role
from rsd.store import JsonLines
from tests.benchmarks.figures import Figure
from tests.benchmarks.harness import whole_run
from tests.conftest import compose_config
from tests.tokens import least_tokens

QUESTIONS = 200
# a function's own time, without that of those below it, belongs to its part; the forward passes are the engine's count
PARTS = (
    (Batcher, "tick", "scheduling"),
    (BatchedPolicy, "advance", "choosing tokens"),
    (BatchedClassifier, "advance", "choosing tokens"),
    (BatchedPolicy, "_decode", "detokenising"),
    (rsd.runner, "dump", "records"),
    (JsonLines, "append", "records"),
)
ROLES: tuple[Role, ...] = ("draft", "target", "prm")


def measure() -> Iterator[Figure]:
    """Tokens, then shares of the wall time."""
    plan = make_plan(compose_config(f"limit={QUESTIONS}"))
    spent = OwnTimes()
    with ExitStack() as stack:
        for owner, name, part in PARTS:
            stack.enter_context(patch.object(owner, name, spent.timed(part, getattr(owner, name))))
        models = load_models(plan)
        seconds, records = whole_run(plan.method, models, plan.decoding, plan.problems)
    totals = plan.engine.totals()
    for role in ROLES:
        least = sum(least_tokens(record, role) for record in records)
        yield Figure(f"tokens that the {role} ran", totals[role].tokens, f"of at least {least:,}")
        yield Figure(f"tokens that the {role} ran / least", totals[role].tokens / least, "x", at_most=1.1)
    forwards = sum(totals[role].seconds for role in ROLES)
    parts = {**spent.parts, "forward passes": forwards, "scheduling": spent.parts["scheduling"] - forwards}
    parts["other"] = seconds - sum(parts.values())
    for part in sorted(parts, key=lambda part: -parts[part]):
        yield Figure(f"RSD on {QUESTIONS} questions: {part}", 100 * parts[part] / seconds, "% of the time")


class OwnTimes:
    """Seconds of each part in `parts`, without what was called from it and has a part of its own."""

    def __init__(self) -> None:
        self.parts: defaultdict[str, float] = defaultdict(float)
        self._inner = [0.0]  # of each timed call in progress: seconds of the timed calls below it

    def timed(self, part: str, function: Any) -> Any:
        """`function`, with its own time added to `part`."""

        def call(*args: Any, **kwargs: Any) -> Any:
            self._inner.append(0.0)
            began = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                seconds = time.perf_counter() - began
                self.parts[part] += seconds - self._inner.pop()
                self._inner[-1] += seconds

        return call
