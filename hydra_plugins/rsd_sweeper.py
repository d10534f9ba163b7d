"""The sweeper of ``python -m rsd.run -m``: runs what is missing of all that a command asks for, in few jobs.

    python -m rsd.run -m +experiment=table2 preset=paper hydra/launcher=slurm
    python -m rsd.run -m model=qwen_math_7b +sweep=delta_paper benchmark=math500,gsm8k
    python -m rsd.run -m model=tiny delta=0.6,0.7,0.8,0.9 dry_run=true

Grids become runs, runs that need the same models become one job, and the configured launcher runs the jobs: one
`launch` for each number of devices. Whether a run is done, or what became of it, its own files say.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.plugins import Plugins
from hydra.core.utils import JobRuntime
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf, open_dict

Job = tuple[tuple[str, ...], ...]  # the overrides of each of its runs


class RSDSweeper(Sweeper):
    """See above. Of other commands than ``rsd.run``, every configuration is one job."""

    hydra_context: HydraContext
    config: DictConfig

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Hear what is swept, as Hydra tells every sweeper."""
        self.hydra_context = hydra_context
        self.task_function = task_function
        self.config = config

    def sweep(self, arguments: list[str]) -> None:
        """Run what is missing of all that `arguments` ask for.

        Raises ConfigError before anything runs where a setting is wrong, SweepError at the end where a run is not done.
        """
        # Hydra imports this file for every command, which should answer at once
        from rsd.sweep.grids import expand
        from rsd.sweep.listing import print_forecast, print_outcome
        from rsd.sweep.runs import group, plan_runs

        parser = OverridesParser.create(config_loader=self.hydra_context.config_loader)
        searched = [line for line in self.config.hydra.overrides.hydra if line.startswith("hydra.searchpath")]
        every = [(*searched, *run) for run in expand(parser.parse_overrides(arguments))]
        if JobRuntime.instance().get("name") != "run":
            self._launch_each(every)
            return
        runs = plan_runs(every)
        if self.config.dry_run:
            print_forecast(runs)
            return
        jobs: defaultdict[int, list[Job]] = defaultdict(list)
        for job in group([run for run in runs if not run.complete]):
            jobs[job.gpus] += job.parts
        errors = self._launch(jobs)
        print_outcome(runs, errors)

    def _launch(self, jobs: Mapping[int, Sequence[Job]]) -> str | None:
        """Launch the jobs, those that need equally many devices together. Returns what a launcher failed with."""
        from rsd.state import told
        from rsd.sweep.job import Jobs

        task = Jobs(tuple(job for some in jobs.values() for job in some))
        failed, first = None, 0
        for gpus, some in jobs.items():
            launcher = self._launcher(gpus, task)
            try:
                for result in launcher.launch([self._common] * len(some), initial_job_idx=first):
                    _ = result.return_value  # raises what the job failed with
            except Exception as error:  # of a job, not of a run; the runs' own files tell how far they are
                failed = told(error)
            first += len(some)
        return failed

    def _launcher(self, gpus: int, task: TaskFunction) -> Any:
        config = self.config.copy()
        if OmegaConf.select(config, "hydra.launcher.gpus_per_node", default=0) is None and gpus:
            with open_dict(config):
                config.hydra.launcher.gpus_per_node = gpus
        return Plugins.instance().instantiate_launcher(
            hydra_context=self.hydra_context, task_function=task, config=config
        )

    def _launch_each(self, every: Sequence[Sequence[str]]) -> None:
        launcher = self._launcher(0, self.task_function)
        for result in launcher.launch([list(overrides) for overrides in every], initial_job_idx=0):
            _ = result.return_value

    @property
    def _common(self) -> list[str]:
        """What a job's own configuration is composed with; its runs have their own."""
        return [line for line in self.config.hydra.overrides.task if line.startswith("results_dir=")]
