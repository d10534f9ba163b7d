"""Stored runs as Parquet files."""

from pathlib import Path

import orjson
import pandas as pd
import pyarrow.parquet as pq
import pytest

from rsd.report import load
from rsd.report.export import export, main
from tests.stored import RSD, TARGET, manifest, proposal, record, store


@pytest.fixture
def results(tmp_path: Path) -> Path:
    told = {"target_text": "so", "target_reward": 0.5}
    store(tmp_path, "rsd", [record("a", proposal("draft", 3, 0.9, True, diagnostic=told))], {"a"})
    store(tmp_path, "target", [record("a", proposal("target", 3))], {"a"}, manifest(settings=TARGET))
    return tmp_path


def test_files_hold_what_load_gives(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main([str(out), "--results", str(results)]) == 0
    assert f"{out}/proposals.parquet: 2 proposals" in capsys.readouterr().out
    for rows in ("runs", "solutions", "proposals"):
        stored, frame = pd.read_parquet(out / f"{rows}.parquet"), load(results, rows=rows)
        assert list(stored.columns) == list(frame.columns)
        plain = [name for name in frame if frame[name].dtype != object]
        pd.testing.assert_frame_equal(stored[plain], frame[plain])
    runs = pq.read_table(out / "runs.parquet").to_pylist()
    assert [orjson.loads(row["settings"]) for row in runs] == [RSD, TARGET]
    diagnostics = pq.read_table(out / "proposals.parquet")["diagnostic"].to_pylist()
    told = {"target_text": "so", "target_reward": 0.5, "same_text": False}
    assert [line and orjson.loads(line) for line in diagnostics] == [told, None]


def test_a_part(results: Path, tmp_path: Path) -> None:
    assert export(results, tmp_path / "out", method="single") == {
        "runs": 1, "solutions": 1, "proposals": 1, "invocations": 0,
    }  # fmt: skip


def test_bad_input(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "out"), "--results", str(tmp_path / "nothing")]) == 2
    assert "python -m rsd.run makes one" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    (tmp_path / "file").write_text("")
    assert main([str(tmp_path / "file"), "--results", str(results)]) == 2
    assert "cannot write" in capsys.readouterr().err
