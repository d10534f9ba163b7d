"""Jobs of a sweep as Slurm jobs, by submitit: how they are submitted, stopped, requeued and waited for.

    jobs = submit([Task(hydra_context, task_function, config, overrides, 0), …], settings)
    jobs[0].return_value    # waits; raises SweepError where the job ended without coming to its end

A job that gets a stop signal records nothing more. Where Slurm still has it running then, it was preempted or is about
to run out of time: it is requeued, and goes on by the files of its runs.
"""

import shutil
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hydra.core.singleton import Singleton
from hydra.core.utils import JobReturn, JobStatus, run_job, setup_globals
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, open_dict

from rsd.errors import ConfigError, SweepError
from rsd.signals import STOPPING, listen
from rsd.slurm import job_state, own_job, wait_for
from rsd.state import told

OF_EXECUTOR = ("max_num_timeout", "python")  # settings that submitit takes before the others
FIXED = {"stderr_to_stdout": True, "nodes": 1, "tasks_per_node": 1}
SHARED = {*FIXED, "name", "timeout_min", "mem_gb", "cpus_per_task", "gpus_per_node"}  # with other clusters
RULE = "-" * 22  # around the traceback in submitit's errors
LATE = 15.0  # seconds in which a shared file system shows what a job has written


@dataclass(slots=True)
class Task:
    """What one Slurm job does: Hydra's job `number`, in a process that has Hydra's state."""

    hydra_context: HydraContext
    task_function: TaskFunction
    config: DictConfig
    overrides: tuple[str, ...]
    number: int
    state: Any = field(default_factory=Singleton.get_state)

    def __call__(self) -> JobReturn:
        """Run the job; called again after it was requeued."""
        Singleton.set_state(self.state)
        setup_globals()
        config = self.hydra_context.config_loader.load_sweep_config(self.config, list(self.overrides))
        with open_dict(config.hydra.job):
            config.hydra.job.id = own_job()
            config.hydra.job.num = self.number
        requeue = {number: signal.getsignal(number) for number in (signal.SIGUSR1, signal.SIGUSR2)}
        listen()
        try:
            return run_job(
                hydra_context=self.hydra_context, task_function=self.task_function, config=config,
                job_dir_key="hydra.sweep.dir", job_subdir_key="hydra.sweep.subdir",
            )  # fmt: skip
        except KeyboardInterrupt:
            for number in STOPPING:
                signal.signal(number, signal.SIG_IGN)
            state = job_state(own_job() or "")
            if state is None or state.word == "RUNNING":  # else it was cancelled, or Slurm requeues it itself
                for number, handler in requeue.items():
                    if callable(handler):  # submitit's, of the signal that it has Slurm send
                        handler(number, None)
            raise

    def checkpoint(self) -> Any:
        """What a requeued job does: the same."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


@dataclass(frozen=True, slots=True)
class SlurmJob:
    """A job that was submitted. `submitted` is submitit's."""

    submitted: Any

    @property
    def job_id(self) -> str:
        """Slurm's name of it."""
        return str(self.submitted.job_id)

    @property
    def log(self) -> Path:
        """The file of what it prints."""
        return Path(self.submitted.paths.stdout)

    @property
    def return_value(self) -> Any:
        """What the job returned. Waits for its end; raises SweepError where it came to none of its own."""
        state = wait_for(self.job_id)
        result: Path = self.submitted.paths.result_pickle
        late = time.monotonic() + (LATE if state.word in ("COMPLETED", "unknown") else 0)
        while not result.exists() and time.monotonic() < late:
            time.sleep(0.5)
        if not result.exists():
            raise SweepError(f"Slurm job {self.job_id} ended before its time ({state.word}). Log: {self.log}")
        failed = self.submitted.exception()
        if failed is None:
            returned = self.submitted.result()
            if returned.status == JobStatus.COMPLETED:
                return returned.return_value
            why = told(returned._return_value)
        else:
            why = f"{_last_line(str(failed).split(RULE)[1])}."
        raise SweepError(f"Slurm job {self.job_id} failed: {why} Log: {self.log}")


def submit(tasks: Sequence[Task], settings: Mapping[str, Any]) -> list[SlurmJob]:
    """Submit the tasks, as an array where there are several, with the settings of ``hydra.launcher``.

    Raises ConfigError where submitit or Slurm is not there, or Slurm refuses.
    """
    if find_spec("submitit") is None:
        raise ConfigError("hydra/launcher=slurm needs submitit, which is not installed: make install EXTRAS=slurm.")
    if not (shutil.which("sbatch") and shutil.which("srun")):
        raise ConfigError("hydra/launcher=slurm finds no sbatch and srun here; call it on a login node of a cluster.")
    import submitit
    from submitit.core.utils import FailedJobError

    given = {key: value for key, value in {**FIXED, **settings}.items() if value is not None}
    given["additional_parameters"] = {"requeue": True, **given.get("additional_parameters", {})}  # after preemption
    folder = Path(given.pop("submitit_folder")).absolute()
    own = {f"slurm_{key}": given.pop(key) for key in OF_EXECUTOR if key in given}
    executor = submitit.AutoExecutor(folder, cluster="slurm", **own)
    executor.update_parameters(**{key if key in SHARED else f"slurm_{key}": value for key, value in given.items()})
    try:
        with executor.batch():
            jobs = [executor.submit(task) for task in tasks]
    except FailedJobError as error:
        why = _last_line(str(error)).removeprefix("sbatch: error: ")
        raise ConfigError(f"hydra.launcher: Slurm refuses the jobs ({why}).") from error
    return [SlurmJob(job) for job in jobs]


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2].strip()
