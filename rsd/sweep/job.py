"""What a launcher runs for a sweep: one job, its runs in order, with models that stay loaded from one to the next.

launcher = instantiate_launcher(task_function=Jobs(overrides), …)
launcher.launch([[], []], initial_job_idx=0)   # two jobs
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hydra.core.hydra_config import HydraConfig

from rsd.command import stop
from rsd.engines.base import ModelSource
from rsd.engines.kept import KeptEngine
from rsd.engines.memo import Memo
from rsd.errors import QuestionsFailedError, StoppedError
from rsd.invocation import invoke
from rsd.records import Role
from rsd.signals import interrupted
from rsd.state import forget_job, told
from rsd.sweep.runs import models_of, plan_runs


@dataclass(frozen=True, slots=True)
class Jobs:
    """The overrides of every run of every job; called with any configuration, it runs the job of Hydra's number."""

    overrides: tuple[tuple[tuple[str, ...], ...], ...]

    def __call__(self, _: Any) -> None:
        execute(self.overrides[HydraConfig.get().job.num])


def execute(every: Sequence[tuple[str, ...]]) -> None:
    """Run the runs with these overrides. One that fails stops none of the others: its own files tell of it."""
    runs = [run for run in plan_runs(every) if run.plan is not None]
    models: dict[Role, ModelSource] = {}
    for run in runs:
        models = {**models_of(run), **models}
    memo = Memo()
    with KeptEngine(runs[0].config.engine, models) as engine:
        for number, run in enumerate(runs, start=1):
            print(f"\nRun {number} of {len(runs)}: {run.name}", flush=True)
            try:
                invoke(run.config, engine, memo)
            except StoppedError as error:
                stop(error)
            except Exception as error:
                print(f"{run.name}: {told(error)}", file=sys.stderr, flush=True)
                if interrupted():  # what it raised was made an error by a library
                    raise KeyboardInterrupt from error
                if not isinstance(error, QuestionsFailedError):
                    engine.end()  # it may be in any state
            if run.plan is not None:
                forget_job(run.plan)
