"""One living process holds a run folder; a dead one is taken over at once, and by one process only."""

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import orjson
import psutil
import pytest

from rsd import lock as lock_module
from rsd import slurm
from rsd.errors import StoreError
from rsd.lock import RunLock

ROOT = Path(__file__).parents[1]
Start = Callable[..., "subprocess.Popen[str]"]

HOLD = """
import sys
from pathlib import Path
from rsd.errors import StoreError
from rsd.lock import RunLock

try:
    with RunLock(Path(sys.argv[1])):
        print("held", flush=True)
        sys.stdin.read()
except StoreError as error:
    print(error, flush=True)
"""

RACE = """
import contextlib, sys, time
from pathlib import Path
from rsd.errors import StoreError
from rsd.lock import RunLock

print("ready", flush=True)
start = float(sys.stdin.readline())
with contextlib.ExitStack() as held:
    for number, path in enumerate(sys.argv[1:]):
        time.sleep(max(0, start + 0.3 * number - time.time()))
        try:
            held.enter_context(RunLock(Path(path)))
            print("won", flush=True)
        except StoreError:
            print("refused", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lock.json"


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a Python process that is killed at the end of the test."""
    processes = []

    def start(script: str, *arguments: Path, **options: Any) -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", script, *map(str, arguments)]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True, **options)
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def say(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


def write(path: Path, **changes: Any) -> None:
    """Write the lock of another host that lives, with some fields changed."""
    now = time.time()
    holder = {"host": "elsewhere", "pid": 7, "started": 1.0, "slurm_job_id": None, "since": now, "heartbeat": now}
    path.write_bytes(orjson.dumps(holder | changes))


def here(**changes: Any) -> dict[str, Any]:
    """Name this very process as the holder."""
    process = psutil.Process()
    return {"host": socket.gethostname(), "pid": process.pid, "started": process.create_time(), **changes}


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def takeovers(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [message for message in caplog.messages if "taken over" in message]


def test_a_second_process_is_refused_while_the_first_lives(path: Path, start: Start) -> None:
    first = start(HOLD, path)
    assert say(first) == "held"
    content = path.read_bytes()
    second = start(HOLD, path)
    refusal, _ = second.communicate()
    with pytest.raises(StoreError) as caught, RunLock(path):
        pass
    for message in (refusal, str(caught.value)):
        assert message.startswith(f"{path} is held by process {first.pid} on {socket.gethostname()} since 20")
        assert "stop it" in message
        assert "run the same command again" in message
    assert path.read_bytes() == content


def test_a_released_lock_is_free(path: Path, start: Start, caplog: pytest.LogCaptureFixture) -> None:
    first = start(HOLD, path)
    assert say(first) == "held"
    first.communicate()
    assert not path.exists()
    with RunLock(path) as lock:
        assert not lock.lost
    with lock:  # and can be held again
        assert path.exists()
    assert not path.exists()
    assert caplog.messages == []


def test_the_lock_is_released_when_the_run_fails(path: Path) -> None:
    with pytest.raises(ZeroDivisionError), RunLock(path):
        raise ZeroDivisionError
    assert not path.exists()


def test_an_interrupt_while_the_lock_is_taken_leaves_none(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = lock_module.write_json

    def interrupted(*arguments: Any) -> None:
        write(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(lock_module, "write_json", interrupted)
    with pytest.raises(KeyboardInterrupt), RunLock(path):
        pass
    assert not path.exists()


def test_a_process_does_not_share_its_lock_with_itself(path: Path) -> None:
    with RunLock(path):
        with pytest.raises(StoreError, match=f"held by process {os.getpid()} on"), RunLock(path):
            pass
        assert path.exists()


def test_the_file_names_its_holder(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "4711")
    before = time.time()
    with RunLock(path):
        content = orjson.loads(path.read_bytes())
    assert before <= content.pop("since") <= content.pop("heartbeat") <= time.time()
    assert content == here(slurm_job_id="4711", slurm_restarts=0)


def test_an_element_of_a_job_array_is_named_by_its_place(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last element has the number of the whole array, which may live on when it is gone."""
    for name, value in {"JOB_ID": "4711", "ARRAY_JOB_ID": "4711", "ARRAY_TASK_ID": "2", "RESTART_COUNT": "3"}.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    with RunLock(path):
        content = orjson.loads(path.read_bytes())
    assert (content["slurm_job_id"], content["slurm_restarts"]) == ("4711_2", 3)


@pytest.mark.parametrize(("count", "taken"), [("1", True), ("0", False)])
def test_a_requeued_job_takes_over_what_it_held_on_another_machine(
    path: Path, monkeypatch: pytest.MonkeyPatch, count: str, taken: bool
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("SLURM_JOB_ID", "4711")
    monkeypatch.setenv("SLURM_RESTART_COUNT", count)
    write(path, slurm_job_id="4711", slurm_restarts=0)
    with nullcontext() if taken else pytest.raises(StoreError, match="is held by"), RunLock(path):
        pass


@pytest.mark.parametrize("reaped", [True, False], ids=["gone", "zombie"])
def test_a_killed_holder_is_taken_over_at_once(
    path: Path, start: Start, caplog: pytest.LogCaptureFixture, reaped: bool
) -> None:
    first = start(HOLD, path)
    assert say(first) == "held"
    first.kill()
    if reaped:
        first.wait()
    else:
        wait_until(lambda: psutil.Process(first.pid).status() == psutil.STATUS_ZOMBIE)
    with RunLock(path):
        assert orjson.loads(path.read_bytes())["pid"] == os.getpid()
    (line,) = caplog.messages
    assert line.startswith(f"{path}: taken over from process {first.pid} on {socket.gethostname()} since ")
    assert line.endswith(": its process is gone")
    assert "\n" not in line


def test_the_line_of_a_takeover_is_printed_without_any_logging_set_up(path: Path, start: Start) -> None:
    write(path, **here(pid=os.getpid(), started=1.0))
    second = start(HOLD, path)
    assert say(second) == "held"
    _, errors = second.communicate()
    assert len(errors.splitlines()) == 1
    assert "taken over" in errors


def test_a_later_process_with_the_same_pid_is_not_the_holder(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(path, **here(started=psutil.Process().create_time() - 60))
    with RunLock(path):
        pass
    assert len(takeovers(caplog)) == 1


def test_a_start_time_read_a_second_apart_is_the_same(path: Path) -> None:
    write(path, **here(started=psutil.Process().create_time() - 1))
    with pytest.raises(StoreError), RunLock(path):
        pass


def test_one_of_eight_processes_wins_a_stale_lock(tmp_path: Path, start: Start) -> None:
    paths = [tmp_path / f"lock-{number}.json" for number in range(5)]
    for path in paths:
        write(path, **here(started=1.0))
    racers = [start(RACE, *paths) for _ in range(8)]
    assert [say(racer) for racer in racers] == ["ready"] * 8
    go = time.time() + 0.2
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write(f"{go}\n")
        racer.stdin.flush()
    outcomes = [[say(racer) for racer in racers] for _ in paths]
    assert [sorted(outcome) for outcome in outcomes] == [["refused"] * 7 + ["won"]] * len(paths)
    for path, outcome in zip(paths, outcomes, strict=True):
        assert orjson.loads(path.read_bytes())["pid"] == racers[outcome.index("won")].pid


@pytest.mark.parametrize("silence", [0, 290, 310])
@pytest.mark.parametrize("holder", ["another host", "this process"])
def test_a_silent_holder_is_dead_after_five_minutes(
    path: Path, caplog: pytest.LogCaptureFixture, silence: float, holder: str
) -> None:
    write(path, **(here() if holder == "this process" else {}), heartbeat=time.time() - silence)
    if silence < 300:
        with pytest.raises(StoreError, match=rf"last heard of ({silence}|{silence + 1}) s ago"), RunLock(path):
            pass
    else:
        with RunLock(path):
            pass
        assert [line.rpartition(": ")[2] for line in takeovers(caplog)] == ["no heartbeat for 5 minutes"]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"{}", b'{"host":"a","pid":"x"}', b"\xff\0"])
def test_an_unreadable_lock_is_dead_five_minutes_after_it_was_written(
    path: Path, caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    path.write_bytes(content)
    with pytest.raises(StoreError, match="held by an unknown process"), RunLock(path):
        pass
    os.utime(path, (time.time() - 310, time.time() - 310))
    with RunLock(path):
        assert orjson.loads(path.read_bytes())["pid"] == os.getpid()
    assert len(takeovers(caplog)) == 1


@pytest.mark.parametrize(
    ("squeue", "gone"),
    [
        pytest.param('case "$*" in *=4711) echo "4711|RUNNING";; esac', False, id="running"),
        pytest.param('echo "4711|SUSPENDED"', False, id="suspended"),
        pytest.param('echo "4711|COMPLETING"', False, id="completing"),
        pytest.param('echo "4711|PENDING"', True, id="requeued"),
        pytest.param('echo "4711|CANCELLED"', True, id="cancelled"),
        pytest.param("exit 0", True, id="ended"),
        pytest.param("echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1", True, id="forgotten"),
        pytest.param("echo 'Unable to contact slurm controller' >&2; exit 1", False, id="no answer"),
        pytest.param("exec sleep 30", False, id="hangs"),
        pytest.param(None, False, id="no squeue"),
    ],
)
def test_a_job_that_slurm_does_not_know_is_dead(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, squeue: str | None, gone: bool
) -> None:
    commands = tmp_path / "bin"
    commands.mkdir()
    if squeue is not None:
        (commands / "squeue").write_text(f"#!/bin/sh\n{squeue}\n")
        (commands / "squeue").chmod(0o755)
    (commands / "sleep").symlink_to("/bin/sleep")
    monkeypatch.setenv("PATH", str(commands))
    monkeypatch.setattr(slurm, "SQUEUE_TIMEOUT", 1.0)
    write(path, slurm_job_id="4711")
    if gone:
        with RunLock(path):
            pass
    else:
        with pytest.raises(StoreError, match=r"process 7 on elsewhere \(Slurm job 4711\) since"), RunLock(path):
            pass


def test_heartbeats_keep_the_lock_fresh(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_module, "HEARTBEAT", 0.05)
    with RunLock(path) as lock:
        first = orjson.loads(path.read_bytes())
        wait_until(lambda: orjson.loads(path.read_bytes())["heartbeat"] > first["heartbeat"] + 0.1)
        last = orjson.loads(path.read_bytes())
        assert {**last, "heartbeat": 0} == {**first, "heartbeat": 0}
        assert not lock.lost
    time.sleep(0.2)
    assert not path.exists()  # no heartbeat after the release
    assert "heartbeat" not in " ".join(thread.name for thread in threading.enumerate())


def test_heartbeats_go_on_after_a_failure(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lock_module, "HEARTBEAT", 0.05)
    with RunLock(path):
        good = path.with_name("good.json")
        good.write_bytes(path.read_bytes())
        unreadable = path.with_name("folder.json")
        unreadable.symlink_to(path.parent)
        unreadable.replace(path)
        wait_until(lambda: any("no heartbeat" in message for message in caplog.messages))
        mended = time.time()
        good.replace(path)
        wait_until(lambda: orjson.loads(path.read_bytes())["heartbeat"] > mended)


def test_a_lock_taken_over_by_another_is_lost_and_left_alone(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lock_module, "HEARTBEAT", 0.05)
    with RunLock(path) as lock:
        write(path)
        foreign = path.read_bytes()
        wait_until(lambda: lock.lost)
        time.sleep(0.2)
        assert path.read_bytes() == foreign
    assert path.read_bytes() == foreign
    assert caplog.messages == [f"{path}: lost to another process"]
    path.unlink()
    with lock:  # held again, it beats again
        assert not lock.lost
        since = orjson.loads(path.read_bytes())["since"]
        wait_until(lambda: orjson.loads(path.read_bytes())["heartbeat"] > since + 0.1)


def test_a_takeover_before_the_next_heartbeat_survives_the_release(path: Path) -> None:
    with RunLock(path):
        write(path)
        foreign = path.read_bytes()
    assert path.read_bytes() == foreign


def test_a_deleted_lock_is_written_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_module, "HEARTBEAT", 0.05)
    with RunLock(path) as lock:
        path.unlink()
        wait_until(path.exists)
        assert not lock.lost


@pytest.mark.parametrize("place", ["file/lock.json", "folder.json"])
def test_a_lock_that_cannot_be_written_is_named(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.json").mkdir()
    path = tmp_path / place
    with pytest.raises(StoreError, match=f"cannot write {path}: .*run the same command again"), RunLock(path):
        pass
