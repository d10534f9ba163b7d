"""A run's metrics as TensorBoard events, over the number of questions done::

tensorboard --logdir results/runs
"""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import orjson
from annotated_types import Gt

from rsd.errors import ConfigError
from rsd.loggers.base import Logger, Metrics, numbers


class TensorBoardLogger(Logger):
    """Writes event files into the folder ``tensorboard`` of the run's own."""

    def __init__(self, *, every: Annotated[float, Gt(0)]) -> None:
        if find_spec("tensorboardX") is None:
            raise ConfigError("logger=tensorboard needs the package tensorboardX: make install EXTRAS=tensorboard")
        super().__init__(every=every)
        self._questions = 0

    def _begin(self, folder: Path, manifest: Mapping[str, Any]) -> None:
        from tensorboardX import SummaryWriter

        self._writer = SummaryWriter(str(folder / "tensorboard"))
        text = orjson.dumps(manifest, option=orjson.OPT_INDENT_2).decode()
        self._writer.add_text("manifest", "\n".join("    " + line for line in text.splitlines()))

    def _log(self, metrics: Metrics) -> None:
        self._questions = int(metrics["questions"] or 0)
        self._write(metrics)

    def _end(self, summary: Mapping[str, Any] | None) -> None:
        self._write({"summary": summary or {}})
        self._writer.close()

    def _write(self, values: Mapping[str, Any]) -> None:
        for name, value in numbers(values).items():
            self._writer.add_scalar(name, value, self._questions)
