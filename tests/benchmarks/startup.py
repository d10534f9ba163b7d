"""What a user waits for: the help text, and 100 questions from a cold start."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from statistics import median

from tests.benchmarks.figures import REPETITIONS, Figure


def measure() -> Iterator[Figure]:
    """Wall time of two commands, interpreter and imports included."""
    shown = median(_seconds("rsd.run", "--help") for _ in range(REPETITIONS))
    yield Figure("python -m rsd.run --help", shown, "s", at_most=2)
    runs = []
    for _ in range(REPETITIONS):
        with tempfile.TemporaryDirectory() as results:
            runs.append(_seconds("rsd.run", "limit=100", f"results_dir={results}"))
    yield Figure("python -m rsd.run limit=100", median(runs), "s", at_most=60)


def _seconds(*command: str) -> float:
    """Wall time of a command that must succeed."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", *command], check=True, capture_output=True)
    return time.perf_counter() - start
