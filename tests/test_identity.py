"""A run's identity holds what its output depends on, and nothing else."""

import shutil
from pathlib import Path

import pytest

from rsd.identity import fingerprint
from rsd.plan import make_plan
from tests.conftest import compose_config


def run_id(*overrides: str) -> str:
    return make_plan(compose_config(*overrides)).folder.name


@pytest.mark.parametrize(
    "override",
    [
        "delta=0.6",
        "seed=1",
        "sampling.temperature=0.5",
        "sampling.top_p=0.5",
        "limits.steps=5",
        "limits.repeats=2",
        "step.delimiter=';'",
        "weighting=clipping",
        "method=single",
        "model.prompt=chat_template",
        "model.draft.dtype=bfloat16",
        "model.target.path=${model.draft.path}",
        "prm.max_length=900",
        "tag=again",
    ],
)
def test_what_changes_the_output_changes_the_run(override: str) -> None:
    assert run_id(override) != run_id()


@pytest.mark.parametrize(
    "override",
    [
        "limit=5", "offset=3", "samples=4", "concurrency=2", "engine.max_rows=9", "engine.threads=1", "progress=off",
        "logger=wandb", "memo=off", "retry_failed=true", "prm.context=2048",
    ],
)  # fmt: skip
def test_what_does_not_change_the_output_stays_the_same_run(override: str) -> None:
    assert run_id(override) == run_id()


def test_a_single_model_does_not_depend_on_what_it_never_reads() -> None:
    alone = ("method=single", "method.role=target")
    assert run_id(*alone) == run_id(*alone, "delta=0.1", "weighting=clipping", "prm.max_length=900", "model.draft=null")
    assert run_id(*alone) != run_id(*alone, "method.stepwise=true")
    assert run_id("weighting=constant") == run_id("weighting=constant", "delta=0.1", "prm.max_length=900")


def test_the_same_weights_elsewhere_are_the_same_model_and_other_weights_are_not(tmp_path: Path) -> None:
    own = compose_config().model.policies["draft"]
    copy = Path(shutil.copytree(own.path, tmp_path / Path(own.path).name))
    assert fingerprint(copy) == fingerprint(Path(own.path))
    assert run_id(f"model.draft.path={copy}") == run_id()
    weights = copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    assert run_id(f"model.draft.path={copy}") != run_id()


def test_other_questions_are_another_run(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text('{"question": "1+1?", "answer": "2"}\n')
    first = run_id(f"benchmark.path={path}")
    path.write_text('{"question": "1+1?", "answer": "3"}\n')
    assert run_id(f"benchmark.path={path}") != first


def test_the_name_of_a_run_is_readable() -> None:
    assert run_id().startswith("rsd-binary-delta=0.7-tiny-tiny-m-")
    assert run_id("method=single", "tag=second").startswith("target-alone-tiny-second-")


def test_quantised_weights_make_another_run_and_more_sequences_at_a_time_do_not() -> None:
    def name(*args: str) -> str:
        return make_plan(compose_config("engine=vllm", *args)).folder.name

    assert name("engine.target.args={quantization: fp8}") != name()
    assert name("engine.target.args={max_num_seqs: 64}") == name()


def test_a_chat_template_makes_another_run_than_the_reference_and_so_does_its_system_message() -> None:
    names = {
        make_plan(compose_config(*overrides)).folder.name
        for overrides in (
            ["model.prompt=reference"],
            ["model.prompt=chat_template"],
            ["model.prompt=chat_template", "model.system=Think."],
        )
    }
    assert len(names) == 3
