"""Benchmarks from JSON-lines files; the command line's tests hold what makes a file wrong."""

import json
from collections import Counter
from pathlib import Path

import pytest

from rsd.benchmarks.hub import HubBenchmark
from rsd.benchmarks.jsonl import JsonLinesBenchmark, data_hash
from rsd.config import build
from rsd.errors import DataError
from rsd.plan import make_plan
from tests.conftest import SHARED, compose_config


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


@pytest.mark.parametrize(
    ("name", "size", "first"), [("math500", 500, "\\left( 3, \\frac{\\pi}{2} \\right)"), ("gsm8k", 1319, "18")]
)
def test_a_hub_benchmark_reads_a_local_file_of_the_same_fields(name: str, size: int, first: str) -> None:
    config = compose_config(f"benchmark={name}", f"benchmark.path={SHARED / 'benchmarks' / name}.jsonl")
    problems = build(config.benchmark, "benchmark").problems()
    assert len(problems) == size
    assert problems[0].answer == first


def test_a_worked_answer_without_the_pattern_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "b.jsonl"
    path.write_text('{"question": "1+1?", "answer": "1+1=2\\n#### 2"}\n{"question": "2+2?", "answer": "4"}\n')
    benchmark = JsonLinesBenchmark(name="b", path=str(path), answer_pattern="#### (.+)")
    with pytest.raises(DataError, match=r"line 2 .* no gold answer of the form #### \(\.\+\)"):
        benchmark.problems()


def test_without_a_network_the_sentence_names_both_ways_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("datasets.load_dataset", _no_network)
    benchmark = HubBenchmark(name="math500", hub="HuggingFaceH4/MATH-500", split="test")
    with pytest.raises(DataError, match=r"benchmark\.path=FILE.*python -m rsd\.fetch benchmark=math500"):
        benchmark.problems()


def _no_network(*_: object, **__: object) -> None:
    raise ConnectionError("no route to the hub")
