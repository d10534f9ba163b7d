"""A sweep runs what is missing, in few jobs, and tells the truth about what failed."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import orjson
import pytest
from hydra import initialize_config_dir

from rsd.engines.transformers import TransformersEngine
from rsd.invocation import invoke
from rsd.plan import make_plan
from rsd.store import read_records
from rsd.sweep.job import execute
from tests.conftest import ROOT, command, compose_config, environment
from tests.same import assert_same
from tests.sweep.conftest import Sweep, folder_of

GRID = ("-m", "delta=0.6,0.9", "method=rsd,single", "limit=8")
RUNS = (("delta=0.6", "limit=8"), ("delta=0.9", "limit=8"), ("method=single", "limit=8"))


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The roles whose weights were loaded, in order."""
    loaded: list[str] = []
    policy, classifier = TransformersEngine.load_policy, TransformersEngine.load_classifier

    def load_policy(self: TransformersEngine, role: str, source: object) -> object:
        loaded.append(role)
        return policy(self, role, source)  # type: ignore[arg-type]

    def load_classifier(self: TransformersEngine, source: object) -> object:
        loaded.append("prm")
        return classifier(self, source)  # type: ignore[arg-type]

    monkeypatch.setattr(TransformersEngine, "load_policy", load_policy)
    monkeypatch.setattr(TransformersEngine, "load_classifier", load_classifier)
    return loaded


def test_a_grid_loads_each_model_once_and_its_runs_equal_separate_ones(
    sweep: Sweep, loads: list[str], tmp_path: Path
) -> None:
    status, output, errors = sweep(*GRID)
    assert (status, errors) == (0, "")
    assert "Run 3 of 3" in output
    assert sorted(loads) == ["draft", "prm", "target"]
    for overrides in RUNS:
        config = compose_config(f"results_dir={tmp_path / 'alone'}", *overrides)
        invoke(config)
        alone = read_records(make_plan(config).folder)
        swept = read_records(folder_of(tmp_path / "results", *overrides))
        assert len(swept) == 8
        assert_same(swept, alone)  # what a run finds in a cache is its own, too: its FLOPs are those of a run alone
        manifests = [orjson.loads((folder_of(tmp_path / place, *overrides) / "manifest.json").read_bytes())
                     for place in ("results", "alone")]  # fmt: skip
        assert manifests[0]["shapes"] == manifests[1]["shapes"], "those of its own models only"


def test_the_same_command_again_does_only_what_is_missing(sweep: Sweep, loads: list[str], tmp_path: Path) -> None:
    sweep(*GRID)
    folder = folder_of(tmp_path / "results", "delta=0.9", "limit=8")
    before = (folder / "records.jsonl").read_bytes()
    loads.clear()
    status, output, _ = sweep(*GRID)
    assert status == 0
    assert "Run 1" not in output
    assert len(re.findall(r" done ", output)) == 3
    assert loads == []
    status, output, _ = sweep("-m", "delta=0.6,0.9", "method=rsd,single", "limit=8,10")
    assert status == 0
    assert (folder / "records.jsonl").read_bytes().startswith(before)
    assert len(read_records(folder)) == 10


def test_killed_in_the_middle_and_issued_again_it_ends_with_the_same_records(tmp_path: Path, sweep: Sweep) -> None:
    grid = ("-m", "delta=0.6,0.9", "limit=24")
    folders = [folder_of(tmp_path / "results", f"delta={delta}") for delta in (0.6, 0.9)]
    process = subprocess.Popen(
        command(*grid, "concurrency=1", f"results_dir={tmp_path / 'results'}"),
        stdout=subprocess.DEVNULL, cwd=ROOT, env=environment(),
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while not (folders[0] / "records.jsonl").exists() or len((folders[0] / "records.jsonl").read_bytes()) < 10000:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert 0 < len(read_records(folders[0])) < 24
    assert not folders[1].exists()
    status, output, _ = sweep(*grid, "dry_run=true")
    assert status == 0
    assert re.search(r"\b\d+ of 24\b", output)
    assert " missing " in output
    status, output, _ = sweep(*grid)
    assert status == 0
    for folder, delta in zip(folders, (0.6, 0.9), strict=True):
        config = compose_config(f"results_dir={tmp_path / 'alone'}", f"delta={delta}", "limit=24")
        invoke(config)
        assert len(read_records(folder)) == 24
        assert_same(read_records(folder), read_records(make_plan(config).folder), cached=False)


def test_one_failing_run_stops_nothing_else_and_is_told_with_its_log(sweep: Sweep, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "config.json").write_text("{")
    grid = ("-m", "method=single", "method.role=draft,target", "limit=5", f"model.target.path={broken}")
    status, output, errors = sweep(*grid)
    assert status == 1
    assert errors.splitlines()[-1] == "Error: 1 of 2 runs are not done; the same command goes on with what is missing."
    failed = folder_of(tmp_path / "results", "method=single", f"model.target.path={broken}")
    assert f"target-alone-tiny-{failed.name[-10:]}: model.target.path: cannot read the weights of {broken}" in output
    assert f"Log: {failed / 'error.log'}" in output
    assert "Traceback" in (failed / "error.log").read_text()
    assert len(read_records(folder_of(tmp_path / "results", "method=single", "method.role=draft"))) == 5


def test_a_run_whose_models_fail_leaves_the_others_of_its_job_alone(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "config.json").write_text("{")
    common = (f"results_dir={tmp_path / 'results'}", f"model.target.path={broken}", "limit=3")
    draft = ("method=single", "method.role=draft", *common)
    with initialize_config_dir(config_dir=str(ROOT / "conf"), version_base="1.3"):
        execute([draft, ("method=rsd", *common), (*draft, "tag=again")])
    assert len(read_records(folder_of(tmp_path, *draft))) == 3
    assert (folder_of(tmp_path, "method=rsd", *common) / "error.log").exists()
    assert len(read_records(folder_of(tmp_path, *draft, "tag=again"))) == 3


def test_data_that_is_not_there_fails_its_run_only(sweep: Sweep) -> None:
    status, output, errors = sweep("-m", "benchmark=tiny_chain,cn_middle_school", "method=single", "limit=3")
    assert status == 1
    assert "benchmark=cn_middle_school has no file; give one" in output
    assert "1 of 2 runs are not done" in errors


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("+experiment=table22",), "Error: There is no experiment=table22; did you mean table2?"),
        (("+experiment=table22,fig5",), "Error: +experiment=table22: there is no experiments/table22.yaml; did"),
        (("+sweep=delta",), "Error: There is no sweep=delta; did you mean delta_"),
        (("delta=0.7,1.5",), "Error: delta=1.5 is outside the reward's range [0, 1]"),
        (("dleta=0.7,0.8",), "Error: There is no key dleta"),
        (("detach=true",), "Error: detach=true submits jobs and returns: add hydra/launcher=slurm."),
        (("method=rsd,rdd",), "Error: There is no method=rdd; did you mean rsd?"),
    ],
)
def test_a_wrong_command_is_one_sentence_before_anything_runs(
    sweep: Sweep, tmp_path: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    status, output, errors = sweep("-m", *arguments)
    assert status == 2
    assert output == ""
    assert errors.startswith(sentence)
    assert len(errors.strip().splitlines()) == 1
    assert not (tmp_path / "results" / "runs").exists()


def test_detach_without_m_says_how_to_run_it(sweep: Sweep) -> None:
    status, _, errors = sweep("detach=true")
    assert (status, errors) == (2, "Error: detach=true submits the jobs of a sweep: add -m hydra/launcher=slurm.\n")


@pytest.mark.parametrize(
    ("submitit", "told"), [(False, "needs submitit, which is not installed"), (True, "finds no sbatch and srun here")]
)
def test_slurm_that_is_not_there_is_one_sentence(
    sweep: Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, submitit: bool, told: str
) -> None:
    monkeypatch.setattr("rsd.sweep.slurm.find_spec", lambda _: submitit or None)
    monkeypatch.setenv("PATH", "")
    status, _, errors = sweep("-m", "hydra/launcher=slurm", "limit=3")
    assert status == 2
    assert errors.startswith(f"Error: hydra/launcher=slurm {told}")
    assert len(errors.splitlines()) == 1
    assert not (tmp_path / "results" / "runs").exists()


def test_an_experiment_without_m_says_how_to_run_it(sweep: Sweep) -> None:
    status, _, errors = sweep("+experiment=fig5")
    assert status == 2
    assert "add -m" in errors


def test_dry_run_lists_every_run_with_its_cost_and_runs_nothing(sweep: Sweep, loads: list[str], tmp_path: Path) -> None:
    sweep("-m", "delta=0.6", "limit=5")
    loads.clear()
    status, output, _ = sweep("-m", "+experiment=fig5", "limit=5", "dry_run=true")
    assert status == 0
    assert len(re.findall(r"^tiny_chain/\S+ +(done|missing) ", output, re.MULTILINE)) == 13
    assert output.count(" missing ") == 12
    assert "13 runs, 1 done. The rest: 1 jobs" in output
    assert len(re.findall(r" missing +[\d,.]+ +[\d.]+ (?:s|min|h) ", output)) == 12, "the time, as people say it"
    assert loads == []
    assert len(list((tmp_path / "results" / "runs" / "tiny_chain").iterdir())) == 1


def test_a_dry_run_says_once_what_several_runs_lack(sweep: Sweep) -> None:
    status, output, errors = sweep("-m", "benchmark=tiny_chain,cn_middle_school", "delta=0.6,0.7,0.8", "dry_run=true")
    assert status == 1
    assert output.count("benchmark=cn_middle_school has no file; give one") == 1
    assert re.search(r"delta=0.6 .*and 2 more: benchmark=cn_middle_school has no file", output)
    assert errors == "Error: 3 of 6 runs cannot be run as things are.\n"


def test_a_dry_run_of_nothing_that_can_run_sums_nothing_up(sweep: Sweep) -> None:
    status, output, errors = sweep("-m", "benchmark=cn_middle_school", "delta=0.6,0.7", "dry_run=true")
    assert (status, errors) == (1, "Error: 2 of 2 runs cannot be run as things are.\n")
    assert "The rest:" not in output


def test_a_dry_run_loads_no_torch(tmp_path: Path) -> None:
    script = (
        "import sys\nfrom rsd.run import main\nmain()\n"
        "print([name for name in ('torch', 'transformers', 'scipy', 'datasets') if name in sys.modules])"
    )
    shown = subprocess.run(
        [sys.executable, "-c", script, "-m", "+experiment=fig5", "dry_run=true", f"results_dir={tmp_path}"],
        capture_output=True, text=True, cwd=ROOT, check=True,
    )  # fmt: skip
    assert shown.stdout.splitlines()[-1] == "[]"


def test_a_stop_signal_ends_a_sweep_and_its_other_jobs(tmp_path: Path) -> None:
    """The runs of two benchmarks' PRMs are two jobs; one signal ends both."""
    process = subprocess.Popen(
        command("-m", "prm=tiny_m,tiny_s", "limit=300", "concurrency=1", f"results_dir={tmp_path}"),
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=environment(),
    )  # fmt: skip
    first = folder_of(tmp_path)
    deadline = time.monotonic() + 120
    while not (first / "records.jsonl").exists() or not (first / "records.jsonl").read_bytes():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Stopped by SIGTERM" in errors
    assert not folder_of(tmp_path, "prm=tiny_s").exists()
