"""An event loop whose time passes only while everybody sleeps, and then at once.

seconds, result = virtually(work())   # seconds that it would have taken
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class VirtualLoop(asyncio.SelectorEventLoop):
    """Runs what is ready in no time; where nothing is, its clock jumps to the next timer."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__(_Jumping(self))

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self.now


class _Jumping(selectors.DefaultSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if ready:
            return ready
        if timeout is None:
            raise RuntimeError("everybody waits for somebody else")
        self._loop.now += timeout
        return []


def virtually(work: Coroutine[Any, Any, Result]) -> tuple[float, Result]:
    """Run `work`; the virtual seconds that it took, and its result."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        result = runner.run(work)
        return runner.get_loop().time(), result
