"""The entry point: one run of one method on one benchmark.

    python -m rsd.run                                            # the tiny family, RSD
    python -m rsd.run method=single method.role=target limit=50
    python -m rsd.run --help

    python -m rsd.run -m +experiment=fig5 limit=50               # many runs; see hydra_plugins/rsd_sweeper.py

The same command again goes on where it stopped, and does nothing where nothing is missing.
"""

import sys
from typing import TYPE_CHECKING

import hydra
from omegaconf import DictConfig

from rsd.command import CONFIGURATION, attempt, leave, status
from rsd.errors import ConfigError

if TYPE_CHECKING:  # needs pydantic, which --help and completion do without
    from rsd.config import RunConfig


@hydra.main(**CONFIGURATION)
def run(cfg: DictConfig) -> float | None:
    """Validate the composed configuration, run it, and return the accuracy."""
    return attempt(cfg, _invoke)


def _invoke(config: "RunConfig") -> float | None:
    if config.shards > 1 and config.shard is None:
        raise ConfigError(f"shards={config.shards} divides runs over jobs: add -m, or name one part, as shard=0.")
    if config.detach:
        raise ConfigError("detach=true submits the jobs of a sweep: add -m hydra/launcher=slurm.")
    # not needed for --help and completion, which should answer at once
    if config.dry_run:
        from rsd.plan import make_plan
        from rsd.sweep.listing import print_forecast
        from rsd.sweep.runs import Run

        print_forecast([Run(overrides=(), config=config, plan=make_plan(config), error=None)])
        return None
    from rsd.invocation import invoke

    return invoke(config)


def main() -> int:
    """Run the command and return its exit status; ``-m`` may stand anywhere, where argparse takes no words after it."""
    sys.argv[1:] = sorted(sys.argv[1:], key=lambda word: word not in ("-m", "--multirun"))
    return status(run)


def command() -> None:
    """Run the command and leave with its exit status."""
    leave(main())


if __name__ == "__main__":
    command()
