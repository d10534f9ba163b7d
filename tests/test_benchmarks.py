"""Benchmarks from JSON-lines files; the command line's tests hold what makes a file wrong."""

import json
from collections import Counter
from pathlib import Path

from rsd.benchmarks.jsonl import JsonLinesBenchmark, data_hash
from rsd.plan import make_plan
from tests.conftest import compose_config


def test_fields_are_named_and_the_rest_of_the_row_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "b.jsonl"
    path.write_text('{"problem": "1+1?", "gold": 2, "level": 3}\n\n{"problem": "1+1?", "gold": "2", "level": 1}\n')
    problems = JsonLinesBenchmark(name="b", path=str(path), question="problem", answer="gold").problems()
    assert [(p.question, p.answer, dict(p.row)) for p in problems] == [
        ("1+1?", "2", {"level": 3}),
        ("1+1?", "2", {"level": 1}),
    ]
    assert problems[1].question_id == problems[0].question_id + "-2"


def test_unicode_line_separators_do_not_split_a_row(tmp_path: Path) -> None:
    path = tmp_path / "b.jsonl"
    path.write_text(json.dumps({"question": "a\u2028b\x85c", "answer": "1"}, ensure_ascii=False) + "\n")
    (problem,) = JsonLinesBenchmark(name="b", path=str(path)).problems()
    assert problem.question == "a\u2028b\x85c"


def test_the_fingerprint_depends_on_questions_golds_and_order(tmp_path: Path) -> None:
    def fingerprint(*rows: tuple[str, str]) -> str:
        path = tmp_path / "b.jsonl"
        path.write_text("".join(json.dumps({"question": q, "answer": a}) + "\n" for q, a in rows))
        return data_hash(JsonLinesBenchmark(name="b", path=str(path)).problems())

    assert fingerprint(("a", "1"), ("b", "2")) == fingerprint(("a", "1"), ("b", "2"))
    variants = [(("a", "1"), ("b", "2")), (("b", "2"), ("a", "1")), (("a", "1"), ("b", "3")), (("a", "1"),)]
    assert len({fingerprint(*rows) for rows in variants}) == 4


def test_tiny_chain_has_500_questions_of_five_levels() -> None:
    plan = make_plan(compose_config("benchmark=tiny_chain"))
    assert plan.size == len(plan.problems) == 500
    assert Counter(problem.row["level"] for problem in plan.problems) == dict.fromkeys(range(1, 6), 100)
    assert len({problem.question for problem in plan.problems}) == 500
