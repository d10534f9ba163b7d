"""Runs whose methods have one name are called by what tells them apart, and by no more."""

from typing import Any

from rsd.report.apart import told_apart


def row(name: str = "rsd binary delta=0.7", **differing: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {
        "run_id": "rsd-binary-delta=0.7-tiny-tiny-m-0123456789", "benchmark": "math500", "model": "tiny",
        "prm": "tiny_m", "temperature": 0.0, "top_p": 1.0, "seed": 0, "tag": None,
        "limits": {"total_tokens": 4096, "repeats": 0}, "settings": {"method": "rsd", "score_target": None},
    }  # fmt: skip
    return {**usual, "name": name, **differing}


def test_a_run_like_no_other_has_its_methods_name() -> None:
    rows = [row(), row("target alone", prm=None), row(benchmark="gsm8k", seed=1)]
    assert told_apart(rows) == ["rsd binary delta=0.7", "target alone", "rsd binary delta=0.7"]


def test_runs_that_look_alike_say_what_differs() -> None:
    rows = [
        row(),
        row(prm="tiny_s"),
        row(temperature=0.7, seed=3),
        row(tag="again"),
        row(settings={"method": "rsd", "score_target": "all"}),
        row(limits={"total_tokens": 256, "repeats": 0}),
    ]
    usual = "prm=tiny_m, temperature=0, seed=0, limits.total_tokens=4096"
    assert told_apart(rows) == [
        f"rsd binary delta=0.7, {usual}",
        f"rsd binary delta=0.7, {usual.replace('tiny_m', 'tiny_s')}",
        "rsd binary delta=0.7, prm=tiny_m, temperature=0.7, seed=3, limits.total_tokens=4096",
        "rsd binary delta=0.7, prm=tiny_m, temperature=0, seed=0, tag=again, limits.total_tokens=4096",
        f"rsd binary delta=0.7, {usual}, score_target=all",
        f"rsd binary delta=0.7, {usual.replace('4096', '256')}",
    ]


def test_what_a_column_shows_is_not_said_again() -> None:
    rows = [row(), row(prm="tiny_s"), row(tag="again")]
    assert told_apart(rows, shown=("prm",)) == [
        "rsd binary delta=0.7",
        "rsd binary delta=0.7",
        "rsd binary delta=0.7, tag=again",
    ]


def test_runs_on_other_weights_bear_their_hash() -> None:
    rows = [row(), row(run_id="rsd-binary-delta=0.7-tiny-tiny-m-abcdefabcd")]
    assert told_apart(rows) == ["rsd binary delta=0.7, 0123456789", "rsd binary delta=0.7, abcdefabcd"]
