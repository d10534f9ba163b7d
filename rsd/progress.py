"""The progress bar of a run: questions done, right so far, questions per second, time left.

with RunProgress(total=500, label="tiny_chain", shown=True) as progress:
    progress.told(grade)
"""

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
    """A bar on standard error, or nothing where `shown` is false. `total` counts samples to be made."""

    def __init__(self, *, total: int, label: str, shown: bool) -> None:
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            _Speed(),
            TextColumn("ETA"),
            TimeRemainingColumn(),
            TextColumn("[dim]{task.fields[score]}"),
            console=Console(stderr=True),
            disable=not shown,
        )
        self._task = self._bar.add_task(label, total=total, score="")
        self._graded = self._right = 0

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def told(self, grade: GradeRecord | None) -> None:
        """Count one solution; a missing grade means that decoding failed."""
        self._graded += 1
        self._right += grade is not None and grade.correct
        self._bar.update(self._task, advance=1, score=f"{self._right / self._graded:.0%} right so far")
