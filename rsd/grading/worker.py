r"""One killable process that judges answers, so that a poisoned answer costs only itself::

    worker = Worker(time_limit=5.0, memory_limit=2 * 2**30)
    worker.run(equivalent_here, r"\frac{1}{2}", "0.5")  # True
    worker.close()

The process ignores Ctrl-C, which is its parent's to handle. On Linux the kernel limits its memory and kills it as
soon as the parent is gone, however the parent died and whatever the process is computing.
"""

import ctypes
import signal
import sys
import threading
import types
from collections.abc import Callable
from concurrent.futures import CancelledError
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any, Literal, ParamSpec, TypeVar, cast

from pebble import ProcessExpired, ProcessFuture, ProcessPool

from rsd.errors import RSDError
from rsd.grading.equivalence import by_library, equivalent_here

P = ParamSpec("P")
T = TypeVar("T")

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


class GradingError(Exception):
    """An answer that broke a limit of time, or its process; costs that answer only."""

    def __init__(self, reason: Literal["timeout", "crash"]) -> None:
        super().__init__(reason)
        self.reason: Literal["timeout", "crash"] = reason


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
    """One process, started by the first call and replaced whenever an answer kills it.

    Each worker is a pool of its own, so that a process that dies takes no answer of another with it. `run` is for
    one thread at a time; `close` may be called from any.
    """

    def __init__(self, time_limit: float, memory_limit: int) -> None:
        self._time_limit = time_limit
        self._memory_limit = memory_limit
        self._lock = threading.Lock()
        self._closed = False
        self._pool: ProcessPool | None = None
        self._pending: ProcessFuture[tuple[bool, Any]] = ProcessFuture()

    def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `function` in the process, within the limits; the time that a process takes to start does not count.

        Raises GradingError with the limit that was broken, RSDError when no process can start, and CancelledError
        once the worker is closed.
        """
        for _ in range(2):  # a process that died while idle may break the pool only now, and the answer is innocent
            pool = self._pool
            if pool is None or not pool.active:
                self._start()
            try:
                done, value = self._schedule(self._time_limit, function, *args, **kwargs).result()
            except TimeoutError:
                raise GradingError("timeout") from None
            except ProcessExpired:
                raise GradingError("crash") from None
            except RuntimeError:  # the pool is broken (BrokenProcessPool) or was found to be so (RuntimeError itself)
                continue
            if not done:
                break
            return cast("T", value)
        raise GradingError("crash")

    def close(self) -> None:
        """End the process, and with it a call that is running."""
        with self._lock:
            self._closed = True
            self._pending.cancel()
            self._stop()

    def _start(self) -> None:
        with self._lock:
            self._stop()
            self._pool = ProcessPool(1, initializer=_initialize, initargs=(self._memory_limit,), context=_Context())
        try:
            self._schedule(None, equivalent_here, "0", "0").result()
        except (RuntimeError, ProcessExpired) as error:
            raise RSDError(
                f"No grading process can start (its own message stands above): expected math-verify to import within "
                f"memory_limit={self._memory_limit} bytes of address space; install it or raise the limit."
            ) from error

    def _schedule(
        self, time_limit: float | None, function: Callable[P, object], *args: P.args, **kwargs: P.kwargs
    ) -> ProcessFuture[tuple[bool, Any]]:
        with self._lock:  # or a call scheduled while the pool stops would never be answered
            if self._closed or self._pool is None:
                raise CancelledError
            self._pending = self._pool.schedule(_call, args=(function, args, kwargs), timeout=time_limit)
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
    by_library(r"\frac{1}{2}", "0.5")  # imports SymPy and builds the parser's tables before any clock runs


def _call(function: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[bool, T | None]:
    try:
        return True, function(*args, **kwargs)
    except Exception:  # one that does not survive pickling would break the pool
        return False, None
