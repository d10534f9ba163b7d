"""The sweeper of ``python -m rsd.run -m``: runs what is missing of all that a command asks for, in few jobs.

    python -m rsd.run -m +experiment=table2 preset=paper hydra/launcher=slurm
    python -m rsd.run -m model=qwen_math_7b +sweep=delta_paper benchmark=math500,gsm8k
    python -m rsd.run -m model=tiny delta=0.6,0.7,0.8,0.9 dry_run=true

Grids become runs, runs that need the same models become one job, and the configured launcher runs the jobs: one
`launch` for each number of devices. Whether a run is done, or what became of it, its own files say.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.plugins import Plugins
from hydra.core.utils import JobRuntime
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf, open_dict

if TYPE_CHECKING:  # Hydra imports this file for every command, which should answer at once
    from rsd.sweep.runs import Run

SLURM = "hydra_plugins.rsd_slurm_launcher.SlurmLauncher"


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
        from rsd.errors import ConfigError
        from rsd.sweep.grids import expand
        from rsd.sweep.listing import print_forecast, print_outcome, print_submitted
        from rsd.sweep.runs import plan_runs

        parser = OverridesParser.create(config_loader=self.hydra_context.config_loader)
        searched = [line for line in self.config.hydra.overrides.hydra if line.startswith("hydra.searchpath")]
        every = [(*searched, *run) for run in expand(parser.parse_overrides(arguments))]
        if JobRuntime.instance().get("name") != "run":
            self._launch_each(every)
            return
        if self.config.detach and not self._submits:
            raise ConfigError("detach=true submits jobs and returns: add hydra/launcher=slurm.")
        runs = plan_runs(every)
        if self.config.dry_run:
            print_forecast(runs)
            return
        failures: list[str] = []
        others: list[str] | None = None
        while others is None or others:  # what jobs of another command leave undone is then this one's
            results, others, refused = self._launch(runs)
            failures += refused
            if self.config.detach:
                print_submitted(runs, [result.job_id for result in results], failures)
                return
            failures += self._wait(results, others)
        print_outcome(runs, failures)

    @property
    def _submits(self) -> bool:
        """Whether the launcher only submits the jobs, and what it returns waits for them."""
        return bool(OmegaConf.select(self.config, "hydra.launcher._target_") == SLURM)

    def _launch(self, runs: "Sequence[Run]") -> tuple[list[Any], list[str], list[str]]:
        """Launch what is missing, runs that need equally many devices together. Returns what the launcher returned for
        each job, the Slurm jobs that have the others in hand, and what no job could be launched for."""
        from rsd.errors import ConfigError
        from rsd.state import note_job, told
        from rsd.sweep.job import Jobs
        from rsd.sweep.runs import to_do

        results: list[Any] = []
        refused: list[str] = []
        with self._one_at_a_time():
            jobs, others = to_do(runs)
            task = Jobs(tuple(tuple(part.overrides for part in job) for some in jobs.values() for job in some))
            first = 0
            for gpus, some in jobs.items():
                try:
                    launched = self._launcher(gpus, task).launch([self._common] * len(some), initial_job_idx=first)
                except Exception as error:  # of a job, not of a run; the runs' own files tell how far they are
                    if isinstance(error, ConfigError) and not results:
                        raise
                    refused.append(told(error))
                    launched = []
                for result, job in zip(launched, some, strict=bool(launched)):
                    for part in job if self._submits else ():
                        note_job(part.plan, part.shard, result.job_id, result.log)
                results += launched
                first += len(some)
        return results, others, refused

    def _wait(self, results: Sequence[Any], others: Sequence[str]) -> list[str]:
        """Wait for the jobs that were launched, and for others that Slurm has. Returns what jobs failed with."""
        from rsd.command import stop
        from rsd.errors import StoppedError
        from rsd.slurm import wait_for
        from rsd.state import told

        failures = []
        try:
            for result in results:
                try:
                    _ = result.return_value
                except Exception as error:  # of a job, as above
                    failures.append(told(error))
            for job in others:
                wait_for(job)
        except KeyboardInterrupt:
            jobs = ", ".join([*(result.job_id for result in results if self._submits), *others])
            stop(StoppedError(f"Interrupted; Slurm jobs go on ({jobs}), and the same command waits for them again."))
        return failures

    def _one_at_a_time(self) -> AbstractContextManager[Any]:
        """Keep other commands from submitting the same runs, until it is noted which job has them."""
        if not self._submits:
            return nullcontext()
        from filelock import FileLock

        folder = Path(self.config.hydra.sweep.dir)
        folder.mkdir(parents=True, exist_ok=True)
        return FileLock(folder / "submit.guard")

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
