"""Where a run's summary goes besides its own folder: nowhere, or Weights & Biases::

logger.log(manifest, summary)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from rsd.errors import ConfigError


class Logger(Protocol):
    """Told once at the end of an invocation."""

    def log(self, manifest: Mapping[str, Any], summary: Mapping[str, Any]) -> None:
        """Pass on what the run was and what came out."""
        ...


@dataclass(frozen=True, kw_only=True)
class NoLogger:
    """The run folder is enough."""

    def log(self, manifest: Mapping[str, Any], summary: Mapping[str, Any]) -> None:
        pass


class WandbLogger:
    """One Weights & Biases run per run id, so that a resumed run goes on in the same place."""

    def __init__(self, *, project: str, mode: Literal["offline", "online"]) -> None:
        try:
            import wandb
        except ImportError as error:
            raise ConfigError("logger=wandb needs the package wandb: make install EXTRAS=wandb") from error
        self._wandb = wandb
        self._project = project
        self._mode: Literal["offline", "online"] = mode

    def log(self, manifest: Mapping[str, Any], summary: Mapping[str, Any]) -> None:
        run = self._wandb.init(
            project=self._project, mode=self._mode, id=manifest["run_id"], resume="allow", config=dict(manifest)
        )
        run.log(dict(summary))
        run.finish()
