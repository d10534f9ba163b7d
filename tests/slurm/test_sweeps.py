"""Sweeps on a real Slurm end with the records of local runs, and tell what failed."""

from pathlib import Path

import pytest

from tests.slurm.conftest import Local, Sweep, assert_equal, ended, jobs
from tests.sweep.conftest import folder_of

pytestmark = pytest.mark.slurm
DELTAS = ("0.6", "0.9")


def test_six_runs_in_three_groups_on_two_slots_of_which_one_group_fails(
    sweep: Sweep, local: Local, tmp_path: Path
) -> None:
    """The stock launcher would show the first error only, and nothing of the runs beside it."""
    conf, weights = tmp_path / "conf", tmp_path / "weights"
    (conf / "prm").mkdir(parents=True)
    own = (Path("conf/prm/tiny_s.yaml").read_text()).replace("${package:tiny/weights/prm_s}", str(weights))
    (conf / "prm" / "own.yaml").write_text(own.replace("name: tiny_s", "name: own"))
    weights.mkdir()
    (weights / "config.json").write_text("{")
    grid = (f"hydra.searchpath=[{conf}]", "prm=tiny_m,tiny_s,own", f"delta={','.join(DELTAS)}", "limit=4")

    def own_folders() -> list[Path]:
        """Of the runs with that PRM, as it now is."""
        own = ("prm=tiny_s", "prm.name=own", f"prm.path={weights}")
        return [folder_of(tmp_path, *own, f"delta={delta}") for delta in DELTAS]

    before = set(jobs())
    status, output, errors = ended(sweep(*grid))
    assert status == 1, errors
    assert errors.strip().splitlines()[-1].startswith("Error: 2 of 6 runs are not done; the same command")
    assert output.count(" done ") == 4
    for folder in own_folders():  # each of them, with its error and its log
        (told,) = [line for line in output.splitlines() if line.startswith(f"tiny_chain/{folder.name}: ")]
        assert str(weights) in told
        assert told.endswith(f"Log: {folder / 'error.log'}")
        assert "Traceback" in (folder / "error.log").read_text()
    mine = set(jobs()) - before
    assert len(mine) == 3
    assert {job.split("|")[1] for job in mine} == {"COMPLETED"}, "which says nothing of the runs"
    for delta in DELTAS:
        for prm in ("tiny_m", "tiny_s"):
            assert_equal(folder_of(tmp_path, f"prm={prm}", f"delta={delta}"), local(4, f"prm={prm}", f"delta={delta}"))


def test_two_sweeps_at_once_on_overlapping_runs_share_them(sweep: Sweep, local: Local, tmp_path: Path) -> None:
    both = [sweep(f"delta={deltas}", "limit=8") for deltas in ("0.6,0.8", "0.8,0.9")]
    told = [ended(process) for process in both]
    for status, output, errors in told:
        assert (status, errors) == (0, "")
        assert output.count(" done ") == 2
    assert sum("1 of 2 runs are left to Slurm jobs that have them already" in output for _, output, _ in told) == 1
    for delta in ("0.6", "0.8", "0.9"):
        assert_equal(folder_of(tmp_path, f"delta={delta}"), local(8, f"delta={delta}"))


def test_what_slurm_refuses_is_one_sentence(sweep: Sweep, tmp_path: Path) -> None:
    status, _, errors = ended(sweep("limit=4", "hydra.launcher.partition=nowhere"))
    assert status == 2
    assert errors.strip().splitlines()[-1] == (
        "Error: hydra.launcher: Slurm refuses the jobs (Batch job submission failed: Invalid partition name specified)."
    )
    assert not (tmp_path / "runs").exists()
