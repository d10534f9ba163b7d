"""RSD: its identities on the tiny models, and what its records say."""

import math
from collections.abc import Iterable
from dataclasses import replace

import pytest
from transformers import AutoTokenizer

from rsd.engines.base import Models
from rsd.errors import PRMContextError
from rsd.methods.rsd import RSD
from rsd.records import Proposal, Record, Role, Usage
from rsd.weighting import Binary, Sigmoidal
from tests.conftest import Run, compose_config
from tests.toys import ScriptedPolicy, ScriptedPRM, solved, trajectory


def tokens(records: Iterable[Record]) -> dict[str, list[tuple[int, ...]]]:
    """Kept tokens, step by step."""
    return {r.question_id: [p.token_ids for p in r.proposals if p.kept] for r in records}


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_delta_0_is_the_draft_alone_step_by_step(run: Run, temperature: float) -> None:
    shared = ("limit=50", f"sampling.temperature={temperature}")
    rsd = run("delta=0", *shared)
    alone = run("method=single", "method.role=draft", "method.stepwise=true", *shared)
    assert len(rsd) == 50
    assert tokens(rsd.values()) == tokens(alone.values())


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_p_0_is_the_target_alone_step_by_step(run: Run, temperature: float) -> None:
    shared = ("limit=50", f"sampling.temperature={temperature}")
    rsd = run("weighting=constant", "weighting.p=0", *shared)
    alone = run("method=single", "method.role=target", "method.stepwise=true", *shared)
    assert len(rsd) == 50
    assert tokens(rsd.values()) == tokens(alone.values())


def test_step_by_step_is_the_same_greedy_text_as_in_one_go(run: Run) -> None:
    shared = ("limit=50", "method=single", "method.role=draft")
    stepwise = run("method.stepwise=true", *shared)
    whole = run("method.stepwise=false", *shared)
    assert {k: r.response for k, r in stepwise.items()} == {k: r.response for k, r in whole.items()}


def test_records_tell_the_whole_decoding(run: Run) -> None:
    records = run("limit=40", "delta=0.7")
    tokenizer = AutoTokenizer.from_pretrained(compose_config().model.draft.path)
    rejections = 0
    for record in records.values():
        kept = [p for p in record.proposals if p.kept]
        ids = [token for p in kept for token in p.token_ids]
        assert record.response == "".join(p.text for p in kept)
        assert record.response == tokenizer.decode(ids, skip_special_tokens=True)
        assert record.end_reason == "eos"
        assert ids[-1] == tokenizer.eos_token_id
        assert all("\n\n" in p.text for p in kept[:-1])
        for number, proposal in enumerate(record.proposals):
            if proposal.origin == "draft":
                assert proposal.reward is not None
                assert proposal.omega == float(proposal.reward >= 0.7)
                assert proposal.accepted == proposal.kept == (proposal.reward >= 0.7)
                assert set(proposal.usage) == {"draft", "prm"}
                assert proposal.usage["prm"].verified == len(proposal.token_ids) - (proposal.finish == "eos")
            else:
                rejected = record.proposals[number - 1]
                assert (rejected.origin, rejected.accepted, rejected.step) == ("draft", False, proposal.step)
                assert set(proposal.usage) == {"target"}
                rejections += 1
            own = proposal.usage[proposal.origin]
            assert own.generated == own.passes == len(proposal.token_ids)
    assert rejections > 0, "the test needs questions in which the target is asked"


def test_where_omega_is_between_0_and_1_a_keyed_number_decides(run: Run) -> None:
    records = run("limit=30", "weighting=sigmoidal")
    numbers = [p.u for r in records.values() for p in r.proposals if p.u is not None]
    for record in records.values():
        for p in record.proposals:
            if p.origin == "draft":
                assert p.reward is not None
                assert p.omega == pytest.approx(p.reward / (1 + p.reward))
                assert p.u is not None
                assert p.accepted == (p.u <= p.omega)
    assert len(set(numbers)) == len(numbers) > 50


def test_rejected_steps_are_rewritten_from_the_same_context() -> None:
    draft = ScriptedPolicy(["good\n\n", "bad\n\n", "good$"])
    target = ScriptedPolicy(["fixed\n\n"])
    prm = ScriptedPRM(lambda step: 0.2 if "bad" in step else 0.9)
    solution = solved(
        RSD(weighting=Binary(delta=0.7)), trajectory(Models(draft=draft, target=target, prm=prm))
    ).solution()
    assert solution.response == "good\n\nfixed\n\ngood"
    assert target.asked[0][0].response == draft.asked[1][0].response
    # the PRM sees kept steps and the newest proposal, delimiters included, never the target's own step
    assert prm.shown == [("good\n\n",), ("good\n\n", "bad\n\n"), ("good\n\n", "fixed\n\n", "good")]


def test_a_reward_of_exactly_delta_accepts_and_one_a_hair_below_does_not() -> None:
    for reward, expected in ((0.7, True), (0.7 - 1e-16, False)):
        models = Models(
            draft=ScriptedPolicy(["step$", "step$"]),
            target=ScriptedPolicy(["t$"]),
            prm=ScriptedPRM(lambda _, r=reward: r),
        )
        solution = solved(RSD(weighting=Binary(delta=0.7)), trajectory(models)).solution()
        assert solution.proposals[0].accepted is expected


def test_beyond_the_prms_context_the_question_ends_with_its_own_reason() -> None:
    def reward(step: str) -> float:
        if step == "long\n\n":
            raise PRMContextError("too long")
        return 1.0

    models = Models(draft=ScriptedPolicy(["a\n\n", "long\n\n"]), target=ScriptedPolicy([]), prm=ScriptedPRM(reward))
    solution = solved(RSD(weighting=Binary(delta=0.7)), trajectory(models)).solution()
    assert (solution.end_reason, solution.response) == ("prm_context", "a\n\n")
    assert [p.kept for p in solution.proposals] == [True, False]


def test_a_weighting_without_rewards_needs_no_prm(run: Run) -> None:
    records = run("limit=5", "weighting=constant", "weighting.p=0.5")
    assert {role for r in records.values() for p in r.proposals for role in p.usage} == {"draft", "target"}
    method = RSD(weighting=Sigmoidal())
    assert method.roles == ("draft", "target", "prm")


def test_samples_of_one_question_differ_and_do_not_depend_on_their_number(run: Run) -> None:
    three = run("limit=10", "samples=3", "sampling.temperature=1.0")
    assert len(three) == 30
    groups = [{three[key].response for key in three if key[0] == name} for name in {key[0] for key in three}]
    assert any(len(group) > 1 for group in groups)
    one = run("limit=10", "samples=1", "sampling.temperature=1.0", "seed=0")
    assert {k: r.response for k, r in three.items() if k[1] == 0} == {
        k: r.response for k, r in one.items() if k[1] == 0
    }


def test_another_seed_is_another_draw(run: Run) -> None:
    a = run("limit=20", "sampling.temperature=1.0", "seed=0")
    b = run("limit=20", "sampling.temperature=1.0", "seed=1")
    assert any(a[key].response != b[key].response for key in a)


def counted(proposal: Proposal) -> dict[Role, Usage]:
    """Usage less what came from a cache."""
    return {role: replace(usage, cached=None) for role, usage in proposal.usage.items()}


def test_score_target_tells_the_targets_reward_beside_the_drafts_outside_every_cost(run: Run) -> None:
    plain, rejected, everywhere = (run("limit=15", f"score_target={which}") for which in ("false", "rejected", "all"))
    for key, record in everywhere.items():
        for told in (record, rejected[key]):
            assert told.response == plain[key].response
            assert [counted(p) for p in told.proposals] == [counted(p) for p in plain[key].proposals]
        for number, proposal in enumerate(record.proposals):
            other = rejected[key].proposals[number]
            if proposal.origin == "draft" and proposal.accepted:
                assert proposal.diagnostic is not None
                assert proposal.diagnostic["target_text"]
                assert other.diagnostic is None
            elif proposal.origin == "draft":
                assert proposal.diagnostic["target_reward"] == pytest.approx(
                    other.diagnostic["target_reward"], abs=1e-5
                )
                assert proposal.diagnostic["target_text"] == record.proposals[number + 1].text
                assert 0 <= proposal.diagnostic["target_reward"] <= 1
    # what the PRM read aside it need not read again, so how much came from its cache is no cost of the method
    later = [p.usage["prm"].cached for r in rejected.values() for p in r.proposals if "prm" in p.usage and p.step > 1]
    assert None in later
    judged = [p for r in everywhere.values() for p in r.proposals if p.accepted is not None]
    assert any(p.accepted for p in judged)
    assert not all(p.accepted for p in judged)
    # where the draft's step is the target's own, the two rewards are one
    same = [p for p in judged if p.diagnostic["target_text"] == p.text and p.reward is not None]
    assert same
    assert all(p.diagnostic["target_reward"] == pytest.approx(p.reward, abs=1e-5) for p in same)


@pytest.mark.parametrize("weighting", ["likelihood_ratio", "reward_ratio"])
def test_the_target_reads_the_drafts_step_and_the_record_says_how_exact_that_is(run: Run, weighting: str) -> None:
    for temperature, exact in ((1.0, True), (0.0, False)):
        records = run("limit=10", f"weighting={weighting}", f"sampling.temperature={temperature}")
        drafts = [p for r in records.values() for p in r.proposals if p.origin == "draft"]
        for p in drafts:
            assert p.diagnostic == {"exact": exact}
            assert p.logprob_draft is not None
            assert p.logprob_target is not None
            assert p.usage["target"].verified == len(p.token_ids)
            assert (p.usage["target"].generated, p.usage["target"].passes) == (0, 1)
            reward = 1.0 if weighting == "likelihood_ratio" else p.reward
            if reward is not None and p.omega not in (0.0, 1.0):
                assert p.omega == pytest.approx(reward * math.exp(p.logprob_target - p.logprob_draft), rel=1e-6)
        assert any(p.accepted for p in drafts)


def test_a_blank_token_cut_by_the_steps_limit_is_a_step() -> None:
    models = Models(draft=ScriptedPolicy(["\n", "a", "$"]), target=ScriptedPolicy([]), prm=ScriptedPRM(lambda _: 1.0))
    solution = solved(RSD(weighting=Binary(delta=0.7)), trajectory(models, step_tokens=1)).solution()
    assert (solution.response, solution.end_reason) == ("\na", "eos")
