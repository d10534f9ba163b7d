"""What holds for all methods: results depend on the question alone; wrong settings are told in a sentence."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rsd.errors import ConfigError
from rsd.plan import make_plan
from rsd.records import Record, same_outcome
from rsd.store import Key
from tests.conftest import ROOT, Run, compose_config

METHODS = sorted(path.stem for path in (ROOT / "conf" / "method").glob("*.yaml"))
SMALLER = {"sample": "n=4", "majority": "n=4", "best_of_n": "n=4", "process_best_of_n": "n=4", "beam": "width=2"}


def settings(method: str) -> list[str]:
    return [f"method={method}", *([f"method.{SMALLER[method]}"] if method in SMALLER else [])]


@pytest.fixture
def twice(run: Run) -> Callable[..., tuple[dict[Key, Record], dict[Key, Record]]]:
    """Records of two runs of the same questions, made under different settings of the harness."""

    def twice(first: list[str], second: list[str]) -> tuple[dict[Key, Record], dict[Key, Record]]:
        return run(*first, "tag=first"), run(*second, "tag=second")

    return twice


@pytest.mark.parametrize("method", METHODS)
def test_a_result_depends_on_its_question_alone(
    method: str, twice: Callable[..., tuple[dict[Key, Record], dict[Key, Record]]]
) -> None:
    greedy = [*settings(method), "sampling.temperature=0"]
    together, alone = twice([*greedy, "limit=6"], [*greedy, "limit=2", "offset=3", "concurrency=1"])
    assert len(alone) in (2, 8)  # questions, or samples of them
    for key, record in alone.items():
        assert same_outcome(record, together[key])


@pytest.mark.parametrize("method", METHODS)
def test_questions_without_gold_answers_are_answered_to_the_end(method: str, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    rows = ["Name three rivers.", "Mia has 47 shells. She finds 25 more. How many shells does Mia have now?"]
    path.write_text("".join(json.dumps({"question": question}) + "\n" for question in rows))
    told = ["benchmark=custom", f"benchmark.path={path}", "benchmark.answer=null", "limits.steps=2"]
    records = run(*settings(method), *told)
    assert len({record.question_id for record in records.values()}) == 2
    assert all(record.error is None and record.proposals for record in records.values())
    summaries = [json.loads(path.read_text()) for path in tmp_path.glob("runs/custom/*/summary.json")]
    assert [summary["accuracy"] for summary in summaries] == [None] * len(summaries)


@pytest.mark.parametrize("method", ["sample", "best_of_n", "beam", "rsd"])
def test_drawn_results_do_not_depend_on_concurrency_either(
    method: str, twice: Callable[..., tuple[dict[Key, Record], dict[Key, Record]]]
) -> None:
    drawn = [*settings(method), "sampling.temperature=1", "limit=4"]
    together, alone = twice(drawn, [*drawn, "concurrency=1"])
    assert {k: r.response for k, r in together.items()} == {k: r.response for k, r in alone.items()}


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (["method=sample", "method.n=0"], r"method\.n=0 is wrong"),
        (["method=majority", "method.n=0"], r"method\.n=0 is wrong"),
        (["method=best_of_n", "method.n=0"], r"method\.n=0 is wrong"),
        (["method=best_of_n", "method.aggregate=median"], r"method\.aggregate='median' is wrong"),
        (["method=process_best_of_n", "method.n=0"], r"method\.n=0 is wrong"),
        (["method=beam", "method.width=0"], r"method\.width=0 is wrong"),
        (["method=beam", "method.expansion=0"], r"method\.expansion=0 is wrong"),
        (["method=beam", "method.generator=prm"], r"method\.generator='prm' is wrong"),
        (["method=beam", "prm.adapter=null"], r"prm=tiny_m has no adapter"),
        (["method=best_of_n", "prm.adapter=null"], r"prm=tiny_m has no adapter"),
        (["method=majority", "~model.draft"], r"needs a draft model, and model=tiny has none"),
        (["method.fallback=residual"], r"method\.fallback=residual is what weighting=likelihood_ratio"),
        (["method.fallback=residual", "weighting=likelihood_ratio"], r"set limits\.step_tokens=1"),
        (["weighting=likelihood_ratio", "weighting.alpha=0"], r"weighting\.alpha=0 is wrong"),
        (["weighting=reward_ratio", "weighting.beta=-1"], r"weighting\.beta=-1 is wrong"),
    ],
)
def test_bad_input_is_told_before_a_model_is_loaded(overrides: list[str], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        make_plan(compose_config(*overrides))
