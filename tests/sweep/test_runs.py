"""Which runs share a job: those whose models are the same, and those that write the same samples."""

from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from hydra import initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser

from rsd.benchmarks.hub import HubBenchmark
from rsd.errors import DataError
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


def test_runs_that_draw_the_same_samples_are_one_job_beside_greedy_ones_of_the_same_models(tmp_path: Path) -> None:
    jobs = jobs_of(tmp_path, "method=rsd,majority,best_of_n", "prm=tiny_m,tiny_s", "limit=3")
    assert len(jobs) == 2, "one for each PRM"
    (home,) = [job for job in jobs if any(run.plan and run.plan.drawn for run in job.runs)]
    # majority and best-of-n of both PRMs draw the same samples, into one file
    assert [run.plan.method.name for run in home.runs if run.plan and run.plan.drawn] == [
        "majority@16 draft", "best-of-16 draft last", "best-of-16 draft last"
    ]  # fmt: skip
    assert len(home.runs) == 4


def test_other_settings_of_the_engine_are_another_job(tmp_path: Path) -> None:
    assert len(jobs_of(tmp_path, "engine.max_rows=64,128", "method=single")) == 1, "the same records: one run"
    assert len(jobs_of(tmp_path, "engine.max_rows=64,128", "method=single", "seed=0,1")) == 1
    jobs = jobs_of(tmp_path, "engine=transformers,vllm", "method.role=draft,target", "method=single")
    assert len(jobs) == 2


def test_runs_of_other_questions_are_not_one_run(tmp_path: Path) -> None:
    (job,) = jobs_of(tmp_path, "offset=0,5", "limit=5")
    assert len(job.runs) == 2


def test_a_benchmark_that_cannot_be_had_is_asked_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a network each try takes minutes."""
    tries = []

    def problems(benchmark: HubBenchmark) -> NoReturn:
        tries.append(benchmark.hub)
        raise DataError("there is no network")

    monkeypatch.setattr(HubBenchmark, "problems", problems)
    words = ["benchmark=math500,gsm8k", "delta=0.6,0.7,0.8", f"results_dir={tmp_path}"]
    runs = plan_runs(expand(OverridesParser.create().parse_overrides(words)))
    assert [run.error for run in runs] == ["there is no network"] * 6
    assert sorted(tries) == ["HuggingFaceH4/MATH-500", "openai/gsm8k"]


@pytest.mark.parametrize(
    ("settings", "gpus"),
    [
        (["engine=transformers"], 0),
        (["engine=vllm"], 1),
        (["model=qwen_math_72b", "benchmark=tiny_chain"], 4),
        (["model=qwen_math_72b", "benchmark=tiny_chain", "method=single", "method.role=draft"], 1),
        (["engine=vllm", "engine.target.tensor_parallel_size=4", "engine.prm.replicas=2"], 4),
        (["engine=vllm", "engine.draft.device=0", "engine.target.device=[1,2]", "engine.prm.device=3",
          "engine.target.tensor_parallel_size=2"], 4),
    ],
)  # fmt: skip
def test_devices_follow_from_the_engines_settings(tmp_path: Path, settings: list[str], gpus: int) -> None:
    (job,) = jobs_of(tmp_path, *settings)
    assert job.gpus == gpus
