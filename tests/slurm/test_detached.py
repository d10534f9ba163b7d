"""Sweeps that are submitted and left: status tells the truth, and the same command picks up what is missing."""

import re
import sys
from pathlib import Path

import pytest

from tests.slurm.conftest import Local, Sweep, assert_equal, ended, jobs, run, state, until
from tests.sweep.conftest import folder_of

pytestmark = pytest.mark.slurm
HELD = "hydra.launcher.additional_parameters={hold:true}"


def status(results: Path) -> str:
    return run(sys.executable, "-m", "rsd.status", "--results", str(results))


def test_detached_shards_are_queued_gone_running_and_done(sweep: Sweep, local: Local, tmp_path: Path) -> None:
    grid = ("limit=7", "shards=2")
    left, output, errors = ended(sweep(*grid, "detach=true", HELD))
    assert (left, errors) == (0, "")
    first, second = re.search(r"Submitted 2 jobs: (\d+_0), (\d+_1)\. python -m rsd.status", output).groups()
    folder = folder_of(tmp_path, "limit=7")
    shown = status(tmp_path)
    assert re.search(rf"{folder.name} +queued ", shown)
    assert f"{folder.name}: Slurm job {first} is queued (PENDING). Log: {tmp_path}/sweeps/slurm/{first}/" in shown

    before = jobs()
    left, output, errors = ended(sweep(*grid, "detach=true"))
    assert (left, errors) == (0, "")
    assert f"1 of 1 runs are left to Slurm jobs that have them already: {first}, {second}." in output
    assert "Submitted 0 jobs." in output
    assert jobs() == before

    run("scancel", second)
    run("scontrol", "release", first)
    until(lambda: state(first) == "COMPLETED")
    shown = status(tmp_path)
    assert re.search(rf"{folder.name} +gone, 4 of 7 ", shown)
    assert f"Slurm job {second} is gone (" in shown

    left, output, errors = ended(sweep(*grid))
    assert (left, errors) == (0, "")
    assert re.search(rf"{folder.name} +done ", status(tmp_path))
    assert {path.name for path in folder.glob("records*")} == {"records-0.jsonl", "records-1.jsonl"}
    assert_equal(folder, local(7))


def test_a_job_asks_for_the_devices_that_its_models_need(sweep: Sweep) -> None:
    left, output, errors = ended(
        sweep("method=single", "method.role=draft,target", "engine=vllm", "engine.target.tensor_parallel_size=4",
              "detach=true", "limit=1", HELD, "hydra.launcher.setup=['export MARK=1']",
              "hydra.launcher.python='env MARK=2 python3'", "hydra.launcher.srun_args=[--label]")
    )  # fmt: skip
    assert (left, errors) == (0, "")
    submitted = re.search(r"Submitted 2 jobs: (\d+), (\d+)\.", output).groups()
    asked = dict(line.split("|") for line in jobs("%i|%b"))
    assert sorted(asked[job] for job in submitted) == ["gres:gpu:1", "gres:gpu:4"]
    script = run("scontrol", "write", "batch_script", submitted[0], "-")
    assert "\nexport MARK=1\n" in script
    assert re.search(r"\nsrun .* --label env MARK=2 python3 -u -m submitit", script)
