"""Write the tiny benchmarks, ``rsd/tiny/data/*.jsonl``: 500 questions each, equally many of a level, in mixed order.

python -m rsd.tiny.benchmark
"""

import json
from collections.abc import Callable
from pathlib import Path
from random import Random

from rsd.tiny.problems import LEVELS, WordProblem, chain
from rsd.tiny.story import story

FOLDER = Path(__file__).parent / "data"
SEED = 2501
SIZE = 500
BENCHMARKS: dict[str, tuple[Callable[[Random, int], WordProblem], tuple[int, ...]]] = {
    "tiny_chain": (chain, LEVELS),
    "tiny_story": (story, LEVELS),
    "tiny_long": (chain, (max(LEVELS) + 1,)),
}


def lines(name: str) -> list[str]:
    """The lines of benchmark `name`, no two questions alike."""
    kind, levels = BENCHMARKS[name]
    rng = Random(f"{SEED}/{name}")
    rows: dict[str, dict[str, str | int]] = {}
    for number, level in enumerate(levels, start=1):
        while len(rows) < SIZE * number // len(levels):
            problem = kind(rng, level)
            rows[problem.question] = {
                "question": problem.question,
                "answer": problem.answer,
                "level": level,
                "solution": "".join(problem.steps),
            }
    shuffled = [json.dumps(row) for row in rows.values()]
    rng.shuffle(shuffled)
    return shuffled


def main() -> None:
    """Write all three."""
    FOLDER.mkdir(exist_ok=True)
    for name in BENCHMARKS:
        (FOLDER / f"{name}.jsonl").write_text("\n".join(lines(name)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
