"""What runs would still cost, before they run: FLOPs, and time where stored runs tell how fast this machine is.

    estimates = estimate(plans, {})
    estimates[plan.folder].flops, estimates[plan.folder].hours

FLOPs are ``positions``, 2·parameters for every token that a model writes or judges. A run that has begun costs what its
own records say. For others an answer is as long as in the stored runs of the benchmark, or, where there are none, an
eighth of ``limits.total_tokens``; RSD is counted as if every step were rejected, which makes it an upper bound.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import orjson

from rsd.models import source_of
from rsd.plan import Plan
from rsd.state import State, state_of
from rsd.store import read_lines

ASSUMED = 1 / 8  # of the longest text, for an answer that nothing is known of


@dataclass(frozen=True, slots=True)
class Estimate:
    """FLOPs of what a run lacks, None where a model's size is unknown; `hours` of wall-clock, None where no stored run
    of the same engine and models tells."""

    flops: float | None
    hours: float | None


def estimate(plans: Iterable[Plan], known: Mapping[int, State]) -> dict[Path, Estimate]:
    """Of each run, and of each that draws samples for one, by folder; `known`: states that were read already, by the
    plan's `id`."""
    made = [one for plan in plans for one in (plan.drawn, plan) if one is not None]
    every = {plan.folder: plan for plan in sorted(made, key=lambda plan: plan.samples)}  # the most samples count
    rates: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for folder, plan in every.items():
        rates[_machine(plan)] += _measured(folder)
    estimates = {}
    for folder, plan in every.items():
        flops = _flops(plan, known.get(id(plan)) or state_of(plan))
        done, seconds = (sum(values) for values in zip(*rates[_machine(plan)], (0.0, 0.0), strict=False))
        estimates[folder] = Estimate(flops, None if flops is None or not done else flops * seconds / done / 3600)
    return estimates


def _flops(plan: Plan, state: State) -> float | None:
    solutions = state.asked - state.done
    summary = _read(plan.folder / "summary.json")
    if plan.drawn is None and summary.get("flops", {}).get("positions"):
        return float(summary["flops"]["positions"]) * solutions
    parameters = {role: source_of(plan, role).parameters for role in plan.method.work}
    if None in parameters.values():
        return None
    per_token = sum(2 * (parameters[role] or 0) * work for role, work in plan.method.work.items())
    return per_token * answer_length(plan) * solutions


def answer_length(plan: Plan) -> float:
    """Tokens of an answer: the mean of stored runs on the benchmark with the same models, or an assumption."""
    lengths = []
    for path in plan.folder.parent.glob("*/summary.json"):
        manifest = _read(path.with_name("manifest.json"))
        if manifest.get("model") == plan.config.model.name:
            lengths.append(_read(path).get("response_tokens"))
    known = [length for length in lengths if length]
    return fmean(known) if known else ASSUMED * plan.decoding.limits.total_tokens


def _machine(plan: Plan) -> str:
    """What speed depends on, beside the machine itself."""
    return orjson.dumps([plan.config.engine, plan.config.model.name]).decode()


def _measured(folder: Path) -> list[tuple[float, float]]:
    """FLOPs and seconds of the invocations that ended."""
    flops = _read(folder / "summary.json").get("flops", {}).get("positions")
    if not flops:
        return []
    lines = read_lines(folder, "invocations", orjson.loads)
    return [(flops * line["records"], line["seconds"]) for line in lines if line.get("records")]


def _read(path: Path) -> Mapping[str, Any]:
    try:
        content: Mapping[str, Any] = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):  # nothing is known then
        return {}
    return content
