"""Benchmarks from JSON-lines files; the command line's tests hold what makes a file wrong."""

import json
from collections import Counter
from functools import cache
from pathlib import Path

import datasets
import pytest

from rsd.benchmarks.hub import HubBenchmark
from rsd.benchmarks.jsonl import JsonLinesBenchmark, data_hash
from rsd.config import build
from rsd.errors import ConfigError, DataError
from rsd.grading import grade
from rsd.grading.audit import verdict
from rsd.plan import make_plan
from rsd.records import Problem
from tests.conftest import ROOT, SHARED, compose_config


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


@pytest.mark.parametrize(
    ("ending", "content"),
    [
        ("jsonl", '{"question": "1+1?", "answer": 2}'),
        ("json", '[{"question": "1+1?", "answer": 2}]'),
        ("csv", "question,answer\n1+1?,2\n"),
    ],
)
def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path, ending: str, content: str) -> None:
    path = tmp_path / f"mine.{ending}"
    path.write_text(content, encoding="utf-8-sig")
    (problem,) = JsonLinesBenchmark(name="mine", path=str(path)).problems()
    assert (problem.question, problem.answer) == ("1+1?", "2")


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


NAMED = {
    "math500": 500, "gsm8k": 1319, "gaokao2023en": 385, "olympiadbench": 675, "mmlu_stem": 3018, "minerva_math": 272,
    "cn_middle_school": 101, "college_math": 2818,
}  # fmt: skip
UNGRADABLE = {"gaokao2023en": 2}  # golds that are the empty string


@cache
def load(name: str, *overrides: str) -> list[Problem]:
    path = SHARED / "benchmarks" / f"{name}.jsonl"
    config = compose_config(f"benchmark={name}", f"benchmark.path={path}", *overrides)
    problems: list[Problem] = build(config.benchmark, "benchmark").problems()
    return problems


@pytest.mark.parametrize(("name", "size"), NAMED.items())
def test_public_files_load_whole(name: str, size: int) -> None:
    problems = load(name)
    assert len(problems) == size == compose_config(f"benchmark={name}").benchmark["size"]
    assert len({problem.question_id for problem in problems}) == size
    assert all(problem.question.strip() for problem in problems)


@pytest.mark.parametrize("name", NAMED)
def test_golds_equal_themselves_but_for_the_published_list(name: str) -> None:
    assert sum(verdict(problem) == "ungradable" for problem in load(name)) == UNGRADABLE.get(name, 0)
    assert {verdict(problem) for problem in load(name)} <= {"equal", "text", "ungradable"}
    blank = [number for number, problem in enumerate(load(name)) if not problem.answer.strip()]
    assert blank == ([167, 192] if name == "gaokao2023en" else [])


@pytest.mark.parametrize(
    ("name", "number", "question", "answer"),
    [
        ("math500", 0, "Convert the point $(0,3)$", r"\left( 3, \frac{\pi}{2} \right)"),
        ("gsm8k", 0, "Janet’s ducks lay 16 eggs", "18"),
        ("minerva_math", 0, "Each of the two Magellan telescopes", "1.6"),
        ("college_math", 0, "Simplify: $-10-4(n-5)$", "$10-4 n$"),
        ("olympiadbench", 0, "Xenia and Sergey play", "2"),
        ("gaokao2023en", 2, "Vectors $", "-1"),
        ("cn_middle_school", 0, "下列四个数中", "A"),
    ],
)
def test_question_and_gold(name: str, number: int, question: str, answer: str) -> None:
    problem = load(name)[number]
    assert problem.question.startswith(question)
    assert problem.answer == answer


def test_the_kind_belongs_to_the_problem() -> None:
    problems = load("cn_middle_school")
    assert Counter(problem.kind for problem in problems) == {"choice": 41, "math": 60}
    assert problems[0].choices == ("-2", "0", "3", "-1/2")
    assert grade(gold="A", response=r"\boxed{-2}", kind="choice", choices=problems[0].choices).correct


def test_multiple_choice_lists_its_options() -> None:
    problem = load("mmlu_stem")[1]
    assert problem.kind == "choice"
    assert problem.choices is not None
    assert problem.question.splitlines()[-1] == "Answer Choices: " + " ".join(
        f"({letter}) {choice}" for letter, choice in zip("ABCD", problem.choices, strict=True)
    )
    assert load("mmlu_stem")[0].answer == "C"
    assert set(Counter(p.answer for p in load("mmlu_stem"))) == set("ABCD")


def gpqa_rows(count: int) -> list[dict[str, str]]:
    options = ("Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")
    return [{"Question": f"Which is {n}?", **{name: f"{name} {n}" for name in options}} for n in range(count)]


def test_options_of_gpqa_stand_in_a_fixed_order_without_a_favourite_letter(tmp_path: Path) -> None:
    path = tmp_path / "gpqa.jsonl"
    path.write_text("\n".join(map(json.dumps, gpqa_rows(400))))
    config = compose_config("benchmark=gpqa_diamond", f"benchmark.path={path}")
    problems = build(config.benchmark, "benchmark").problems()
    assert problems == build(config.benchmark, "benchmark").problems()
    for number, problem in enumerate(problems):
        assert problem.choices["ABCD".index(problem.answer)] == f"Correct Answer {number}"
        assert problem.row["order"].index(0) == "ABCD".index(problem.answer)
    letters = Counter(problem.answer for problem in problems)
    assert all(70 <= letters[letter] <= 130 for letter in "ABCD")  # 100 each, ± 3.5 standard deviations


HUB_ROWS = {
    "gsm8k": {"question": "1+1?", "answer": "1+1=2\n#### 2"},
    "minerva_math": {"question": "1+1?", "answer": "2"},
    "mmlu_stem": {"question": "1+1?", "subject": "astronomy", "choices": ["1", "2"], "answer": 1},
    "olympiadbench": {"question": "1+1?", "final_answer": ["2"]},
    "gaokao2023en": {"question": "1+1?", "answer": "2"},
    "math500": {"problem": "1+1?", "answer": "2", "level": 1, "subject": "Algebra", "solution": "…", "unique_id": "a"},
    "alpaca_eval": {"instruction": "Say 2.", "output": "2", "generator": "x", "dataset": "y"},
}


@pytest.mark.parametrize(
    ("name", "ending"),
    [
        (name, ending)
        for name, row in HUB_ROWS.items()
        for ending in ("jsonl", "json", "parquet", "csv")
        if ending != "csv" or not any(isinstance(value, list) for value in row.values())  # a CSV holds no lists
    ],
)
def test_files_of_every_kind_with_the_columns_of_the_hub(tmp_path: Path, name: str, ending: str) -> None:
    path = tmp_path / f"rows.{ending}"
    match ending:
        case "jsonl":
            path.write_text(json.dumps(HUB_ROWS[name]) + "\n")
        case "json":
            path.write_text(json.dumps([HUB_ROWS[name]]))
        case _:
            getattr(datasets.Dataset.from_list([HUB_ROWS[name]]), f"to_{ending}")(str(path))
    (problem,) = build(compose_config(f"benchmark={name}", f"benchmark.path={path}").benchmark, "benchmark").problems()
    assert problem.answer == {"mmlu_stem": "B", "alpaca_eval": ""}.get(name, "2")
    assert problem.kind == {"mmlu_stem": "choice", "alpaca_eval": "text"}.get(name, "math")


def test_rows_of_the_hub_are_read_like_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def hub(path: str, config: str | None, **rest: object) -> datasets.Dataset:
        asked.append((path, config, rest))
        return datasets.Dataset.from_list([{**HUB_ROWS["mmlu_stem"], "question": f"{config}?"}])

    monkeypatch.setattr("datasets.load_dataset", hub)
    benchmark = build(compose_config("benchmark=mmlu_stem").benchmark, "benchmark")
    assert isinstance(benchmark, HubBenchmark)
    problems = benchmark.problems()
    assert len(problems) == len(asked) == 18
    assert problems[0].question.startswith("abstract_algebra?\nAnswer Choices: (A) 1 (B) 2")
    assert asked[0] == ("cais/mmlu", "abstract_algebra", {"split": "test", "revision": None})


def test_hints_for_yes_no_and_true_false(tmp_path: Path) -> None:
    path = tmp_path / "b.jsonl"
    rows = [("Is it?", "Yes"), ("Is it not?", "false"), ("How many?", "2")]
    path.write_text("\n".join(json.dumps({"question": q, "answer": a}) for q, a in rows))
    build_hinted = lambda hint: [  # noqa: E731
        p.question
        for p in build(
            compose_config("benchmark=custom", f"benchmark.path={path}", f"benchmark.answer_hint={hint}").benchmark,
            "benchmark",
        ).problems()
    ]
    assert build_hinted("true") == ["Is it? (Yes or No)", "Is it not? (True or False)", "How many?"]
    assert build_hinted("false") == ["Is it?", "Is it not?", "How many?"]
    hinted = [
        problem for problem in load("college_math") if problem.question.endswith((" (Yes or No)", "(True or False)"))
    ]
    assert len(hinted) == 16


def test_a_choice_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps({"question": "2? (A) 1 (B) 2", "answer": "B", "kind": "choice", "choices": ["1", "2"]}))
    (problem,) = make_plan(compose_config("benchmark=custom", f"benchmark.path={path}")).problems
    assert (problem.kind, problem.choices) == ("choice", ("1", "2"))


def selected(*overrides: str) -> list[Problem]:
    path = SHARED / "benchmarks" / "math500.jsonl"
    return list(make_plan(compose_config("benchmark=math500", f"benchmark.path={path}", *overrides)).problems)


def test_questions_are_selected_alike_for_all() -> None:
    everything = selected()
    assert selected("limit=3", "offset=2") == everything[2:5]
    hard = selected("subset.level=5", "subset.subject=[Algebra,Geometry]")
    assert hard == [p for p in everything if p.row["level"] == 5 and p.row["subject"] in ("Algebra", "Geometry")]
    shuffled = selected("shuffle_seed=1")
    assert shuffled != everything
    assert shuffled == selected("shuffle_seed=1") != selected("shuffle_seed=2")
    assert selected("shuffle_seed=1", "limit=4") == shuffled[:4]
    assert {p.question_id for p in shuffled} == {p.question_id for p in everything}
    with pytest.raises(ConfigError, match=r"subset\.level=9: math500 has 1, 2, 3, 4, 5"):
        selected("subset.level=9")


def test_another_number_of_questions_than_expected_is_told(tmp_path: Path) -> None:
    path = tmp_path / "part.jsonl"
    path.write_text('{"problem": "1+1?", "answer": "2"}\n')
    plan = make_plan(compose_config("benchmark=math500", f"benchmark.path={path}"))
    assert "benchmark=math500 holds 1 questions, where 500 are expected." in plan.notes
    assert plan.size == 500


def test_a_worked_answer_without_the_gold_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "b.jsonl"
    path.write_text('{"question": "1+1?", "answer": "1+1=2\\n#### 2"}\n{"question": "2+2?", "answer": "2\\n4"}\n')
    with pytest.raises(DataError, match=r"line 2 .* no gold answer of the form #### \(\.\+\)"):
        build(compose_config("benchmark=gsm8k", f"benchmark.path={path}").benchmark, "benchmark").problems()


@pytest.mark.parametrize("name", ["college_math", "custom"])
def test_a_benchmark_without_a_hub_id_asks_for_a_file(name: str) -> None:
    with pytest.raises(DataError, match=r"benchmark\.path=FILE"):
        build(compose_config(f"benchmark={name}").benchmark, "benchmark").problems()


def test_without_a_network_the_sentence_names_both_ways_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("datasets.load_dataset", _no_network)
    benchmark = build(compose_config("benchmark=math500").benchmark, "benchmark")
    with pytest.raises(DataError, match=r"benchmark\.path=FILE.*python -m rsd\.fetch benchmark=math500"):
        benchmark.problems()


def _no_network(*_: object, **__: object) -> None:
    raise ConnectionError("no route to the hub")


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "conf/benchmark").glob("*.yaml")))
def test_every_benchmark_builds_under_its_own_name(name: str) -> None:
    assert build(compose_config(f"benchmark={name}").benchmark, "benchmark").name == name
