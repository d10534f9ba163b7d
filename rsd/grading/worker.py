r"""One killable process that compares answers, so that a poisoned answer costs only itself::

    worker = Worker(time_limit=5.0, memory_limit=2 * 2**30)
    worker.compare(r"\frac{1}{2}", "0.5")  # 'equal'
    worker.close()

The process ignores Ctrl-C, which is its parent's to handle. On Linux the kernel limits its memory and kills it as
soon as the parent is gone, however the parent died and whatever the process is computing.
"""

import ctypes
import signal
import sys
import threading
import types
from concurrent.futures import CancelledError
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Literal

from pebble import ProcessExpired, ProcessFuture, ProcessPool

from rsd.errors import RSDError
from rsd.grading.equivalence import equivalent

Reason = Literal["equal", "different", "no answer", "ungradable gold", "timeout", "crash"]

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


class _Process(SpawnProcess):
    """A spawned process that does not import the parent's ``__main__``.

    Nothing of it is needed here. Importing it would run a script that has no main guard a second time, and load
    whatever it imports (torch maps more address space than the memory limit allows).
    """

    _main_is_hidden = threading.Lock()

    def start(self) -> None:
        with self._main_is_hidden:
            main = sys.modules["__main__"]
            sys.modules["__main__"] = types.ModuleType("__main__")
            # inherited by the child, which Ctrl-C could otherwise reach while it still imports
            masked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                super().start()
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, masked)
                sys.modules["__main__"] = main


class _Context(SpawnContext):
    """Spawned, never forked: the parent holds threads and perhaps a GPU."""

    Process = _Process


class Worker:
    """One process, started by the first comparison and replaced whenever an answer kills it.

    Each worker is a pool of its own, so that a process that dies takes no answer of another with it. `compare` is for
    one thread at a time; `close` may be called from any.
    """

    def __init__(self, time_limit: float, memory_limit: int) -> None:
        self._time_limit = time_limit
        self._memory_limit = memory_limit
        self._lock = threading.Lock()
        self._closed = False
        self._pool: ProcessPool | None = None
        self._pending: ProcessFuture[Reason] = ProcessFuture()

    def compare(self, gold: str, answer: str) -> Reason:
        """Compare two answers within the limits; the time that a process takes to start does not count.

        Raises RSDError when no process can start, and CancelledError once the worker is closed.
        """
        for _ in range(2):  # a process that died while idle may break the pool only now, and the answer is innocent
            pool = self._pool
            if pool is None or not pool.active:
                self._start()
            try:
                return self._schedule(gold, answer, self._time_limit).result()
            except TimeoutError:
                return "timeout"
            except ProcessExpired:
                return "crash"
            except RuntimeError:  # the pool is broken (BrokenProcessPool) or was found to be so (RuntimeError itself)
                continue
        return "crash"

    def close(self) -> None:
        """End the process, and with it a comparison that is running."""
        with self._lock:
            self._closed = True
            self._pending.cancel()
            self._stop()

    def _start(self) -> None:
        with self._lock:
            self._stop()
            self._pool = ProcessPool(1, initializer=_initialize, initargs=(self._memory_limit,), context=_Context())
        try:
            self._schedule("0", "0", time_limit=None).result()
        except (RuntimeError, ProcessExpired) as error:
            raise RSDError(
                f"No grading process can start (its own message stands above): expected math-verify to import within "
                f"memory_limit={self._memory_limit} bytes of address space; install it or raise the limit."
            ) from error

    def _schedule(self, gold: str, answer: str, time_limit: float | None) -> ProcessFuture[Reason]:
        with self._lock:  # or a comparison scheduled while the pool stops would never be answered
            if self._closed or self._pool is None:
                raise CancelledError
            self._pending = self._pool.schedule(_compare, args=(gold, answer), timeout=time_limit)
            return self._pending

    def _stop(self) -> None:
        if self._pool is not None:
            self._pool.stop()
            self._pool.join()
            self._pool = None


def _initialize(memory_limit: int) -> None:
    if sys.platform == "linux":  # elsewhere a process whose parent was killed first ends its comparison
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory_limit, memory_limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    equivalent(r"\frac{1}{2}", "0.5")  # imports SymPy and builds the parser's tables before any clock runs


def _compare(gold: str, answer: str) -> Reason:
    try:
        return "equal" if equivalent(gold, answer) else "different"
    except Exception:  # one that does not survive pickling would break the pool
        return "crash"
