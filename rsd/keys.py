"""Random numbers by key: every draw has a name of its own, so no draw depends on another::

seed = keyed_seed(run_seed=0, question_id="3fa9c1d2e0aa", sample=0, step=2, role="draft")
"""

import hashlib
import json
from random import Random


def keyed_seed(
    *, run_seed: int, question_id: str, sample: int, step: int, role: str, candidate: int = 0, piece: int = 0
) -> int:
    """63 non-negative bits of BLAKE2b over the key, written unambiguously as a JSON list.

    `role` is ``draft``, ``target`` or ``accept``; `candidate` is the index within the step; `piece`
    counts the calls inside one proposal, which has more than one only when blank text came first.
    """
    key = json.dumps([run_seed, question_id, sample, step, role, candidate, piece])
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "big") >> 1


def uniform(seed: int) -> float:
    """The first number in [0, 1) that `seed` gives."""
    return Random(seed).random()
