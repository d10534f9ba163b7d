"""What a sweep prints: before it, what it would do (``dry_run=true``); after it, what came out and what failed.

print_forecast(runs)
print_outcome(runs, [])   # raises SweepError where a run is not done
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rsd.errors import SweepError
from rsd.report.cells import NONE, duration, flops_cell, flops_unit
from rsd.state import State, state_of
from rsd.status import accuracy_in
from rsd.sweep.estimate import Estimate, estimate
from rsd.sweep.runs import Run, group
from rsd.sweep.table import print_failures, print_states


def print_forecast(runs: Sequence[Run]) -> None:
    """Print what would run: each run's state, and what the rest of it would cost (`rsd.sweep.estimate`).

    Raises SweepError where one cannot be run, as its data or models are not there."""
    states = [_state(run) for run in runs]
    known = {id(run.plan): state for run, state in zip(runs, states, strict=True) if run.plan}
    estimates = estimate((run.plan for run in runs if run.plan), known)
    costs = [_cost(run, estimates) for run in runs]
    undone = [run for run, state in zip(runs, states, strict=True) if state.name != "done"]
    jobs = group([run for run in undone if not run.complete])
    gpus = {id(run): job.gpus for job in jobs for run in job.runs}
    unit, size = flops_unit(cost.flops for cost in costs)
    print_states(
        [
            (run.name, state, [flops_cell(cost.flops, size), _time(cost, 1), _time(cost, gpus.get(id(run), 0))])
            for run, state, cost in zip(runs, states, costs, strict=True)
        ],
        [unit, "time", "GPU time"],
    )
    whole = _sum(estimates.values())
    if estimates:
        done = sum(state.name == "done" for state in states)
        print(
            f"{len(runs)} runs, {done} done. The rest: {len(jobs)} jobs, about {flops_cell(whole.flops, size)} {unit} "
            "(2 a parameter and token; RSD as if every step were rejected)."
        )
    print_failures((run.name, state) for run, state in zip(runs, states, strict=True))
    impossible = sum(run.plan is None for run in runs)
    if impossible:
        raise SweepError(f"{impossible} of {len(runs)} runs cannot be run as things are.")


def print_submitted(runs: Sequence[Run], jobs: Sequence[str], failures: Sequence[str]) -> None:
    """Print the runs and the Slurm jobs that they were given to. `failures`: why jobs were refused.

    Raises SweepError where there are such."""
    print_states([(run.name, _state(run), []) for run in runs], [])
    listed = f": {', '.join(jobs)}" if jobs else ""
    print(f"Submitted {len(jobs)} jobs{listed}. python -m rsd.status tells how far they are.")
    if failures:
        raise SweepError(f"Some jobs could not be submitted: {' '.join(failures)}")


def print_outcome(runs: Sequence[Run], failures: Sequence[str]) -> None:
    """Print what came out of every run, and why some failed. `failures`: what jobs failed with, as a whole.

    Raises SweepError where a run is not done.
    """
    states = [_state(run) for run in runs]
    print()
    told = zip(runs, states, strict=True)
    accuracies = [accuracy_in(run.plan.folder, state) if run.plan else NONE for run, state in told]
    print_states([(r.name, s, [a]) for r, s, a in zip(runs, states, accuracies, strict=True)], ["accuracy"])
    print_failures((run.name, state) for run, state in zip(runs, states, strict=True))
    for failure in failures:
        print(failure)
    undone = sum(state.name != "done" for state in states)
    if undone:
        raise SweepError(f"{undone} of {len(runs)} runs are not done; the same command goes on with what is missing.")


def _state(run: Run) -> State:
    return state_of(run.plan) if run.plan else State(done=0, errors=0, asked=0, error=run.error)


def _cost(run: Run, estimates: Mapping[Path, Estimate]) -> Estimate:
    plans = (run.plan.drawn, run.plan) if run.plan else ()
    return _sum(estimates[plan.folder] for plan in plans if plan)


def _sum(estimates: Iterable[Estimate]) -> Estimate:
    """Together; unknown where one is."""
    every = list(estimates)
    return Estimate(_total([e.flops for e in every]), _total([e.hours for e in every]))


def _total(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if values and len(known) == len(values) else None


def _time(cost: Estimate, devices: int) -> str:
    return duration(None if cost.hours is None or not devices else cost.hours * devices)
