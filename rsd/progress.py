"""The progress of a run: questions done, right so far, questions per second, time left.

with RunProgress(total=500, label="tiny_chain", every=30) as progress:
    progress.told(grade)

A bar on a terminal; elsewhere, as in the log of a batch job, a line every so many seconds::

    tiny_chain: 120 of 500, 63% right so far, 4.1 q/s, 1 min 32 s left
"""

import sys
import threading
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from rsd.store import GradeRecord


class _Speed(ProgressColumn):
    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("– q/s" if speed is None else f"{speed:.1f} q/s", style="progress.data.speed")


class RunProgress:
    """Shown on standard error. `total`: samples to be made; `every`: seconds between two lines, None for no sign of
    progress, on a terminal neither."""

    def __init__(self, *, total: int, label: str, every: float | None) -> None:
        console = Console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            _Speed(),
            TextColumn("ETA"),
            TimeRemainingColumn(),
            TextColumn("[dim]{task.fields[score]}"),
            console=console,
            disable=every is None or not console.is_terminal,
        )
        self._task = self._bar.add_task(label, total=total, score="")
        self._label = label
        self._total = total
        self._graded = self._right = 0
        self._began = time.monotonic()
        self._over = threading.Event()
        self._lines = None
        if every is not None and not console.is_terminal:
            self._lines = threading.Thread(target=self._tell, args=(every,), daemon=True)

    def __enter__(self) -> Self:
        self._bar.start()
        if self._lines is not None:
            self._lines.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()
        self._over.set()
        if self._lines is not None:
            self._lines.join()

    def told(self, grade: GradeRecord | None) -> None:
        """Count one solution; a missing grade means that decoding failed."""
        self._graded += 1
        self._right += grade is not None and grade.correct
        self._bar.update(self._task, advance=1, score=f"{self._right / self._graded:.0%} right so far")

    @property
    def line(self) -> str:
        """The progress in one line."""
        done = f"{self._label}: {self._graded} of {self._total}"
        if not self._graded:
            return done
        speed = self._graded / (time.monotonic() - self._began)
        left = _duration((self._total - self._graded) / speed)
        return f"{done}, {self._right / self._graded:.0%} right so far, {speed:.1f} q/s, {left} left"

    def _tell(self, every: float) -> None:
        while not self._over.wait(every):
            print(self.line, file=sys.stderr, flush=True)


def _duration(seconds: float) -> str:
    hours, minutes = divmod(round(seconds / 60), 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{int(seconds // 60)} min {int(seconds % 60)} s"
