"""How long one question takes while others are in flight."""

from collections.abc import Iterator

import numpy as np

from rsd.models import load_models
from rsd.plan import make_plan
from tests.benchmarks.figures import Figure
from tests.benchmarks.harness import whole_run
from tests.conftest import compose_config

QUESTIONS = 200


def measure() -> Iterator[Figure]:
    """Percentiles of the time from a question's first request to its last answer, and questions a second."""
    for concurrency in (1, 8, 64):
        plan = make_plan(compose_config(f"limit={QUESTIONS}"))  # anew each time: no prompt is in the cache yet
        models = load_models(plan)
        seconds, records = whole_run(plan.method, models, plan.decoding, plan.problems, concurrency)
        times = [1000 * (record.proposals[-1].t1 - record.proposals[0].t0) for record in records]
        name = f"RSD on {QUESTIONS} questions, concurrency={concurrency}: "
        for share in (0.5, 0.99):
            yield Figure(f"{name}P{100 * share:g} of a question", float(np.quantile(times, share)), "ms")
        yield Figure(f"{name}speed", QUESTIONS / seconds, "questions/s")
