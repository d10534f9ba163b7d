"""A run divided over jobs is the same run."""

import subprocess
from pathlib import Path

import pytest

from rsd.errors import ConfigError, StoreError
from rsd.invocation import invoke
from rsd.lock import run_lock
from rsd.plan import make_plan
from rsd.state import stored_state
from rsd.store import read_grades, read_lines, read_records
from tests.conftest import ROOT, command, compose_config, environment
from tests.same import assert_same
from tests.sweep.conftest import Sweep, folder_of


def test_shards_that_run_at_the_same_time_make_the_run(tmp_path: Path) -> None:
    results = tmp_path / "results"
    jobs = [
        subprocess.Popen(
            command("limit=7", "shards=2", f"shard={shard}", f"results_dir={results}"), cwd=ROOT, env=environment(),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for shard in (0, 1)
    ]  # fmt: skip
    for job in jobs:
        _, errors = job.communicate()
        assert (job.returncode, errors) == (0, b"")
    config = compose_config(f"results_dir={tmp_path / 'alone'}", "limit=7")
    invoke(config)
    folder, whole = folder_of(results, "limit=7"), make_plan(config).folder
    assert_same(read_records(folder), read_records(whole))
    assert read_grades(folder).keys() == read_grades(whole).keys()
    assert {path.name for path in folder.glob("records*")} == {"records-0.jsonl", "records-1.jsonl"}
    numbers = list(read_lines(folder, "invocations", lambda line: line.split(b",")[0]))
    assert len(set(numbers)) == 2, "records of both name an invocation of their own"
    state = stored_state(folder)
    assert (state.name, state.done) == ("done", 7)
    before = (folder / "summary.json").read_bytes()
    invoke(compose_config(f"results_dir={results}", "limit=7"))  # there is nothing left to do
    assert not (folder / "records.jsonl").read_bytes()
    assert (folder / "summary.json").read_bytes() == before


def test_a_sweep_divides_each_run_over_jobs(sweep: Sweep, tmp_path: Path) -> None:
    status, output, errors = sweep("-m", "method=rsd,majority", "limit=5", "shards=3")
    assert (status, errors) == (0, "")
    assert output.count("Run 1 of 2:") == 3
    for method in ("rsd", "majority"):
        folder = folder_of(tmp_path / "results", f"method={method}")
        assert len(read_records(folder)) == 5
        assert len(list(folder.glob("records-*.jsonl"))) == 3


@pytest.mark.parametrize(("held", "wanted"), [(None, 0), (1, None)])
def test_a_shard_and_the_whole_run_exclude_each_other(held: int | None, wanted: int | None, tmp_path: Path) -> None:
    with run_lock(tmp_path, held), pytest.raises(StoreError, match="is held by process"), run_lock(tmp_path, wanted):
        pass
    with run_lock(tmp_path, wanted):
        pass


def test_two_shards_are_worked_on_together(tmp_path: Path) -> None:
    with run_lock(tmp_path, 0), run_lock(tmp_path, 1):
        pass


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        (["shards=2", "shard=2"], r"shards of shards=2 are 0 to 1"),
        (["shard=1"], r"shards of shards=1 are 0 to 0"),
        (["shards=2", "shard=0", "grader=reference"], r"python -m rsd.grade --grader reference"),
        (["shards=9", "shard=5", "limit=3"], r"of 3 questions there is none left"),
    ],
)
def test_shards_that_cannot_be(overrides: list[str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        make_plan(compose_config(*overrides))


def test_shards_of_a_single_run_need_a_sweep(sweep: Sweep) -> None:
    status, _, errors = sweep("shards=2", "limit=4")
    assert status == 2
    assert "add -m" in errors
