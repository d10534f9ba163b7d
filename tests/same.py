"""When the records of one run count as those of another."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from rsd.records import Proposal, Record, Usage
from rsd.store import Key

ROUNDED = ("reward", "logprob_draft", "logprob_target", "omega", "diagnostic")


def assert_same(some: Mapping[Key, Record], others: Mapping[Key, Record], *, cached: bool = True) -> None:
    """Equal in all that does not differ from one time to the next, usage included, and what caches served if `cached`.

    A model that is asked after another run was answered from a memo reads in one go what it else would have read, or
    written, piece by piece: numbers are equal but for rounding in float32. What was decided by them is the same.
    """

    def usage(used: Usage) -> Usage:
        return used if cached else replace(used, cached=None)

    def without(proposal: Proposal) -> Proposal:
        used = {role: usage(used) for role, used in proposal.usage.items()}
        return replace(proposal, t0=0, t1=0, usage=used, **dict.fromkeys(ROUNDED))

    def timeless(record: Record) -> Record:
        return replace(record, invocation=0, proposals=tuple(map(without, record.proposals)))

    assert some.keys() == others.keys()
    for key, record in some.items():
        assert timeless(record) == timeless(others[key])
        for one, other in zip(record.proposals, others[key].proposals, strict=True):
            for name in ROUNDED:
                assert getattr(one, name) == pytest.approx(getattr(other, name), abs=2e-5)
