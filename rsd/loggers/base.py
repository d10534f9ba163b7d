"""What every logger is told: a run's manifest once, its metrics as it goes on, its summary at the end::

logger.begin(folder, manifest)
if logger.due:
    logger.log(running.metrics())
logger.end(summary)

A new logger is one class of three short methods in a file here and one YAML in ``conf/logger/``.
"""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Metrics = Mapping[str, float | None]


class Logger(ABC):
    """Passes on what it is told of one run. `every`: seconds from one of the run's metrics to the next."""

    def __init__(self, *, every: float) -> None:
        self._every = every
        self._last = -math.inf
        self._open = self._over = False

    def begin(self, folder: Path, manifest: Mapping[str, Any]) -> None:
        """Hear of the run, see `rsd.manifest`, and of its folder. Only the first call counts."""
        if not self._open:
            self._open = True
            self._begin(folder, manifest)

    @property
    def due(self) -> bool:
        """Whether it is time for the next metrics."""
        return time.monotonic() - self._last >= self._every

    def log(self, metrics: Metrics) -> None:
        """Pass on the run's metrics as they are now; `questions` among them counts on. None: not measured."""
        self._last = time.monotonic()
        self._log(metrics)

    def end(self, summary: Mapping[str, Any] | None = None) -> None:
        """Pass on what came of the run, None where it was broken off. Only the first call counts."""
        if self._open and not self._over:
            self._over = True
            self._end(summary)

    @abstractmethod
    def _begin(self, folder: Path, manifest: Mapping[str, Any]) -> None: ...

    @abstractmethod
    def _log(self, metrics: Metrics) -> None: ...

    @abstractmethod
    def _end(self, summary: Mapping[str, Any] | None) -> None: ...


class NoLogger(Logger):
    """The run's own files are enough."""

    def __init__(self) -> None:
        super().__init__(every=math.inf)

    def _begin(self, folder: Path, manifest: Mapping[str, Any]) -> None:
        pass

    def _log(self, metrics: Metrics) -> None:
        pass

    def _end(self, summary: Mapping[str, Any] | None) -> None:
        pass


def numbers(values: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """The numbers in nested mappings, each under the names that lead to it (``flops/passes``)."""
    found: dict[str, float] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            found |= numbers(value, f"{prefix}{name}/")
        elif isinstance(value, int | float):
            found[prefix + name] = value
    return found
