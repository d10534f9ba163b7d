"""Which runs share a job: those whose models are the same, and those that write the same samples."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hydra import initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser

from rsd.sweep.grids import expand
from rsd.sweep.runs import Group, group, plan_runs
from tests.conftest import ROOT


@pytest.fixture(autouse=True)
def hydra() -> Iterator[None]:
    with initialize_config_dir(config_dir=str(ROOT / "conf"), version_base="1.3"):
        yield


def jobs_of(folder: Path, *arguments: str) -> list[Group]:
    overrides = expand(OverridesParser.create().parse_overrides([*arguments, f"results_dir={folder}"]))
    return group(plan_runs(overrides))


def test_thresholds_weightings_and_the_models_alone_share_a_job(tmp_path: Path) -> None:
    (job,) = jobs_of(tmp_path, "+experiment=fig5,fig6")
    assert len(job.runs) == 17, "binary at 0.7 and the models alone are in both"
    assert job.models.keys() == {"draft", "target", "prm"}


def test_another_model_is_another_job(tmp_path: Path) -> None:
    assert [len(job.runs) for job in jobs_of(tmp_path, "prm=tiny_m,tiny_s", "delta=0.6,0.7")] == [2, 2]
    assert len(jobs_of(tmp_path, "model=tiny,tiny_l")) == 2


def test_sampled_runs_are_apart_from_greedy_ones_and_those_of_one_file_are_together(tmp_path: Path) -> None:
    greedy, sampled = jobs_of(tmp_path, "method=rsd,majority,best_of_n", "prm=tiny_m,tiny_s", "limit=3")[::2]
    assert {run.config.sampling.temperature for run in greedy.runs} == {0.0}
    # majority and best-of-n of both PRMs draw the same samples, into one file
    assert {run.plan.method.name for run in sampled.runs if run.plan} == {"majority@16 draft", "best-of-16 draft last"}
    assert len(sampled.runs) == 3


def test_other_settings_of_the_engine_are_another_job(tmp_path: Path) -> None:
    assert len(jobs_of(tmp_path, "engine.max_rows=64,128", "method=single")) == 1, "the same records: one run"
    assert len(jobs_of(tmp_path, "engine.max_rows=64,128", "method=single", "seed=0,1")) == 1
    jobs = jobs_of(tmp_path, "engine=transformers,vllm", "method.role=draft,target", "method=single")
    assert len(jobs) == 2


def test_runs_of_other_questions_are_not_one_run(tmp_path: Path) -> None:
    (job,) = jobs_of(tmp_path, "offset=0,5", "limit=5")
    assert len(job.runs) == 2


@pytest.mark.parametrize(
    ("settings", "gpus"),
    [
        (["engine=transformers"], 0),
        (["engine=vllm"], 1),
        (["engine=vllm", "engine.target.tensor_parallel_size=4", "engine.prm.replicas=2"], 4),
        (["engine=vllm", "engine.draft.device=0", "engine.target.device=[1,2]", "engine.prm.device=3",
          "engine.target.tensor_parallel_size=2"], 4),
    ],
)  # fmt: skip
def test_devices_follow_from_the_engines_settings(tmp_path: Path, settings: list[str], gpus: int) -> None:
    (job,) = jobs_of(tmp_path, *settings)
    assert job.gpus == gpus
