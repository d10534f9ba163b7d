"""Every file of the configuration tree composes and builds, and everything it names has a test."""

import json
import re
from pathlib import Path

import pytest

from rsd.config import lowered
from rsd.errors import ConfigError
from rsd.methods.decoding import Limits
from rsd.plan import make_plan
from tests.conftest import ROOT, SHARED, compose_config

GROUPS = ("model", "prm", "weighting", "method", "benchmark", "engine", "logger")
OPTIONS = [(path.parent.name, path.stem) for group in GROUPS for path in sorted((ROOT / "conf" / group).glob("*.yaml"))]


@pytest.mark.parametrize(("group", "option"), OPTIONS)
def test_every_option_composes_and_builds(group: str, option: str, tmp_path: Path) -> None:
    overrides = [f"{group}={option}", f"results_dir={tmp_path}", "limit=1"]
    benchmark = compose_config(*overrides).benchmark
    if benchmark["path"] is None:  # no network here
        path = SHARED / "benchmarks" / f"{benchmark['name']}.jsonl"
        if not path.exists():
            path = tmp_path / "rows.jsonl"
            options = ("Correct Answer", *(f"Incorrect Answer {n}" for n in (1, 2, 3)))
            row = {"question": "1+1?", "answer": "2", "instruction": "Add.", **{name: name for name in options}}
            path.write_text(json.dumps(row))
        overrides.append(f"benchmark.path={path}")
    config = compose_config(*overrides)
    for model in (*config.model.policies.values(), config.prm):
        if model.merged is not None:  # as rsd.merge leaves it, without weights
            out = next(path for path in (Path(model.path), Path(model.path).parent) if path.name.endswith("-0.6"))
            Path(model.path).mkdir(parents=True, exist_ok=True)
            (out / "merge.json").write_text(json.dumps({"weight": 0.6}))
    plan = make_plan(config)
    assert plan.method.roles
    assert plan.size == (benchmark.get("size") or plan.size)


@pytest.mark.parametrize(("group", "option"), OPTIONS)
def test_every_option_is_named_in_a_test(group: str, option: str) -> None:
    """A new method, ω, PRM, benchmark, engine or logger needs a test that uses it."""
    node = getattr(compose_config(f"{group}={option}"), group)
    values = node if isinstance(node, dict) else node.model_dump()
    path = str(values.get("_target_") or values.get("adapter") or "")
    imported = f"from {path.rpartition('.')[0]} import (\\([^)]*|.*)\\b{path.rpartition('.')[2]}\\b"
    chosen = f"{group}={option}\\b"
    others = [path.read_text() for path in (ROOT / "tests").rglob("test_*.py") if path != Path(__file__)]
    by_class = bool(path) and group != "method"  # methods share classes, so each is chosen by its name
    found = [text for text in others if re.search(chosen, text) or (by_class and re.search(imported, text))]
    assert found, f"no test imports {path} or chooses {group}={option}"


def test_limits_above_a_models_context_are_lowered_with_a_line() -> None:
    limits, lines = lowered(Limits(total_tokens=4096, step_tokens=300), {"model.draft.context": 1024, "other": 512})
    assert (limits.total_tokens, limits.step_tokens) == (512, 300)
    assert lines == ["limits.total_tokens lowered from 4096 to 512, the model's other."]


def test_a_context_under_256_tokens_is_an_error() -> None:
    lowered(Limits(), {"model.draft.context": 256})
    with pytest.raises(ConfigError, match=r"model\.draft\.context=255 leaves less than 256"):
        lowered(Limits(), {"model.draft.context": 255})


def test_the_lowered_limit_is_printed_and_used(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = compose_config("limits.total_tokens=5000", f"results_dir={tmp_path}")
    plan = make_plan(config)
    assert plan.decoding.limits.total_tokens == 1024
    assert plan.notes == ("limits.total_tokens lowered from 5000 to 1024, the model's model.draft.context.",)


@pytest.mark.parametrize(
    ("value", "every"), [("on", 30), ("auto", 30), ("5", 5), ("1", 1), ("off", None), ("'off'", None)]
)
def test_progress_may_be_switched(value: str, every: int | None) -> None:
    assert compose_config(f"progress={value}").progress_every == every


@pytest.mark.parametrize(("value", "used"), [("on", True), ("off", False), ("'on'", True), ("'off'", False)])
def test_the_memo_may_be_switched_by_the_word_and_by_what_yaml_makes_of_it(value: str, used: bool) -> None:
    assert compose_config(f"memo={value}").memo is used
