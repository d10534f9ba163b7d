"""FLOPs relative to the target alone: the right baseline, on common questions only."""

from pathlib import Path

import pytest

from rsd.cost import Shape, flops_by_role
from rsd.invocation import invoke
from rsd.plan import make_plan
from rsd.report.relative import relative_to_target
from rsd.store import read_manifest, read_records
from tests.conftest import compose_config


def done(results: Path, *overrides: str) -> Path:
    config = compose_config(f"results_dir={results}", *overrides)
    invoke(config)
    return make_plan(config).folder


def passes(folder: Path, questions: set[str]) -> int:
    shapes = {role: Shape(**shape) for role, shape in read_manifest(folder)["shapes"].items()}
    records = [r for r in read_records(folder).values() if r.question_id in questions]
    costs = flops_by_role((p for r in records for p in r.proposals), shapes)["passes"]
    return sum(cost for cost in costs.values() if cost is not None)


def test_the_target_alone_is_found_and_compared_on_common_questions(tmp_path: Path) -> None:
    rsd = done(tmp_path, "limit=8")
    records = read_records(rsd)
    assert relative_to_target(rsd, records.values()) is None
    done(tmp_path, "limit=8", "method=single", "method.role=target", "seed=1")  # another seed
    done(tmp_path, "limit=8", "method=single", "method.role=target", "limits.steps=9")  # other limits
    done(tmp_path, "limit=8", "method=single", "method.role=draft")
    done(tmp_path, "limit=8", "delta=0.9")
    assert relative_to_target(rsd, records.values()) is None
    alone = done(tmp_path, "limit=3", "method=single", "method.role=target")
    ratios = relative_to_target(rsd, records.values())
    assert ratios is not None
    common = {question for question, _ in read_records(alone)}
    assert len(common) == 3
    assert ratios["passes"] == pytest.approx(passes(rsd, common) / passes(alone, common))


def test_the_target_alone_costs_as_much_as_itself(tmp_path: Path) -> None:
    alone = done(tmp_path, "limit=2", "method=single", "method.role=target")
    assert relative_to_target(alone, read_records(alone).values()) == {"passes": 1.0, "positions": 1.0, "full": 1.0}
    draft = done(tmp_path, "limit=2", "method=single", "method.role=draft")
    ratios = relative_to_target(draft, read_records(draft).values())
    assert ratios is not None
    assert 0 < (ratios["passes"] or 0) < 1


def test_what_is_drawn_is_compared_with_the_target_under_the_same_sampling_or_else_greedy(tmp_path: Path) -> None:
    votes = done(tmp_path, "limit=2", "method=majority", "method.n=3")
    assert relative_to_target(votes, read_records(votes).values()) is None
    questions = {question for question, _ in read_records(votes)}
    for sampling in ([], ["sampling.temperature=0.7", "sampling.top_p=0.8"]):
        alone = done(tmp_path, "limit=2", "method=single", "method.role=target", *sampling)
        ratios = relative_to_target(votes, read_records(votes).values())
        assert ratios is not None
        assert ratios["passes"] == pytest.approx(passes(votes, questions) / passes(alone, questions))
