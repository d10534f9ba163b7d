"""What this project promises about time: ``make bench``. Every figure is of one run on one machine.

python -m tests.benchmarks.speed
"""

import subprocess
import sys
import tempfile
import time
from statistics import median

REPETITIONS = 5


def seconds(*command: str) -> float:
    """Wall time of a command that must succeed."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", *command], check=True, capture_output=True)
    return time.perf_counter() - start


def main() -> None:
    """Print the median of five of each."""
    shown = [seconds("rsd.run", "--help") for _ in range(REPETITIONS)]
    print(f"python -m rsd.run --help      median {median(shown):6.2f} s of {REPETITIONS} (at most 2)")
    runs = []
    for _ in range(REPETITIONS):
        with tempfile.TemporaryDirectory() as results:
            runs.append(seconds("rsd.run", "limit=100", f"results_dir={results}"))
    print(f"python -m rsd.run limit=100   median {median(runs):6.2f} s of {REPETITIONS} (at most 60)")


if __name__ == "__main__":
    main()
