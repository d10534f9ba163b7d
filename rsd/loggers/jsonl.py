"""A run's metrics as lines of ``metrics.jsonl`` in its own folder, one JSON object each::

{"event": "begin", "time": "…", "manifest": {…}}
{"event": "metrics", "time": "…", "questions": 40, "accuracy": 0.63, …}
{"event": "end", "time": "…", "summary": {…}}
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import orjson
from annotated_types import Gt

from rsd.loggers.base import Logger, Metrics
from rsd.store import JsonLines


class JsonlLogger(Logger):
    """Appends to ``metrics.jsonl``, invocation after invocation. Raises StoreError where it cannot."""

    def __init__(self, *, every: Annotated[float, Gt(0)]) -> None:
        super().__init__(every=every)

    def _begin(self, folder: Path, manifest: Mapping[str, Any]) -> None:
        self._lines = JsonLines(folder / "metrics.jsonl")
        self._write("begin", {"manifest": manifest})

    def _log(self, metrics: Metrics) -> None:
        self._write("metrics", metrics)

    def _end(self, summary: Mapping[str, Any] | None) -> None:
        self._write("end", {"summary": summary})
        self._lines.close()

    def _write(self, event: str, values: Mapping[str, Any]) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._lines.append(orjson.dumps({"event": event, "time": now, **values}))
