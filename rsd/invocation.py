"""One invocation of a run: find what is missing, load what that needs, run it, sum up.

    accuracy = invoke(config)

The configuration is checked whole before anything is loaded, and no model is when nothing is missing.
"""

import asyncio
import os
import platform
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import orjson
from rich.console import Console

from rsd.benchmarks.alpaca_eval import write_outputs
from rsd.config import RunConfig
from rsd.cost import Shape
from rsd.engines.base import Models
from rsd.engines.kept import KeptEngine
from rsd.engines.memo import Memo
from rsd.equipment import Equipment, equip
from rsd.errors import QuestionsFailedError, StoppedError
from rsd.grade import grade_beside
from rsd.grading import Grader
from rsd.lock import RunLock, run_lock
from rsd.manifest import write_manifest
from rsd.models import source_of
from rsd.plan import Plan, make_plan
from rsd.progress import RunProgress
from rsd.records import Problem, Record, Role
from rsd.report.relative import relative_to_target
from rsd.report.running import Running
from rsd.report.subsets import subset_table
from rsd.report.summary import summarise, write_summary
from rsd.report.terminal import render
from rsd.rewards.check import fixed_rewards, told, transformers_rewards
from rsd.runner import Job, Outcome, Runner
from rsd.state import RETRIES, missing, noted
from rsd.store import (
    GradeRecord,
    JsonLines,
    Key,
    create_folder,
    is_error,
    read_attempts,
    read_grades,
    read_lines,
    read_manifest,
    read_records,
)


def invoke(config: RunConfig, engine: KeptEngine | None = None, memo: Memo | None = None) -> float | None:
    """Run what `config` asks for and is not done yet, print the summary, and return the accuracy.

    Of the runs before and after this one in a process, where there are any: `engine`, in place of one of its own, and
    `memo`, what their greedy calls have given.

    Raises an RSDError for whatever the user has to know: a wrong setting, a model or file that
    cannot be read or written, questions that failed, a stop signal.
    """
    memo = Memo() if memo is None else memo
    plan = make_plan(config, engine)
    run = asyncio.run if engine is None else engine.run
    for note in plan.notes:
        print(note, file=sys.stderr)
    made = [one for one in (plan.drawn, plan) if one is not None]
    try:
        for one in made:
            outcome = _carry_out(one, run, memo)
            _raise_if_stopped(one, outcome)
        if plan.drawn is not None:
            write_summary(plan.drawn.folder, delta=None, context=None)
        if config.grader != "default":
            with run_lock(plan.folder):
                grade_beside(plan.folder, plan.everything, config.grader)
        accuracy = _report(plan, outcome)
    finally:
        for one in made:
            one.logger.end()
    for one in made:
        _raise_if_failed(one)
    return accuracy


def _carry_out(plan: Plan, run: Callable[[Coroutine[Any, Any, Any]], Any], memo: Memo) -> Outcome:
    """Make what the run still lacks; `run` runs a coroutine."""
    create_folder(plan.logs)
    with ExitStack() as stack:
        lock = stack.enter_context(run_lock(plan.folder, plan.config.shard))
        files = {
            name: stack.enter_context(JsonLines(plan.own(plan.folder / f"{name}.jsonl")))
            for name in ("records", "grades", "invocations")
        }
        stack.enter_context(noted(plan))
        jobs, ungraded = missing(plan)
        if not (jobs or ungraded):
            return Outcome()
        try:
            equipment = equip(plan, jobs, stack, memo)
        except BaseException:  # of the models before that one, in a multirun, the next job needs the memory
            run(plan.engine.close())
            raise
        outcome: Outcome = run(_run(plan, equipment, jobs, ungraded, files, lock))
        return outcome


async def _run(
    plan: Plan,
    equipment: Equipment,
    jobs: Sequence[Job],
    ungraded: Sequence[tuple[Problem, Record]],
    files: dict[str, JsonLines],
    lock: RunLock,
) -> Outcome:
    config, models = plan.config, equipment.models
    try:
        for remark in models.remarks:
            print(remark, file=sys.stderr)
        write_manifest(plan, equipment.shapes, models.remarks)
        number = _next_invocation(plan)
        line = {
            "invocation": number,
            "start": _now(),
            "engine": config.engine,
            "host": platform.node(),
            "cores": os.cpu_count(),
            "concurrency": config.concurrency,
            "scheduling": config.scheduling,
            "devices": plan.engine.devices(),
            "memo": equipment.memo is not None,  # such a run's time is not what it takes alone
            "questions": len({problem.question_id for problem, _ in jobs}),
            "solutions": len(jobs),
            "weights": dict(plan.engine.weights()),  # bytes in memory
            "prm_check": await _checked_rewards(plan, models),
        }
        files["invocations"].append(orjson.dumps(line))
        running = _running(plan, jobs, ungraded)
        plan.logger.begin(plan.logs, _manifest(plan))
        with (
            Grader(workers=max(1, (os.cpu_count() or 1) // 2)) as grader,
            RunProgress(total=len(jobs) + len(ungraded), label=plan.method.name, every=config.progress_every) as bar,
        ):

            def told(record: Record, grade: GradeRecord | None) -> None:
                bar.told(grade)
                running.add(record, grade)
                if plan.logger.due:
                    plan.logger.log(running.metrics())

            runner = Runner(
                solver=equipment.solver,
                seed=config.seed,
                grader=grader,
                records=files["records"],
                grades=files["grades"],
                lock=lock,
                invocation=number,
                concurrency=None if config.concurrency == "auto" else config.concurrency,
                told=told,
                graded=read_grades(plan.folder).values(),
            )
            outcome = await runner.run(jobs, ungraded)
        plan.logger.log(running.metrics())
        totals = {role: asdict(totals) for role, totals in plan.engine.totals().items()}
        asked = {role: asdict(asked) for role, asked in equipment.memo.asked.items()} if equipment.memo else None
        ended = {"end": _now(), "seconds": outcome.seconds, "records": outcome.records, "stopped": outcome.stopped}
        files["invocations"].append(orjson.dumps({**line, **ended, "totals": totals, "asked": asked}))
    finally:
        await plan.engine.close()
    return outcome


def _running(plan: Plan, jobs: Sequence[Job], ungraded: Sequence[tuple[Problem, Record]]) -> Running:
    """The run's metrics, with what earlier invocations made of the questions asked for."""
    coming = {(problem.question_id, sample) for problem, sample in jobs} | {record.key for _, record in ungraded}
    grades = read_grades(plan.folder)
    before = [(r, grades.get(r.key)) for r in _asked(plan, read_records(plan.folder)) if r.key not in coming]
    return Running(_shapes(read_manifest(plan.folder)), before)


async def _checked_rewards(plan: Plan, models: Models) -> list[float] | None:
    """Rewards of a fixed text, compared with transformers' where ``check=true`` asks for it."""
    if models.prm is None or plan.adapter is None:
        return None
    rewards = await fixed_rewards(models.prm)
    if plan.config.check:
        expected = await transformers_rewards(plan.adapter, source_of(plan, "prm"))
        print(told(rewards, expected), file=sys.stderr)
    return rewards


def _report(plan: Plan, outcome: Outcome) -> float | None:
    """Print the summary of the questions asked for; write that of the whole run to ``summary.json``."""
    folder, records, grades = plan.folder, read_records(plan.folder), read_grades(plan.folder)
    asked = _asked(plan, records)
    manifest = read_manifest(folder)
    shapes = _shapes(manifest)
    context = plan.config.prm.context if plan.adapter is not None else None
    write_summary(folder, delta=plan.delta, context=context)
    if plan.config.benchmark.get("format") == "alpaca_eval":
        write_outputs(folder, plan.everything, records)
    summary = summarise(asked, grades, shapes, delta=plan.delta, context=context)
    timed = outcome.records > 0 and plan.drawn is None  # choosing takes next to no time, drawing does
    view = render(
        summary,
        title=f"{plan.method.name} · {plan.config.model.name} · {manifest['benchmark']}",
        seconds=outcome.seconds if timed else None,
        questions_per_second=outcome.records / plan.samples / outcome.seconds if timed else None,
        relative=relative_to_target(folder, asked),
    )
    console = Console(highlight=False)
    console.print(view)
    if plan.drawn is not None:
        cost = f"k/{plan.method.settings['n']} of the FLOPs above"
        console.print(
            f"Expected accuracy over all subsets of k samples (± Monte-Carlo error), at {cost}:", soft_wrap=True
        )
        console.print(subset_table(plan.method.settings["method"], asked, read_grades(plan.drawn.folder)))
        console.print(f"Samples: {plan.drawn.folder}", soft_wrap=True)
    console.print(f"Records: {folder}", soft_wrap=True)
    plan.logger.begin(plan.logs, _manifest(plan))
    plan.logger.end(summary.to_json())
    return summary.accuracy


def _manifest(plan: Plan) -> dict[str, Any]:
    """The run's manifest, for a logger: to that, each shard is a run."""
    shard, manifest = plan.config.shard, read_manifest(plan.folder)
    return manifest if shard is None else {**manifest, "run_id": f"{manifest['run_id']}-{shard}"}


def _shapes(manifest: Mapping[str, Any]) -> dict[Role, Shape]:
    return {role: Shape(**shape) for role, shape in manifest["shapes"].items()}


def _asked(plan: Plan, records: Mapping[Key, Record]) -> list[Record]:
    """The records that there are of the questions asked for."""
    keys = [(problem.question_id, sample) for problem in plan.problems for sample in range(plan.samples)]
    return [records[key] for key in keys if key in records]


def _raise_if_stopped(plan: Plan, outcome: Outcome) -> None:
    if outcome.stopped:
        kept, whole = len(_asked(plan, read_records(plan.folder))), len(plan.problems) * plan.samples
        raise StoppedError(
            f"Stopped by {outcome.stopped}; {kept} of {whole} solutions are kept in {plan.folder}, "
            "and the same command makes the others."
        )


def _raise_if_failed(plan: Plan) -> None:
    asked, attempts = _asked(plan, read_records(plan.folder)), read_attempts(plan.folder)
    failed = [record for record in asked if is_error(record)]
    if failed:
        again = sum(attempts[record.key].failures <= RETRIES for record in failed)
        mend = f"the same command tries {again} of them again" if again else "retry_failed=true tries them again"
        raise QuestionsFailedError(
            f"{len(failed)} of {len(asked)} solutions failed and count as wrong, question {failed[0].question_id} "
            f"first ({failed[0].error}); {mend}."
        )


def _next_invocation(plan: Plan) -> int:
    """A number that no invocation of the run has, nor gets in one of its other shards at the same time."""
    last = max((line["invocation"] for line in read_lines(plan.folder, "invocations", orjson.loads)), default=0)
    shard = plan.config.shard or 0
    return last + 1 + (shard - last) % plan.config.shards


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
