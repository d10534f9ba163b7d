"""Steps, limits and end reasons (specification: "Steps and text", "Limits")."""

import pytest

from rsd.engines.base import Models
from rsd.methods.decoding import StepRule
from rsd.methods.rsd import RSD
from rsd.methods.single import Single
from rsd.records import Proposal
from rsd.weighting import Binary, Constant
from tests.toys import ScriptedPolicy, ScriptedPRM, solved, trajectory

STEPWISE = Single(role="draft", stepwise=True)


def kept(proposals: tuple[Proposal, ...]) -> list[str]:
    return [proposal.text for proposal in proposals if proposal.kept]


def test_a_response_is_its_steps_and_ends_at_eos() -> None:
    draft = ScriptedPolicy(["First.\n\n", "Second.\n\n", "Third.$"])
    solution = solved(STEPWISE, trajectory(Models(draft=draft))).solution()
    assert solution.response == "First.\n\nSecond.\n\nThird."
    assert solution.end_reason == "eos"
    assert kept(solution.proposals) == ["First.\n\n", "Second.\n\n", "Third."]
    assert [sampling.stop for _, sampling in draft.asked] == ["\n\n"] * 3
    # each call continues the prompt and exactly the tokens written before it
    assert [len(context.response) for context, _ in draft.asked] == [0, 8, 17]


def test_a_box_ends_nothing() -> None:
    draft = ScriptedPolicy(["So \\boxed{1}.\n\n", "Check.$"])
    assert solved(STEPWISE, trajectory(Models(draft=draft))).solution().response == "So \\boxed{1}.\n\nCheck."


def test_a_step_cut_by_its_limit_is_a_step_and_decoding_goes_on() -> None:
    draft = ScriptedPolicy(["abcdefgh\n\n", "end.$"])
    solution = solved(STEPWISE, trajectory(Models(draft=draft), step_tokens=5)).solution()
    assert [(p.text, p.finish) for p in solution.proposals] == [("abcde", "length"), ("end.", "eos")]
    assert solution.end_reason == "eos"


def test_steps_are_limited() -> None:
    draft = ScriptedPolicy(["a\n\n", "b\n\n", "c\n\n"])
    solution = solved(STEPWISE, trajectory(Models(draft=draft), steps=2)).solution()
    assert (solution.end_reason, kept(solution.proposals)) == ("max_steps", ["a\n\n", "b\n\n"])


def test_response_tokens_are_limited() -> None:
    draft = ScriptedPolicy(["abc\n\n", "defg\n\n"])
    solution = solved(STEPWISE, trajectory(Models(draft=draft), response_tokens=8)).solution()
    assert (solution.end_reason, solution.response) == ("response_limit", "abc\n\ndef")


def test_prompt_and_response_together_are_limited() -> None:
    draft = ScriptedPolicy(["abc\n\n", "defg\n\n"], prompt_tokens=10)
    solution = solved(STEPWISE, trajectory(Models(draft=draft), total_tokens=18)).solution()
    assert (solution.end_reason, solution.response) == ("context_limit", "abc\n\ndef")


def test_a_prompt_that_fills_the_context_ends_the_question_before_any_call() -> None:
    draft = ScriptedPolicy([], prompt_tokens=10)
    solution = solved(STEPWISE, trajectory(Models(draft=draft), total_tokens=10)).solution()
    assert (solution.end_reason, solution.response, draft.asked) == ("context_limit", "", [])


def test_the_whole_response_in_one_go_is_bounded_by_the_context_but_not_by_the_step_limit() -> None:
    draft = ScriptedPolicy(["abc\n\ndef\n\nghi$"], prompt_tokens=10)
    solution = solved(Single(role="draft"), trajectory(Models(draft=draft), step_tokens=4)).solution()
    assert (solution.end_reason, solution.response) == ("eos", "abc\n\ndef\n\nghi")
    assert draft.asked[0][1].stop is None
    assert draft.asked[0][1].max_tokens == 4096 - 10


def test_whitespace_alone_is_no_step() -> None:
    draft = ScriptedPolicy(["\n\n", " \n\n", "First.\n\n", "Done.$"])
    prm = ScriptedPRM(lambda step: 1.0)
    models = Models(draft=draft, target=ScriptedPolicy([]), prm=prm)
    solution = solved(RSD(weighting=Binary(delta=0.5)), trajectory(models)).solution()
    assert kept(solution.proposals) == ["\n\n \n\nFirst.\n\n", "Done."]
    assert prm.shown == [("\n\n \n\nFirst.\n\n",), ("\n\n \n\nFirst.\n\n", "Done.")]
    first = solution.proposals[0]
    assert first.usage["draft"].generated == len(first.token_ids) == 13
    # the pieces of one proposal are draws of their own
    assert len({sampling.seed for _, sampling in draft.asked}) == 4


def test_nothing_but_whitespace_ends_the_question() -> None:
    draft = ScriptedPolicy(["\n\n"] * 10)
    started = trajectory(Models(draft=draft), step=StepRule(blank_pieces=3))
    solution = solved(STEPWISE, started).solution()
    assert solution.end_reason == "repetition"
    assert len(draft.asked) == 4  # the first and three more


@pytest.mark.parametrize(("repeats", "end", "steps"), [(0, "eos", 4), (1, "repetition", 2), (2, "repetition", 3)])
def test_repetition_is_off_by_default_and_has_its_own_end_reason(repeats: int, end: str, steps: int) -> None:
    draft = ScriptedPolicy(["again\n\n", "again\n\n", "again\n\n", "end$"])
    solution = solved(STEPWISE, trajectory(Models(draft=draft), repeats=repeats)).solution()
    assert (solution.end_reason, len(solution.proposals)) == (end, steps)


def test_eos_alone_never_reaches_the_prm() -> None:
    prm = ScriptedPRM(lambda step: 0.9)
    models = Models(draft=ScriptedPolicy(["First.\n\n", "$"]), target=ScriptedPolicy([]), prm=prm)
    solution = solved(RSD(weighting=Binary(delta=0.5)), trajectory(models)).solution()
    assert prm.shown == [("First.\n\n",)]
    last = solution.proposals[-1]
    assert (last.reward, last.omega, last.accepted, last.token_ids, last.text) == (None, 1.0, True, (0,), "")


def test_constant_decides_eos_alone_like_any_step() -> None:
    models = Models(draft=ScriptedPolicy(["$", "$"]), target=ScriptedPolicy(["More.\n\n", "$"]))
    solution = solved(RSD(weighting=Constant(p=0.0)), trajectory(models)).solution()
    assert [(p.origin, p.kept) for p in solution.proposals] == [
        ("draft", False),
        ("target", True),
        ("draft", False),
        ("target", True),
    ]


def test_the_last_piece_is_scored_and_may_be_replaced() -> None:
    prm = ScriptedPRM(lambda step: 0.1 if step == "Wrong." else 0.9)
    models = Models(draft=ScriptedPolicy(["Wrong.$", "Right.$"]), target=ScriptedPolicy(["Better.\n\n"]), prm=prm)
    solution = solved(RSD(weighting=Binary(delta=0.5)), trajectory(models)).solution()
    assert solution.response == "Better.\n\nRight."
    assert prm.shown == [("Wrong.",), ("Better.\n\n", "Right.")]


def test_a_blank_start_and_what_follows_it_are_charged_as_one_call() -> None:
    draft = ScriptedPolicy(["\n\n", "First.$"])
    (proposal,) = solved(STEPWISE, trajectory(Models(draft=draft))).solution().proposals
    usage = proposal.usage["draft"]
    assert (usage.prompt, usage.generated, usage.passes) == (10, 9, 9)


def test_a_step_whose_scoring_failed_is_in_the_record() -> None:
    prm = ScriptedPRM(lambda step: 1 / 0 if step == "b\n\n" else 1.0)
    started = trajectory(Models(draft=ScriptedPolicy(["a\n\n", "b\n\n"]), target=ScriptedPolicy([]), prm=prm))
    with pytest.raises(ZeroDivisionError):
        solved(RSD(weighting=Binary(delta=0.5)), started)
    solution = started.solution(failed=True)
    assert (solution.end_reason, solution.response) == ("error", "a\n\n")
    assert [(p.text, p.kept, p.accepted) for p in solution.proposals] == [("a\n\n", True, True), ("b\n\n", False, None)]
