"""Latency and GPU-seconds of hand-made runs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rsd.records import Record
from rsd.report import load
from rsd.report.latency import gpu_seconds, latency
from tests.stored import TARGET, manifest, proposal, record, store


def invocation(records: int, **values: Any) -> dict[str, Any]:
    return {
        "invocation": 1, "start": "2026-01-01T00:00:00+00:00", "end": "2026-01-01T00:00:10+00:00", "seconds": 10.0,
        "engine": {"_target_": "rsd.engines.transformers.TransformersEngine"}, "host": "h", "cores": 2,
        "concurrency": "auto", "memo": False, "questions": records, "solutions": records, "records": records,
        "stopped": None, "totals": {}, "devices": {"draft": [0], "target": [0], "prm": [0]}, **values,
    }  # fmt: skip


def spans(*times: tuple[float, float], number: int = 1) -> list[Record]:
    """Answers of the target alone, each from its start to its end."""
    proposals = [proposal("target", 3, t0=t0, t1=t1) for t0, t1 in times]
    return [record(f"q{i}", one, invocation=number) for i, one in enumerate(proposals)]


def test_percentiles(tmp_path: Path) -> None:
    """Questions that take 1, 2, 3, 4, 5 s: P50 is 3, and P99 lies 0.96 of the way from 4 to 5."""
    told = manifest(settings=TARGET)
    store(tmp_path, "all", spans(*((0.5, 1.5 + i) for i in range(5))), {"q0"}, told, [invocation(5)])
    store(tmp_path, "two", spans(*((i, i + 2) for i in range(5))), {"q0"}, told, [invocation(5, concurrency=2)])
    found = latency(load(tmp_path, rows="invocations"), load(tmp_path, rows="solutions")).set_index("run_id")
    assert list(found.loc["all", ["concurrency", "p50", "p99", "mean"]]) == pytest.approx([5, 3, 4.96, 3])
    assert list(found.loc["two", ["concurrency", "p50", "p99", "seconds", "per_second"]]) == [2, 2, 2, 10, 0.5]


@pytest.mark.parametrize(
    "lines",
    [
        [invocation(2, memo=True)],
        [invocation(2, stopped="SIGTERM")],
        [invocation(1), invocation(1, invocation=2)],
        [],
    ],
)
def test_other_runs_tell_no_latency(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    """One with a memo, one that was stopped, one that took two invocations, one that never ended."""
    store(tmp_path, "run", spans((0, 1), (0, 2)), {"q0"}, manifest(settings=TARGET), lines)
    assert len(latency(load(tmp_path, rows="invocations"), load(tmp_path, rows="solutions"))) == 0


def test_choosing_among_samples_takes_no_time_of_its_own(tmp_path: Path) -> None:
    store(tmp_path, "majority", spans((3, 3), (4, 4)), {"q0"}, manifest(settings=TARGET), [invocation(2)])
    assert len(latency(load(tmp_path, rows="invocations"), load(tmp_path, rows="solutions"))) == 0


RSD = [
    record(
        "a",
        proposal("draft", 3, 0.9, True, t0=0.0, t1=2.0),
        proposal("draft", 3, 0.1, False, step=1, t0=2.0, t1=3.0),
        proposal("target", 3, step=1, t0=3.0, t1=6.0),
    ),
    record("b", proposal("draft", 3, 0.9, True, t0=1.0, t1=4.0), proposal("target", 3, step=1, t0=5.0, t1=7.0)),
]


def gpu(results: Path, **devices: Any) -> Any:
    frames = [load(results, rows=rows) for rows in ("invocations", "solutions", "proposals")]
    return gpu_seconds(*frames, **devices).iloc[0]


def test_gpu_seconds(tmp_path: Path) -> None:
    """Draft and PRM are in flight in [0, 4], the target in [3, 7]; the run takes 10 s and two questions."""
    devices = {"draft": [0], "target": [1, 2], "prm": [3]}
    store(tmp_path, "rsd", RSD, {"a"}, manifest(size=2), [invocation(2, devices=devices)])
    found = gpu(tmp_path)
    assert [found[f"seconds_{role}"] for role in ("draft", "target", "prm")] == [2, 2, 2]
    assert (found["devices"], found["busy"], found["reserved"]) == (4, (4 + 4 * 2 + 4) / 2, 10 * 4 / 2)
    other = gpu(tmp_path, devices={"rsd": {"draft": 1, "target": 1, "prm": 1}})
    assert (other["devices"], other["busy"], other["reserved"]) == (3, 6, 15)


def test_engines_on_one_device_are_busy_once(tmp_path: Path) -> None:
    """All on one device: busy in [0, 7]."""
    store(tmp_path, "rsd", RSD, {"a"}, manifest(size=2), [invocation(2)])
    found = gpu(tmp_path)
    assert (found["devices"], found["busy"], found["reserved"], found["wall"]) == (1, 3.5, 5, 5)


def test_pauses_are_not_busy(tmp_path: Path) -> None:
    """[0, 1], [0.5, 2], [5, 6] and [5.2, 5.4] within it: 3 s."""
    told = manifest(settings=TARGET)
    store(tmp_path, "t", spans((5, 6), (0, 1), (5.2, 5.4), (0.5, 2)), {"q0"}, told, [invocation(4)])
    assert gpu(tmp_path)["busy"] == pytest.approx(3 / 4)


def test_of_servers_elsewhere_no_gpu_seconds_are_known(tmp_path: Path) -> None:
    store(tmp_path, "rsd", RSD, {"a"}, manifest(size=2), [invocation(2, devices={})])
    found = gpu(tmp_path)
    assert found["seconds_target"] == 2
    assert all(np.isnan(found[name]) for name in ("devices", "busy", "reserved"))
