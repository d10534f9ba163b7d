"""The lock of a run folder: one process at a time appends to it, and a dead one is taken over.

The lock is a small file that names its holder and carries a heartbeat, so that it also works between
the machines of a cluster that share a folder, and so that a user can read who holds it::

    with RunLock(folder / "lock.json") as lock:
        while work and not lock.lost:
            ...
"""

import logging
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Self

import orjson
import psutil
from filelock import FileLock

from rsd.errors import StoreError
from rsd.slurm import job_state, own_job, restarts
from rsd.store import write_error, write_json

logger = logging.getLogger(__name__)

HEARTBEAT = 30.0  # seconds between two heartbeats
SILENCE = 300.0  # seconds without a heartbeat after which a holder that cannot be asked is taken for dead
CLOCK_SHIFT = 2.0  # seconds by which one process's start time may differ between readings: it follows the clock
GUARD_TIMEOUT = 60.0  # seconds to wait for another process that reads or writes the lock right now


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The process that holds a lock; `started` and `since` are in seconds since the epoch. `slurm_restarts`: how often
    its Slurm job had been requeued."""

    host: str
    pid: int
    started: float
    slurm_job_id: str | None
    slurm_restarts: int = 0
    since: float

    def __str__(self) -> str:
        job = "" if self.slurm_job_id is None else f" (Slurm job {self.slurm_job_id})"
        since = datetime.fromtimestamp(self.since).astimezone().isoformat(sep=" ", timespec="seconds")
        return f"process {self.pid} on {self.host}{job} since {since}"


class RunLock:
    """The exclusive right to write into the folder of `path`, held while the context is open.

    Entering raises StoreError when another process that lives holds the lock, or when the lock cannot
    be written. A stale lock is taken over with one logged line. `excluding`: a pattern of the names of
    other locks in the folder that nobody may hold at the same time.
    """

    def __init__(self, path: Path, excluding: str | None = None) -> None:
        self.path = path
        self._excluding = excluding
        self._lost = threading.Event()
        self._released = threading.Event()

    @property
    def lost(self) -> bool:
        """Whether a heartbeat found that another process has taken the lock over: nothing may be written then."""
        return self._lost.is_set()

    def __enter__(self) -> Self:
        self._lost.clear()
        self._released.clear()
        self._holder = Holder(
            host=socket.gethostname(),
            pid=os.getpid(),
            started=psutil.Process().create_time(),
            slurm_job_id=own_job(),
            slurm_restarts=restarts(),
            since=time.time(),
        )
        try:
            with self._guard():
                self._refuse_live_holder()
                self._write()
            self._heart = threading.Thread(target=self._beat, name=f"heartbeat of {self.path}", daemon=True)
            self._heart.start()
        except OSError as error:
            raise write_error(self.path, error) from error
        except KeyboardInterrupt:  # a context that was not entered is not left either
            self._released.set()
            self._remove()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self._released.set()
        self._heart.join()
        self._remove()

    def _remove(self) -> None:
        """Remove the lock if it is this holder's."""
        try:
            with self._guard():
                if self.path.exists() and _read(self.path)[0] == self._holder:
                    self.path.unlink()
        except OSError as error:  # the lock is stale once this process is gone; what it raises matters more
            logger.warning("cannot remove %s: %s", self.path, error)

    @contextmanager
    def _guard(self) -> Iterator[None]:
        """Keep other processes from the lock, and from those that it excludes, between reading and writing it."""
        with FileLock(self.path.with_name(f"{self.path.stem.partition('-')[0]}.guard"), timeout=GUARD_TIMEOUT):
            yield

    def _refuse_live_holder(self) -> None:
        others = self.path.parent.glob(self._excluding) if self._excluding else ()
        for path in (*others, self.path):
            if not path.exists():
                continue
            holder, heartbeat = _read(path)
            name = holder or "an unknown process (the file cannot be read)"
            reason = _why_stale(holder, heartbeat)
            if reason is None:
                raise StoreError(
                    f"{path} is held by {name}, last heard of {time.time() - heartbeat:.0f} s ago; wait for its end "
                    f"or stop it (it counts as dead after {SILENCE:.0f} s of silence), then run the same command again"
                )
            if path == self.path:
                logger.warning("%s: taken over from %s: %s", path, name, reason)

    def _write(self) -> None:
        write_json(self.path, {**asdict(self._holder), "heartbeat": time.time()})

    def _beat(self) -> None:
        while not self._released.wait(HEARTBEAT):
            try:
                with self._guard():
                    if self.path.exists() and _read(self.path)[0] not in (self._holder, None):
                        self._lost.set()
                        logger.warning("%s: lost to another process", self.path)
                        return
                    self._write()
            except (OSError, StoreError) as error:  # a disk that is full now may have room at the next heartbeat
                logger.warning("no heartbeat: %s", error)


def run_lock(folder: Path, shard: int | None = None) -> RunLock:
    """The lock of the run in `folder`, or of one of its shards, which may be worked on at the same time."""
    if shard is None:
        return RunLock(folder / "lock.json", excluding="lock-*.json")
    return RunLock(folder / f"lock-{shard}.json", excluding="lock.json")


def live_holders(folder: Path) -> list[str]:
    """Who works on the run in `folder` or on its shards, as far as can be known."""
    holders = (live_holder(path) for path in sorted(folder.glob("lock*.json")))
    return [holder for holder in holders if holder is not None]


def live_holder(path: Path) -> str | None:
    """Who holds the lock, as far as can be known; None where nobody does."""
    try:
        holder, heartbeat = _read(path)
    except OSError:  # there is none, or its holder removed it just now
        return None
    return None if _why_stale(holder, heartbeat) else str(holder or "an unknown process")


def _read(path: Path) -> tuple[Holder | None, float]:
    """Read who holds a lock and the time of the last heartbeat; of an unreadable lock, None and its mtime."""
    try:
        data = orjson.loads(path.read_bytes())
        job = data["slurm_job_id"]
        holder = Holder(
            host=str(data["host"]),
            pid=int(data["pid"]),
            started=float(data["started"]),
            slurm_job_id=None if job is None else str(job),
            slurm_restarts=int(data.get("slurm_restarts", 0)),
            since=float(data["since"]),
        )
        return holder, float(data["heartbeat"])
    except (ValueError, TypeError, KeyError):
        return None, path.stat().st_mtime


def _why_stale(holder: Holder | None, heartbeat: float) -> str | None:
    """Say why the holder of a lock is taken for dead, or None when it lives as far as can be known."""
    if holder is not None and holder.host == socket.gethostname() and not _is_running(holder.pid, holder.started):
        return "its process is gone"
    if holder is not None and holder.slurm_job_id is not None:
        if holder.slurm_job_id == own_job() and holder.slurm_restarts < restarts():
            return "its Slurm job has begun anew"
        state = job_state(holder.slurm_job_id)
        if state is not None and state.phase != "running":
            return f"its Slurm job is {state.phase} ({state.word})"
    silence = time.time() - heartbeat
    return f"no heartbeat for {silence / 60:.0f} minutes" if silence > SILENCE else None


def _is_running(pid: int, started: float) -> bool:
    """Whether the process lives that had this id at that start time; a later one may have its id."""
    try:
        process = psutil.Process(pid)
        same = abs(process.create_time() - started) <= CLOCK_SHIFT
        return same and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
