"""Records survive JSON unchanged, and questions have names that do not depend on their place."""

from dataclasses import replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsd.records import Proposal, Record, Role, Usage, dump, load, question_ids, same_outcome

counts = st.integers(0, 2**53)
floats = st.floats(allow_nan=False, allow_infinity=False)
optional_floats = st.none() | floats
json_values = st.recursive(
    st.none() | st.booleans() | counts | floats | st.text(),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(), values, max_size=3),
    max_leaves=5,
)
usages = st.builds(
    Usage,
    generated=counts,
    prompt=counts,
    cached=st.none() | counts,
    drafted=counts,
    verified=counts,
    accepted=counts,
    passes=counts,
)
proposals = st.builds(
    Proposal,
    step=counts,
    origin=st.sampled_from(["draft", "target"]),
    candidate=counts,
    parent=st.none() | counts,
    accepted=st.none() | st.booleans(),
    kept=st.booleans(),
    token_ids=st.lists(counts, max_size=5).map(tuple),
    text=st.text(),
    reward=optional_floats,
    omega=optional_floats,
    u=optional_floats,
    finish=st.sampled_from(["step", "eos", "length"]),
    logprob_draft=optional_floats,
    logprob_target=optional_floats,
    usage=st.dictionaries(st.sampled_from(["draft", "target", "prm"]), usages),
    t0=floats,
    t1=floats,
    diagnostic=st.none() | st.dictionaries(st.text(), json_values, max_size=3),
)
records = st.builds(
    Record,
    question_id=st.text(),
    sample=counts,
    seed=st.integers(0, 2**64 - 1),
    invocation=counts,
    prompt_tokens=counts,
    end_reason=st.sampled_from(["eos", "max_steps", "response_limit", "context_limit", "prm_context", "error"]),
    response=st.text(),
    proposals=st.lists(proposals, max_size=3).map(tuple),
    error=st.none() | st.text(),
)
RECORD = Record(
    question_id="a",
    sample=0,
    seed=1,
    invocation=1,
    prompt_tokens=5,
    end_reason="eos",
    response="Eins\n\nzwei ½\u2028",
    proposals=(
        Proposal(
            step=0,
            origin="draft",
            accepted=True,
            kept=True,
            token_ids=(1, 2),
            text="Eins\n\n",
            reward=0.7,
            finish="step",
            usage={"draft": Usage(generated=2, prompt=5, cached=3, passes=2)},
            t0=0.5,
            t1=0.75,
        ),
    ),
)


@given(records)
def test_a_record_survives_json(record: Record) -> None:
    line = dump(record)
    assert b"\n" not in line
    assert load(line) == record
    assert load(line.decode()) == record
    assert dump(load(line)) == line


@given(records)
def test_fields_keep_their_types(record: Record) -> None:
    loaded = load(dump(record))
    assert isinstance(loaded.proposals, tuple)
    for proposal in loaded.proposals:
        assert isinstance(proposal.token_ids, tuple)
        assert all(isinstance(usage, Usage) for usage in proposal.usage.values())
        assert isinstance(proposal.t0, float)


def test_a_line_names_every_field_of_the_specification() -> None:
    data = orjson.loads(dump(RECORD))
    assert list(data) == [
        *("schema", "question_id", "sample", "seed", "invocation", "prompt_tokens", "end_reason", "response"),
        *("proposals", "error"),
    ]
    assert set(data["proposals"][0]) == {
        *("step", "origin", "candidate", "parent", "accepted", "kept", "token_ids", "text", "reward", "omega", "u"),
        *("finish", "logprob_draft", "logprob_target", "usage", "t0", "t1", "diagnostic"),
    }
    assert set(data["proposals"][0]["usage"]["draft"]) == {
        *("generated", "prompt", "cached", "drafted", "verified", "accepted", "passes"),
    }


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(dump(RECORD)[:-1], id="half a line"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b"null", id="null"),
        pytest.param(b'{"schema": 1}', id="no fields"),
        pytest.param(dump(replace(RECORD, schema=2)), id="another schema"),
        pytest.param(dump(RECORD).replace(b'"seed"', b'"sead"'), id="a misspelt field"),
        pytest.param(dump(RECORD).replace(b'"generated"', b'"written"'), id="a misspelt field of usage"),
        pytest.param(dump(RECORD).replace(b'{"draft"', b'[{"draft"').replace(b'},"t0"', b'}],"t0"'), id="usage a list"),
    ],
)
def test_what_is_not_a_record_is_a_value_error(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"unexpected end|not a record of schema 1"):
        load(line)


def test_question_ids_are_hashes_of_the_questions_as_asked() -> None:
    assert question_ids(["1+1?", "1+1? "]) == ["cfe29f43bcc2", "9aef5d799118"]


def test_repeated_questions_are_numbered_from_their_second_occurrence() -> None:
    first, other = question_ids(["1+1?", "ü"])
    assert question_ids(["1+1?", "ü", "1+1?", "ü", "1+1?"]) == [first, other, f"{first}-2", f"{other}-2", f"{first}-3"]


@given(st.lists(st.sampled_from("abc")))
def test_question_ids_are_unique_and_those_of_a_part_are_a_part(questions: list[str]) -> None:
    names = question_ids(questions)
    assert len(set(names)) == len(questions)
    assert question_ids(questions[:3]) == names[:3]


@given(usages, usages)
def test_usage_adds_field_by_field_and_unknown_cached_stays_unknown(a: Usage, b: Usage) -> None:
    total = a + b
    assert total.generated == a.generated + b.generated
    assert total.prompt == a.prompt + b.prompt
    assert total.drafted == a.drafted + b.drafted
    assert total.verified == a.verified + b.verified
    assert total.accepted == a.accepted + b.accepted
    assert total.passes == a.passes + b.passes
    assert total.cached == (None if a.cached is None or b.cached is None else a.cached + b.cached)


def test_outcomes_are_the_same_but_for_times_caches_and_invocation() -> None:
    (proposal,) = RECORD.proposals
    usage: dict[Role, Usage] = {"draft": replace(proposal.usage["draft"], cached=None)}
    later = replace(RECORD, invocation=9, proposals=(replace(proposal, t0=8.0, t1=9.0, usage=usage),))
    assert later != RECORD
    assert same_outcome(later, RECORD)


@pytest.mark.parametrize(
    "change",
    [
        *({"step": 1}, {"origin": "target"}, {"candidate": 1}, {"parent": 1}, {"accepted": None}, {"kept": False}),
        *({"token_ids": (1, 3)}, {"text": "eins\n\n"}, {"reward": 0.8}, {"omega": 1.0}, {"u": 0.5}, {"finish": "eos"}),
        *({"logprob_draft": -1.0}, {"logprob_target": -1.0}, {"diagnostic": {"a": 1}}),
        *({"usage": {"draft": Usage(generated=3, prompt=5, cached=3, passes=2)}}, {"usage": {}}),
    ],
    ids=str,
)
def test_outcomes_differ_with_any_other_field_of_a_proposal(change: dict[str, object]) -> None:
    (proposal,) = RECORD.proposals
    assert not same_outcome(RECORD, replace(RECORD, proposals=(replace(proposal, **change),)))


@pytest.mark.parametrize(
    "change",
    [
        *({"question_id": "b"}, {"sample": 1}, {"seed": 2}, {"prompt_tokens": 6}, {"end_reason": "max_steps"}),
        *({"response": ""}, {"proposals": ()}, {"error": "no"}),
    ],
    ids=str,
)
def test_outcomes_differ_with_any_other_field_of_a_record(change: dict[str, object]) -> None:
    assert not same_outcome(RECORD, replace(RECORD, **change))
