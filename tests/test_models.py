"""Which models a run loads, and which pairs it refuses."""

import shutil
from pathlib import Path

import pytest

from rsd.errors import ModelError
from rsd.models import load_models
from rsd.plan import make_plan
from rsd.tiny.tokenizer import build_tokenizer
from tests.conftest import compose_config


@pytest.mark.parametrize(
    ("overrides", "roles"),
    [
        (["method=rsd"], {"draft", "target", "prm"}),
        (["method=rsd", "weighting=constant"], {"draft", "target"}),
        (["method=single", "method.role=draft"], {"draft"}),
        (["method=single", "method.role=target"], {"target"}),
    ],
)
def test_only_the_models_that_the_method_needs_are_loaded(overrides: list[str], roles: set[str]) -> None:
    plan = make_plan(compose_config(*overrides))
    load_models(plan)
    assert set(plan.engine.shapes()) == roles


def test_two_tokenizers_are_refused(tmp_path: Path) -> None:
    target = compose_config().model.policies["target"]
    other = shutil.copytree(target.path, tmp_path / "other")
    tokenizer = build_tokenizer(seed=0)
    tokenizer.add_tokens(["<new>"])
    tokenizer.save_pretrained(other)
    with pytest.raises(ModelError, match="have different tokenizers"):
        load_models(make_plan(compose_config(f"model.target.path={other}")))


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
