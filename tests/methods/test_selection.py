"""Majority voting and Best-of-N: they choose among the samples of one run, which is drawn once."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rsd.engines.transformers import TransformersEngine
from rsd.invocation import invoke
from rsd.methods.base import Candidate
from rsd.methods.best_of_n import BestOfN, aggregated
from rsd.methods.majority import Majority
from rsd.plan import make_plan
from rsd.records import Record
from rsd.store import read_grades, read_records
from tests.conftest import Run, compose_config

ALIKE = ("sampling.temperature=0.7", "sampling.top_p=0.8")


def candidates(*told: tuple[int | None, tuple[float, ...] | None]) -> list[Candidate]:
    record = Record(
        question_id="q", sample=0, seed=0, invocation=1, prompt_tokens=1, end_reason="eos", response="", proposals=()
    )
    return [Candidate(record=record, answer_class=number, rewards=rewards) for number, rewards in told]


@pytest.mark.parametrize(
    ("classes", "chosen"),
    [
        ([0, 1, 1, 2], 1),  # two votes beat one
        ([0, 1, 1, 0], 0),  # of equals the class that came first
        ([None, 0, None, None], 1),  # who has no answer abstains
        ([None, None], 0),
    ],
)
def test_classes_vote(classes: list[int | None], chosen: int) -> None:
    assert Majority(n=4, role="draft").choose(candidates(*((number, None) for number in classes))) == chosen


@pytest.mark.parametrize(
    ("rewards", "chosen"),
    [
        ([(0.1, 0.5), (0.9, 0.4)], 0),  # the last step counts
        ([(0.5,), (0.5,)], 0),  # of equals the first
        ([None, (0.0,)], 1),  # without a value only if no other has one
        ([None, None], 0),
        ([(-2.0,), None, ()], 0),
    ],
)
def test_the_highest_value_is_chosen(rewards: list[tuple[float, ...] | None], chosen: int) -> None:
    best = BestOfN(n=3, role="draft", aggregate="last")
    assert best.choose(candidates(*((None, told) for told in rewards))) == chosen


def test_aggregates() -> None:
    rewards = [0.5, 0.8, 0.7]
    assert [aggregated(rewards, how) for how in ("last", "min", "prod", "mean")] == pytest.approx(
        [0.7, 0.5, 0.28, 2 / 3]
    )


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Path]:
    """Run the harness and return the run's folder."""

    def made(*overrides: str) -> Path:
        config = compose_config(f"results_dir={tmp_path}", *overrides)
        invoke(config)
        return make_plan(config).folder

    return made


def test_samples_are_drawn_once_and_extended(made: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    samples = made("method=sample", "method.n=3", "limit=8")
    first = read_records(samples)
    assert {sample for _, sample in first} == {0, 1, 2}
    majority = made("method=majority", "method.n=3", "limit=8")
    assert read_records(samples) == first
    made("method=majority", "method.n=5", "limit=8")  # draws two more
    more = read_records(samples)
    assert len(more) == 40
    assert {key: more[key] for key in first} == first
    best = made("method=best_of_n", "method.n=5", "limit=8")
    assert read_records(samples) == more
    # other aggregates and other runs of these methods need no model at all
    monkeypatch.setattr(TransformersEngine, "load_policy", None)
    monkeypatch.setattr(TransformersEngine, "load_classifier", None)
    least = made("method=best_of_n", "method.n=5", "method.aggregate=min", "limit=8")
    assert made("method=best_of_n", "method.n=4", "limit=8") != best
    assert json.loads((least / "summary.json").read_bytes())["flops"]["full"] > 0
    assert majority.parent == least.parent == samples.parent


def test_choosing_has_no_time_of_its_own_and_smaller_k_their_share_of_the_cost(
    made: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    made("method=majority", "method.n=3", "limit=4")
    told = capsys.readouterr().out
    assert "wall time" not in told
    assert "at k/3 of the FLOPs above:" in told


def test_records_name_the_chosen_sample_and_what_all_of_them_took(made: Callable[..., Path]) -> None:
    samples = made("method=sample", "method.n=4", "limit=8", "sampling.temperature=1", "sampling.top_p=1")
    best = made("method=best_of_n", "method.n=4", "limit=8", "sampling.temperature=1", "sampling.top_p=1")
    drawn, grades = read_records(samples), read_grades(samples)
    (rewards,) = samples.glob("rewards-tiny_m-*.jsonl")
    told = {(line["question_id"], line["sample"]): line for line in map(json.loads, rewards.read_text().splitlines())}
    for (question, _), record in read_records(best).items():
        assert [p.candidate for p in record.proposals] == [0, 1, 2, 3]
        (kept,) = [p for p in record.proposals if p.kept]
        chosen = drawn[question, kept.candidate]
        assert (record.response, record.end_reason) == (chosen.response, chosen.end_reason)
        assert kept.reward == max(p.reward for p in record.proposals) == told[question, kept.candidate]["rewards"][-1]
        assert read_grades(best)[question, 0].correct == grades[question, kept.candidate].correct
        for p in record.proposals:
            (whole,) = drawn[question, p.candidate].proposals
            assert p.usage["draft"] == whole.usage["draft"]
            steps = whole.text.count("\n\n") + 1
            assert p.usage["prm"].passes == steps == len(told[question, p.candidate]["rewards"])
            assert p.usage["prm"].verified == len(whole.token_ids) - (whole.finish == "eos")


def test_best_of_1_and_a_vote_of_1_are_the_model_alone(run: Run) -> None:
    alone = run("method=single", "method.role=draft", "limit=10", *ALIKE)
    for chosen in (run("method=best_of_n", "method.n=1", "limit=10"), run("method=majority", "method.n=1", "limit=10")):
        assert {k: r.response for k, r in chosen.items()} == {k: r.response for k, r in alone.items()}


def test_at_temperature_0_both_choose_the_greedy_response(run: Run) -> None:
    alone = run("method=single", "method.role=draft", "limit=8")
    for method in ("best_of_n", "majority"):
        chosen = run(f"method={method}", "method.n=3", "limit=8", "sampling.temperature=0", "sampling.top_p=1")
        assert {k: r.response for k, r in chosen.items()} == {k: r.response for k, r in alone.items()}


def test_several_solutions_have_samples_of_their_own(made: Callable[..., Path]) -> None:
    votes = made("method=majority", "method.n=3", "limit=4", "samples=2", "sampling.temperature=1")
    drawn = {
        sample: [(p.diagnostic or {})["sample"] for p in record.proposals]
        for (_, sample), record in read_records(votes).items()
    }
    assert drawn == {0: [0, 1, 2], 1: [3, 4, 5]}
