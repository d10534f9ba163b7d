"""One run as a row: what it was, from its manifest, and what came out, from its solutions.

row = {**described(folder, manifest), **totals(solutions, size=500)}
"""

from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from rsd.cost import ACCOUNTINGS, Shape
from rsd.records import EndReason
from rsd.report.numbers import Facts
from rsd.report.statistics import Samples, bootstrap, wilson
from rsd.report.summary import ROLES

if TYPE_CHECKING:
    import pandas as pd

PER_QUESTION = (
    *("draft_only", "steps", "response_tokens", "prm_calls", "wasted_tokens"),
    *(f"flops_{accounting}" for accounting in ACCOUNTINGS),
    *(f"tokens_{role}" for role in ROLES),
)


def described(folder: Path, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What the run in `folder` is: the columns of ``load(rows="runs")`` up to `grader`.

    `method` is what ``method=`` selects (but ``sample``, whose runs are those of ``single``); `delta` is that of
    ``weighting=binary``; `draft` and `target` are the last parts of the family's paths.
    """
    identity, config = manifest["identity"], manifest.get("config", {})
    settings = identity.get("method", {})
    method = settings.get("method", manifest.get("method"))
    number = settings.get("n", settings.get("width"))
    if method == "beam" and settings["width"] == 1:
        method, number = "process_best_of_n", settings["expansion"]
    if method == "rsd" and settings.get("num_speculative_tokens"):
        method = "rsd_speculative"
    family = config.get("model", {})
    paths = {role: (family.get(role) or {}).get("path") for role in ("draft", "target")}
    sampling = identity.get("sampling", {})
    return {
        "folder": str(folder),
        "run_id": folder.name,
        "name": manifest["name"],
        "benchmark": manifest["benchmark"],
        "size": manifest["benchmark_size"],
        "method": method,
        "role": settings.get("role", settings.get("generator")),
        "n": number,
        "stepwise": bool(settings.get("stepwise", False)),
        "model": manifest.get("model"),
        **{role: path and Path(path).name for role, path in paths.items()},
        "prm": manifest.get("prm"),
        "weighting": settings.get("weighting"),
        "delta": threshold(manifest),
        "settings": dict(settings),
        "temperature": sampling.get("temperature"),
        "top_p": sampling.get("top_p"),
        "seed": identity.get("seed"),
        "tag": identity.get("tag"),
        "limits": identity.get("limits", {}),
    }


def threshold(manifest: Mapping[str, Any]) -> float | None:
    """The run's δ, where its weighting is binary."""
    settings = manifest["identity"].get("method", {})
    delta = settings.get("delta") if settings.get("weighting") == "binary" else None
    return None if delta is None else float(delta)


def facts_of(manifest: Mapping[str, Any]) -> Facts:
    """What the columns need to know of the run."""
    judged = manifest.get("config", {}).get("prm", {}) if manifest.get("prm") else {}
    return Facts(
        shapes={role: Shape(**shape) for role, shape in manifest["shapes"].items()},
        delta=threshold(manifest),
        context=judged.get("context"),
        scores_all=manifest["identity"].get("method", {}).get("method") in ("beam", "best_of_n"),
    )


def target_alone(run: Mapping[str, Any]) -> bool:
    """Whether a run, a row of ``load(rows="runs")``, is what others are compared with: the target in one go."""
    return run["method"] == "single" and run["role"] == "target" and not run["stepwise"] and run["samples"] <= 1


def totals(solutions: "pd.DataFrame", size: int) -> dict[str, Any]:
    """What came out of `solutions`, those of one run or a part of them; `size`: questions of the benchmark.

    As `rsd.report.summary.Summary`, which is of the same records: means are over solutions, `accuracy` is over
    questions and missing where nobody grades them. Solutions that wait for their grade are left out. `complete`: every
    question of the benchmark has as many solutions as any. `unscored`, `near_delta`, `beyond_context`, `judged` and
    ``end_…`` are counts.
    """
    whole = solutions[solutions["whole"]]
    by_question = samples_of(whole)
    most = max((count for _, count in by_question.values()), default=0)
    single = most <= 1
    accuracy: float | None = None
    interval: tuple[float | None, float | None] = None, None
    if len(whole) and whole["graded"].any():
        accuracy = sum(right / count for right, count in by_question.values()) / len(by_question)
        interval = wilson(int(whole["correct"].sum()), len(whole)) if single else bootstrap(by_question)
    sums = {name: int(whole[name].sum()) for name in ("judged", "accepted", "judged_tokens", "accepted_tokens")}
    known = {name: bool(len(whole)) and bool(whole[name].notna().all()) for name in ("near_delta", "beyond_context")}
    ends = whole["end_reason"].value_counts()
    return {
        "samples": most,
        "questions": len(by_question),
        "records": len(whole),
        "errors": int(failed(whole).sum()),
        "complete": len(by_question) == size and len(whole) == size * most,
        "accuracy": accuracy,
        "low": interval[0],
        "high": interval[1],
        "interval_method": "wilson" if single else "bootstrap",
        "judged": sums["judged"],
        "acceptance": _share(sums["accepted"], sums["judged"]),
        "acceptance_tokens": _share(sums["accepted_tokens"], sums["judged_tokens"]),
        "unscored": int(whole["unscored"].sum()),
        **{name: int(whole[name].sum()) if there else None for name, there in known.items()},
        **{f"end_{reason}": int(ends.get(reason, 0)) for reason in get_args(EndReason)},
        **{name: _mean(whole[name].to_numpy(dtype=np.float64)) for name in PER_QUESTION},
    }


def samples_of(solutions: "pd.DataFrame") -> Samples:
    """For each question of one run's `solutions`, how many of its samples are right, and how many there are."""
    grouped = solutions.groupby("question_id", sort=True)["correct"].agg(["sum", "size"])
    return dict(zip(grouped.index, zip(grouped["sum"].tolist(), grouped["size"].tolist(), strict=True), strict=True))


def failed(solutions: "pd.DataFrame") -> "pd.Series":
    """Which solutions are errors."""
    return solutions["error"].notna() | (solutions["end_reason"] == "error")


def _share(part: int, of: int) -> float | None:
    return part / of if of else None


def _mean(values: Any) -> float | None:
    mean = float(values.mean()) if len(values) else np.nan
    return mean if isfinite(mean) else None
