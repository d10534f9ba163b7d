"""Columns are a second way to the numbers that `summarise` and `flops_by_role` count record by record: both agree."""

import random
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rsd.cost import ACCOUNTINGS, flops_by_role
from rsd.records import Record, Usage
from rsd.report import load
from rsd.report.summary import summarise
from rsd.store import read_grades, read_records
from tests.stored import SHAPES, manifest, proposal, record, store


def odd_records(count: int, draw: random.Random) -> list[Record]:
    """Solutions of all kinds: two samples, errors, failed ones tried again, speculation, caches that are not told."""

    def usage(origin: str) -> dict[str, Usage]:
        prompt, generated = draw.randint(1, 90), draw.randint(1, 30)
        cached = draw.choice([None, *[draw.randint(0, prompt)] * 9])
        used = {origin: Usage(generated=generated, prompt=prompt, cached=cached, passes=generated)}
        if origin == "target" and draw.random() < 0.5:
            used["target"] = Usage(prompt=prompt, generated=9, drafted=12, verified=15, accepted=6, passes=3)
            used["draft"] = Usage(generated=12, passes=12, prompt=prompt, cached=0)
        if draw.random() < 0.7:
            used["prm"] = Usage(prompt=prompt, verified=generated, passes=1, cached=draw.randint(0, prompt))
        return used

    def one() -> Any:
        accepted = draw.choice([True, False, None])
        origin = "target" if accepted is None else "draft"
        return proposal(
            origin, draw.randint(1, 30), draw.choice([None, 0.7, 0.72, 0.75, 0.1]), accepted, kept=draw.random() < 0.7,
            usage=usage(origin),
        )  # fmt: skip

    records = []
    for number in range(count):
        for sample in range(2):
            if draw.random() < 0.2:
                records.append(record(f"q{number}", *([one()] * draw.randint(0, 1)), sample=sample, error="failed"))
                if draw.random() < 0.5:
                    continue
            proposals = [one() for _ in range(draw.randint(0, 6))]
            ends = draw.choice(["eos", "max_steps", "prm_context"])
            records.append(record(f"q{number}", *proposals, sample=sample, end_reason=ends))
    draw.shuffle(records)
    return records


@pytest.mark.parametrize("seed", range(3))
def test_frames_agree_with_the_summary_and_the_cost(tmp_path: Path, seed: int) -> None:
    """Columns are a second way to the numbers that `summarise` and `flops_by_role` count record by record."""
    folder = store(
        tmp_path, "odd", odd_records(60, random.Random(seed)), {f"q{i}" for i in range(0, 60, 3)}, manifest(size=60)
    )
    read = read_records(folder)
    summary = summarise(read.values(), read_grades(folder), SHAPES, delta=0.7, context=20)
    row = load(tmp_path).iloc[0]
    assert (row["questions"], row["records"], row["errors"], row["judged"]) == (
        summary.questions, summary.records, summary.errors, summary.judged,
    )  # fmt: skip
    assert (row["accuracy"], row["acceptance"], row["acceptance_tokens"], row["draft_only"]) == pytest.approx(
        (summary.accuracy, summary.acceptance_rate, summary.acceptance_rate_tokens, summary.draft_only)
    )
    assert (row["low"], row["high"]) == pytest.approx(summary.interval)
    assert row["interval_method"] == summary.interval_method == "bootstrap"
    assert (row["near_delta"], row["beyond_context"]) == (summary.near_delta, summary.beyond_context)
    assert (row["steps"], row["response_tokens"]) == pytest.approx((summary.steps, summary.response_tokens))
    assert {r: row[f"end_{r}"] for r in summary.end_reasons} == dict(summary.end_reasons)
    works = summary.work
    assert [row[f"tokens_{role}"] * len(read) for role in works] == pytest.approx([w.tokens for w in works.values()])
    assert row["wasted_tokens"] * len(read) == pytest.approx(works["draft"].discarded)
    for accounting in ACCOUNTINGS:
        expected = summary.flops[accounting]
        found = row[f"flops_{accounting}"]
        assert pd.isna(found) if expected is None else found == pytest.approx(expected, rel=1e-12)
    solutions = load(tmp_path, rows="solutions").set_index(["question_id", "sample"])
    for key, one in read.items():
        for accounting, roles in flops_by_role(one.proposals, SHAPES).items():
            found = solutions.loc[key, f"flops_{accounting}"]
            assert pd.isna(found) if None in roles.values() else found == sum(v for v in roles.values() if v)
