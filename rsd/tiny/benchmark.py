"""Write ``rsd/tiny/data/tiny_chain.jsonl``: 500 questions, 100 of each level, in mixed order.

python -m rsd.tiny.benchmark
"""

import json
from pathlib import Path
from random import Random

from rsd.tiny.problems import LEVELS, chain

PATH = Path(__file__).parent / "data" / "tiny_chain.jsonl"
SEED = 2501


def main() -> None:
    """Draw the questions, no two alike, and write them."""
    rng = Random(SEED)
    rows: dict[str, dict[str, str | int]] = {}
    for level in LEVELS:
        while len(rows) < 100 * level:
            problem = chain(rng, level)
            rows[problem.question] = {
                "question": problem.question,
                "answer": problem.answer,
                "level": level,
                "solution": "".join(problem.steps),
            }
    lines = [json.dumps(row) for row in rows.values()]
    rng.shuffle(lines)
    PATH.parent.mkdir(exist_ok=True)
    PATH.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
