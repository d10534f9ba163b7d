"""Beam search and process Best-of-N: which steps go on, and what answers in the end."""

from collections.abc import Iterable

import pytest

from rsd.engines.base import Models
from rsd.errors import PRMContextError
from rsd.methods.beam import Beam, process_best_of_n
from rsd.records import Record
from tests.conftest import Run
from tests.toys import ScriptedPolicy, ScriptedPRM, solved, trajectory


def search(script: list[str], rewards: dict[str, float], *, width: int, expansion: int, **limits: int) -> object:
    def reward(step: str) -> float:
        if step not in rewards:
            raise PRMContextError("too long")
        return rewards[step]

    models = Models(draft=ScriptedPolicy(script), prm=ScriptedPRM(reward))
    return solved(Beam(width=width, expansion=expansion, generator="draft"), trajectory(models, **limits)).solution()


def test_the_best_step_goes_on_and_the_others_are_on_record() -> None:
    solution = search(
        ["a\n\n", "b\n\n", "c\n\n", "d$", "e$", "f$"],
        {"a\n\n": 0.2, "b\n\n": 0.9, "c\n\n": 0.5, "d": 0.1, "e": 0.3, "f": 0.2},
        width=1,
        expansion=3,
    )
    assert (solution.response, solution.end_reason) == ("b\n\ne", "eos")
    assert [(p.step, p.candidate, p.parent, p.kept) for p in solution.proposals] == [
        (0, 0, None, False),
        (0, 1, None, True),
        (0, 2, None, False),
        (1, 0, 1, False),
        (1, 1, 1, True),
        (1, 2, 1, False),
    ]


def test_each_of_the_widest_beams_is_expanded_and_the_newest_reward_alone_ranks() -> None:
    # the root proposes width * expansion steps; b and a go on, b first; b's second child wins the second round
    solution = search(
        ["a\n\n", "b\n\n", "c\n\n", "d\n\n", "ba$", "bb$", "aa$", "ab$"],
        {"a\n\n": 0.8, "b\n\n": 0.9, "c\n\n": 0.1, "d\n\n": 0.2, "ba": 0.3, "bb": 0.6, "aa": 0.5, "ab": 0.4},
        width=2,
        expansion=2,
    )
    assert solution.response == "b\n\nbb"
    assert [(p.candidate, p.parent) for p in solution.proposals if p.step == 1] == [(0, 1), (1, 1), (2, 0), (3, 0)]


def test_a_finished_beam_stays_in_the_pool_and_answers_before_an_unfinished_one_of_higher_reward() -> None:
    solution = search(
        ["end$", "go\n\n", "on\n\n", "off\n\n"],
        {"end": 0.5, "go\n\n": 0.9, "on\n\n": 0.8, "off\n\n": 0.1},
        width=2,
        expansion=1,
        steps=2,
    )
    # after two steps: end (finished), go-on (at its limit); the finished one answers
    assert (solution.response, solution.end_reason) == ("end", "eos")


def test_without_a_finished_beam_the_best_one_answers_with_its_end_reason() -> None:
    solution = search(["a\n\n", "b\n\n"], {"a\n\n": 0.1, "b\n\n": 0.2}, width=1, expansion=2, steps=1)
    assert (solution.response, solution.end_reason) == ("b\n\n", "max_steps")


def test_exact_duplicates_take_one_place() -> None:
    # a twice and c: the two places go to a and c, so the next step has two parents
    solution = search(
        ["a\n\n", "a\n\n", "b\n\n", "c\n\n", "x$", "y$", "z$", "w$"],
        {"a\n\n": 0.9, "b\n\n": 0.1, "c\n\n": 0.5, "x": 0.1, "y": 0.2, "z": 0.9, "w": 0.3},
        width=2,
        expansion=2,
    )
    assert solution.response == "c\n\nz"
    assert [p.parent for p in solution.proposals if p.step == 1] == [0, 0, 3, 3]


def test_eos_alone_keeps_its_beams_last_reward() -> None:
    solution = search(["a\n\n", "b\n\n", "$", "x$"], {"a\n\n": 0.9, "b\n\n": 0.8, "x": 0.85}, width=2, expansion=1)
    # a$ ranks with a's 0.9 above b-x with 0.85
    assert solution.response == "a\n\n"
    assert next(p for p in solution.proposals if p.finish == "eos" and p.kept).reward is None


def test_what_the_prm_cannot_read_is_dropped_and_where_nothing_is_left_the_question_ends() -> None:
    some = search(["a\n\n", "long\n\n", "b$", "long$"], {"a\n\n": 0.5, "b": 0.1}, width=1, expansion=2)
    assert some.response == "a\n\nb"
    none = search(["a\n\n", "b\n\n", "long$", "long$"], {"a\n\n": 0.5, "b\n\n": 0.1}, width=1, expansion=2)
    assert (none.response, none.end_reason) == ("a\n\n", "prm_context")


def test_process_best_of_n_is_a_beam_of_width_1() -> None:
    assert process_best_of_n(n=8, generator="target") == Beam(width=1, expansion=8, generator="target")


def tokens(records: Iterable[Record]) -> dict[str, list[tuple[int, ...]]]:
    return {r.question_id: [p.token_ids for p in r.proposals if p.kept] for r in records}


@pytest.mark.parametrize("temperature", [0.0, 0.7])
@pytest.mark.parametrize("generator", ["draft", "target"])
def test_one_beam_of_one_proposal_is_the_model_alone_step_by_step(run: Run, generator: str, temperature: float) -> None:
    shared = ("limit=15", f"sampling.temperature={temperature}", "sampling.top_p=0.8")
    beam = run("method=beam", "method.width=1", "method.expansion=1", f"method.generator={generator}", *shared)
    process = run("method=process_best_of_n", "method.n=1", f"method.generator={generator}", *shared)
    alone = run("method=single", f"method.role={generator}", "method.stepwise=true", *shared)
    assert tokens(beam.values()) == tokens(process.values()) == tokens(alone.values())


def test_at_temperature_0_every_search_finds_the_greedy_response(run: Run) -> None:
    alone = run("method=single", "method.role=draft", "limit=10")
    beam = run("method=beam", "method.width=2", "method.expansion=2", "limit=10", "sampling.temperature=0")
    process = run("method=process_best_of_n", "method.n=3", "limit=10", "sampling.temperature=0")
    for found in (beam, process):
        assert {k: r.response for k, r in found.items()} == {k: r.response for k, r in alone.items()}


def test_candidates_of_one_step_are_not_all_equal(run: Run) -> None:
    records = run("method=process_best_of_n", "method.n=8", "limit=10", "sampling.temperature=2", "sampling.top_p=1")
    first = [{p.token_ids for p in r.proposals if p.step == 0} for r in records.values()]
    assert sum(len(texts) > 1 for texts in first) >= 5
