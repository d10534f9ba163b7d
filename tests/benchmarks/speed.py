"""What this project promises about time: ``make bench``. Every figure is of one run on one machine.

Sides of a comparison take turns in one process, five times each; a figure is the median. The exit status is
1 where a claim is missed.

    python -m tests.benchmarks.speed
"""

import sys
from collections.abc import Iterator

from transformers.utils import logging

from tests.benchmarks import (
    generation,
    grading,
    latency,
    lockstep,
    overhead,
    reports,
    scheduling,
    served,
    shares,
    startup,
)
from tests.benchmarks.figures import Figure


def figures() -> Iterator[Figure]:
    """All that is measured, as it comes."""
    yield from startup.measure()
    yield from overhead.measure()
    yield from generation.measure("target", "M", claimed=True)
    yield from generation.measure("draft", "S", claimed=False)
    yield from lockstep.measure("tiny_chain", claimed=True)
    yield from lockstep.measure("tiny_long", claimed=False)  # 7 steps an answer, not 4
    yield from shares.measure()
    yield from latency.measure()
    yield from grading.measure()
    yield from reports.measure()
    yield from scheduling.measure()
    yield from served.measure()


def main() -> int:
    """Print every figure beside its claim; return the exit status."""
    logging.disable_progress_bar()
    missed = []
    for figure in figures():
        print(figure, flush=True)
        if not figure.holds:
            missed.append(figure)
    for figure in missed:
        print(f"Missed: {' '.join(str(figure).split())}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
