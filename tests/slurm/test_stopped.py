"""Jobs that are cancelled, killed, preempted or out of time cost only what was in flight."""

import os
import signal
from pathlib import Path

import orjson
import pytest

from tests.slurm.conftest import MANY, SLOW, Local, Sweep, assert_equal, ended, lines, run, running, state, until
from tests.sweep.conftest import folder_of

pytestmark = pytest.mark.slurm


def test_a_cancelled_job_is_told_and_the_same_command_goes_on(sweep: Sweep, local: Local, tmp_path: Path) -> None:
    """Without accounting, as here, the stock launcher would wait for it for ever."""
    folder = folder_of(tmp_path)
    process = sweep(*SLOW)
    until(lambda: lines(folder) >= 2, process)
    job = running()
    run("scancel", job)
    until(lambda: state(job) == "CANCELLED", process)
    kept = lines(folder)
    status, output, errors = ended(process)
    assert status == 1
    assert f"Slurm job {job} ended before its time (CANCELLED). Log: {tmp_path}/sweeps/slurm/{job}/" in output
    assert errors.strip().endswith("1 of 1 runs are not done; the same command goes on with what is missing.")
    assert "gone, " in output
    assert 2 <= lines(folder) == kept < MANY, "nothing is recorded after the signal"
    assert not (folder / "lock.json").exists()

    process = sweep(*SLOW)  # killed, as where memory runs out, on a machine that cannot be asked for its processes
    until(lambda: lines(folder) >= kept + 2, process)
    job, lock = running(), orjson.loads((folder / "lock.json").read_bytes())
    os.kill(lock["pid"], signal.SIGKILL)
    status, output, _ = ended(process)
    assert status == 1
    assert f"Slurm job {job} ended before its time (FAILED)" in output
    (folder / "lock.json").write_bytes(orjson.dumps({**lock, "host": "elsewhere"}))

    status, output, errors = ended(sweep(f"limit={MANY}"))
    assert (status, errors) == (0, "")
    assert " done " in output
    logs = "".join(path.read_text() for path in tmp_path.glob("sweeps/slurm/*/*.out"))
    assert f"taken over from process {lock['pid']} on elsewhere (Slurm job {job})" in logs
    assert_equal(folder, local(MANY))


def test_a_job_that_runs_out_of_time_or_is_preempted_is_requeued_and_goes_on(
    sweep: Sweep, local: Local, tmp_path: Path
) -> None:
    folder = folder_of(tmp_path, "delta=0.6")
    process = sweep("delta=0.6", *SLOW)
    until(lambda: lines(folder) >= 2, process)
    job = running()

    def begins_anew(kept: int) -> None:
        until(lambda: state(job) == "PENDING", process)
        assert lines(folder) == kept
        run("scontrol", "update", f"jobid={job}", "StartTime=now")  # which is else some minutes later
        until(lambda: lines(folder) >= kept + 2, process)

    run("scancel", f"--signal={signal.SIGUSR2.name}", job)  # as before the end of its time
    until(lambda: state(job) != "RUNNING", process)
    begins_anew(lines(folder))
    run("sbatch", "--partition=urgent", "--cpus-per-task=2", "--output=/dev/null", "--wrap=sleep 1")
    until(lambda: state(job) != "RUNNING", process)
    begins_anew(lines(folder))
    assert ended(process)[::2] == (0, "")
    assert_equal(folder, local(MANY, "delta=0.6"))
    invocations = [orjson.loads(line) for line in (folder / "invocations.jsonl").read_bytes().splitlines()]
    assert [line["stopped"] for line in invocations if "end" in line] == ["SIGUSR2", "SIGTERM", None]
