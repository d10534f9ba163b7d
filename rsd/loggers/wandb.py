"""A run's metrics at Weights & Biases, sent by a process of their own (`rsd.loggers.wandb_process`).

Whatever the server does, or does not, happens there: the run hands over a line and goes on.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
from annotated_types import Gt

from rsd.errors import ConfigError
from rsd.loggers.base import Logger, Metrics

PATIENCE = 30.0  # seconds to wait, at a run's end, for a process that is only writing or whose server has answered


class WandbLogger(Logger):
    """One Weights & Biases run for each run id, so that a resumed run goes on in the same place.

    ``offline`` keeps it in the folder ``wandb`` of the run's own (or in WANDB_DIR), for ``wandb sync``; so does
    ``online`` where the server cannot be reached. `entity`: the team, null for the user's default.
    """

    def __init__(
        self,
        *,
        project: str,
        entity: str | None,
        mode: Literal["offline", "online"],
        every: Annotated[float, Gt(0)],
    ) -> None:
        if find_spec("wandb") is None:
            raise ConfigError("logger=wandb needs the package wandb: make install EXTRAS=wandb")
        super().__init__(every=every)
        self._about = {"project": project, "entity": entity, "mode": mode}
        self._log_file = Path()
        self._sending = True

    def _begin(self, folder: Path, manifest: Mapping[str, Any]) -> None:
        self._log_file = folder / "wandb.log"
        with self._log_file.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "rsd.loggers.wandb_process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,  # says when the run has begun
                stderr=log,
                start_new_session=True,  # an interrupt is this process's affair
            )
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)
        folder_of_files = os.environ.get("WANDB_DIR") or str(folder)
        self._send({**self._about, "dir": folder_of_files, "manifest": manifest})

    def _log(self, metrics: Metrics) -> None:
        self._send({"metrics": metrics})

    def _end(self, summary: Mapping[str, Any] | None) -> None:
        self._send({"summary": summary})
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if not self._sending:
            return
        self._process.stdin.close()
        local = self._about["mode"] == "offline" or bool(self._process.stdout.read())
        try:
            if self._process.wait(PATIENCE if local else 0):
                self._fail()
        except subprocess.TimeoutExpired:
            print(f"logger=wandb: a process of its own goes on sending; see {self._log_file}.", file=sys.stderr)

    def _send(self, line: Mapping[str, Any]) -> None:
        """Hand one line to the process, which reads at all times."""
        if not self._sending:
            return
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(orjson.dumps(line) + b"\n")
            self._process.stdin.flush()
        except OSError:  # it is not there any more
            self._fail()

    def _fail(self) -> None:
        self._sending = False
        print(f"logger=wandb: nothing more is sent, see {self._log_file}; the run goes on.", file=sys.stderr)
