"""Which models a run loads, and which pairs it refuses."""

import json
import shutil
from pathlib import Path

import pytest

from rsd.engines.transformers import TransformersEngine
from rsd.errors import ConfigError, ModelError
from rsd.models import load_models
from rsd.plan import make_plan
from rsd.tiny.tokenizer import build_tokenizer
from tests.conftest import Command, Run, compose_config


@pytest.mark.parametrize(
    ("overrides", "roles"),
    [
        (["method=rsd"], {"draft", "target", "prm"}),
        (["method=rsd", "weighting=constant"], {"draft", "target"}),
        (["method=single", "method.role=draft"], {"draft"}),
        (["method=single", "method.role=target"], {"target"}),
        (["method=sample"], {"draft"}),
        (["method=beam", "method.generator=target"], {"target", "prm"}),
        (["method=speculative"], {"draft", "target"}),
        (["method=rsd_speculative"], {"draft", "target", "prm"}),
        (["weighting=likelihood_ratio"], {"draft", "target"}),
        (["weighting=reward_ratio"], {"draft", "target", "prm"}),
        (["weighting=constant", "score_target=rejected"], {"draft", "target", "prm"}),
    ],
)
def test_only_the_models_that_the_method_needs_are_loaded(overrides: list[str], roles: set[str]) -> None:
    plan = make_plan(compose_config(*overrides))
    load_models(plan)
    assert set(plan.engine.shapes()) == roles


def test_two_tokenizers_are_told_from_one(tmp_path: Path) -> None:
    target = compose_config().model.policies["target"]
    other = shutil.copytree(target.path, tmp_path / "other")
    tokenizer = build_tokenizer(seed=0)
    tokenizer.add_tokens(["<new>"])
    tokenizer.save_pretrained(other)
    assert load_models(make_plan(compose_config())).one_tokenizer
    assert not load_models(make_plan(compose_config(f"model.target.path={other}"))).one_tokenizer
    for judging in ("method=speculative", "method=rsd_speculative", "weighting=likelihood_ratio"):
        with pytest.raises(ConfigError, match=r"different tokenizers; set model\.draft\.path"):
            load_models(make_plan(compose_config(f"model.target.path={other}", judging)))


def test_another_size_than_the_configuration_names_is_told_and_kept(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("method=single", "method.role=draft", "++model.draft.parameters=7000000000", "limit=1")
    remark = "parameters; model.draft.parameters says 7,000,000,000."
    assert remark in capsys.readouterr().err
    (manifest,) = tmp_path.rglob("manifest.json")
    assert json.loads(manifest.read_text())["remarks"][0].endswith(remark)


def test_a_model_that_cannot_be_loaded_takes_those_before_it_along(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their memory is what the next job of a multirun needs."""
    closed: list[list[str]] = []
    close = TransformersEngine.close

    async def noted(engine: TransformersEngine) -> None:
        closed.append(sorted(engine.shapes()))
        await close(engine)

    monkeypatch.setattr(TransformersEngine, "close", noted)
    with pytest.raises(ModelError, match="no reward head"):
        run(f"prm.path={compose_config().model.policies['target'].path}", "limit=1")
    assert closed == [["draft", "target"]]


def in_cache(home: Path, commit: str, folder: str) -> None:
    """Put a checkpoint where a download of the hub's model rsd/family would lie, as its newest commit."""
    model = home / "hub" / "models--rsd--family"
    shutil.copytree(folder, model / "snapshots" / commit, dirs_exist_ok=True)
    (model / "refs").mkdir(exist_ok=True)
    (model / "refs" / "main").write_text(commit)


def test_the_commit_of_a_hub_model_is_kept_and_another_one_does_not_go_on_the_run(cli: Command, tmp_path: Path) -> None:
    old, new = "a" * 40, "b" * 40
    folder = compose_config().model.policies["draft"].path
    wanted = ["method=single", "method.role=draft", "model.draft.path=rsd/family"]
    offline = {"HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1"}
    in_cache(tmp_path / "home", old, folder)
    assert cli(*wanted, "limit=2", **offline).returncode == 0
    (manifest,) = (tmp_path / "results").rglob("manifest.json")
    assert json.loads(manifest.read_text())["revisions"] == {"draft": old}
    in_cache(tmp_path / "home", new, folder)
    moved = cli(*wanted, "limit=4", **offline)
    assert moved.returncode == 2
    assert f"began with commit {old} of the model" in moved.stderr
    assert f"model.draft.revision={old}" in moved.stderr
    assert cli(*wanted, "limit=2", **offline).returncode == 0  # which needs no model


def test_shapes_count_parameters_and_leave_out_what_is_only_looked_up() -> None:
    plan = make_plan(compose_config())
    draft = load_models(plan).draft
    assert draft is not None
    vocabulary = len(draft.tokenizer)
    shapes = plan.engine.shapes()
    for role, layers, width in (("draft", 2, 64), ("target", 4, 128), ("prm", 4, 128)):
        shape = shapes[role]
        matrices = layers * (4 * width**2 + 3 * width * 3 * width)
        output = vocabulary * width if role != "prm" else width
        assert shape.matmul_parameters == matrices + output  # the policies' output matrix is their embedding
        vectors = layers * (3 * width + 2 * width) + width  # biases of q, k, v; two norms; the last norm
        assert shape.parameters == matrices + vectors + vocabulary * width + (width if role == "prm" else 0)
        assert (shape.layers, shape.heads, shape.head_dim) == (layers, width // 32, 32)
