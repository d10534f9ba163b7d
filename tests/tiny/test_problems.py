"""The tiny family's problems have the answers they claim, their steps the labels, their benchmarks no leak."""

import json
import re
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsd.tiny import benchmark, policies
from rsd.tiny.benchmark import BENCHMARKS
from rsd.tiny.problems import LARGEST, LEVELS, chain
from rsd.tiny.story import story

STATEMENT = re.compile(r"\w+(?: \w+)* (\d+)([-+*/])(\d+)=(\d+) (?:more )?\w+\.\n\n")
FACT = re.compile(r"(\w+) has (\d+) (\w+)\.")
RELATION = re.compile(r"(\w+) has (1/)?(\d+) (more|fewer|times as many|as many) (\w+) (?:than|as) (\w+)\.")
APPLY = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b}
SIGN = {"more": "+", "fewer": "-", "times as many": "*", "as many": "/"}


def results(steps: tuple[str, ...]) -> list[float]:
    """The result that every step but the last states, each computed right."""
    values = []
    for step in steps[:-1]:
        match = STATEMENT.fullmatch(step)
        assert match, step
        left, sign, right, result = match.groups()
        assert APPLY[sign](int(left), int(right)) == int(result)
        values.append(int(result))
    return values


def answer(question: str) -> float:
    """Solve a story from its text alone."""
    owned = {(name, thing): int(n) for name, n, thing in FACT.findall(question)}
    for name, _, n, kind, thing, other in RELATION.findall(question):
        owned[name, thing] = APPLY[SIGN[kind]](owned[other, thing], int(n))
    if match := re.search(r"costs (\d+) dollars. How many dollars do the (\w+) of (\w+) cost\?", question):
        price, thing, name = match.groups()
        return owned[name, thing] * int(price)
    if match := re.search(r"How many (\w+) do (\w+) and (\w+) have together\?", question):
        thing, one, other = match.groups()
        return owned[one, thing] + owned[other, thing]
    if match := re.search(r"How many more (\w+) does (\w+) have than (\w+)\?", question):
        thing, one, other = match.groups()
        return owned[one, thing] - owned[other, thing]
    match = re.search(r"How many (\w+) does (\w+) have\?", question)
    assert match, question
    return owned[match[2], match[1]]


@given(seed=st.integers(0, 2**32), level=st.integers(1, 10))
def test_a_chain_is_solved_by_its_reference(seed: int, level: int) -> None:
    problem = chain(Random(seed), level)
    value, *operands = [int(number) for number in re.findall(r"\d+", problem.question)]
    assert problem.level == level == len(operands)
    for step, operand, result in zip(problem.steps, operands, results(problem.steps), strict=False):
        assert re.findall(r"\d+", step)[:2] == [str(value), str(operand)]
        assert 1 <= result <= LARGEST
        value = int(result)
    assert problem.steps[-1] == f"The answer is \\boxed{{{value}}}."
    assert problem.answer == str(value)


@given(seed=st.integers(0, 2**32), level=st.integers(1, 10))
def test_a_story_is_solved_by_its_reference(seed: int, level: int) -> None:
    problem = story(Random(seed), level)
    values = results(problem.steps)
    assert problem.level == level == len(values)
    assert int(problem.answer) == values[-1] == answer(problem.question)
    assert all(1 <= value <= LARGEST for value in values)
    assert problem.steps[-1] == f"The answer is \\boxed{{{problem.answer}}}."
    assert 1 <= sum(can_be_left_out(sentence, problem.question) for sentence in told(problem.question)) <= 2


def told(question: str) -> list[str]:
    """The sentences of a story that state a quantity."""
    return [match[0] for kind in (FACT, RELATION) for match in kind.finditer(question)]


def can_be_left_out(sentence: str, question: str) -> bool:
    """Whether a story without `sentence` has the same answer."""
    try:
        return answer(question.replace(sentence, "")) == answer(question)
    except KeyError:
        return False


def test_labels_are_exact_and_an_error_stays() -> None:
    problem = chain(Random(1), 3)
    steps = list(problem.steps)
    assert problem.correct(steps) == [True] * 4
    assert problem.correct([steps[0], steps[1].replace("=", "=1"), *steps[2:]]) == [True, False, False, False]
    assert problem.correct([*steps, "More."]) == [True] * 4 + [False]
    thing = problem.question.split()[3].rstrip(".")
    assert problem.correct([step.replace(thing, "things") for step in steps]) == [True] * 4
    assert not any(problem.correct([step.replace("=", " is ") for step in steps][:1]))


def test_only_a_whole_right_solution_solves_a_problem() -> None:
    problem = chain(Random(1), 3)
    assert problem.solved_by(problem.steps)
    assert not problem.solved_by(problem.steps[:-1])
    assert not problem.solved_by([*problem.steps, "More."])
    assert not problem.solved_by([problem.steps[0].replace("=", "=1"), *problem.steps[1:]])
    assert not problem.solved_by([])


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_shipped_benchmark_is_what_its_script_writes(name: str) -> None:
    shipped = (benchmark.FOLDER / f"{name}.jsonl").read_text(encoding="utf-8")
    assert "\n".join(benchmark.lines(name)) + "\n" == shipped


def test_the_script_writes_all_benchmarks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "FOLDER", tmp_path / "data")
    benchmark.main()
    assert {path.stem for path in (tmp_path / "data").iterdir()} == set(BENCHMARKS)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_has_as_many_questions_of_each_level(name: str) -> None:
    rows = [json.loads(line) for line in (benchmark.FOLDER / f"{name}.jsonl").open(encoding="utf-8")]
    counts = {level: sum(row["level"] == level for row in rows) for level in BENCHMARKS[name][1]}
    assert len(rows) == 500
    assert set(counts.values()) == {500 // len(counts)}
    assert min(counts) == (1 if name != "tiny_long" else max(LEVELS) + 1)


def test_training_never_sees_a_benchmark_question() -> None:
    held_out = policies.held_out()
    assert len(held_out) == 1500
    first = policies.problems("policy/0", 64, set())
    kept = policies.problems("policy/0", 64, {problem.question for problem in first[:10]})
    assert kept[:54] == first[10:]
    seen = {problem.question for step in range(200) for problem in policies.problems(f"policy/{step}", 64, held_out)}
    assert not seen & held_out
