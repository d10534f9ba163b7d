"""The launcher ``hydra/launcher=slurm``: each job of a sweep is a Slurm job, those of one launch an array.

    python -m rsd.run -m +experiment=table2 preset=paper hydra/launcher=slurm hydra.launcher.partition=gpu

A launch submits and returns at once; what it returns waits for its job when it is asked for its value.
"""

from collections.abc import Sequence
from typing import Any

from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf


class SlurmLauncher(Launcher):
    """See above. `settings`: those of ``conf/hydra/launcher/slurm.yaml``."""

    def __init__(self, **settings: Any) -> None:
        self.settings = {
            key: OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value
            for key, value in settings.items()
        }

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Hear what is launched, as Hydra tells every launcher."""
        self.hydra_context = hydra_context
        self.task_function = task_function
        self.config = config

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[Any]:
        """Submit a job for each list of overrides, and return them (`rsd.sweep.slurm.SlurmJob`).

        Raises ConfigError where Slurm or submitit is not there, or Slurm does not take the jobs.
        """
        # Hydra imports this file for every command, which should answer at once
        from rsd.sweep.slurm import Task, submit

        tasks = [
            Task(self.hydra_context, self.task_function, self.config, tuple(overrides), number)
            for number, overrides in enumerate(job_overrides, start=initial_job_idx)
        ]
        return submit(tasks, self.settings)
