"""Time: seconds per question by concurrency, and the GPU-seconds that a question takes.

    invocations, solutions = load(rows="invocations"), load(rows="solutions")
    latency(invocations, solutions)                               # P50 and P99, one row a run
    gpu_seconds(invocations, solutions, load(rows="proposals"))   # busy and reserved, one row a run

Both read only runs that one invocation made from the first to the last question, without a memo of other runs: any
other run's clock measures something else.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from rsd.records import Role
from rsd.report.summary import ROLES

if TYPE_CHECKING:
    import pandas as pd

RUN = ["run_id", "benchmark", "invocation"]
EQUAL_DEVICES = (
    "RSD holds a device for each of its models. At an equal number of devices the target alone has as many copies of "
    "itself, among which questions are spread: that divides its wall-clock time, not its GPU-seconds. Compare reserved "
    "GPU-seconds, or wall-clock times at the same number of devices, never RSD's on three with the target's on one."
)
Device = tuple[str, int]  # a name that engines may share, and a number


def whole_runs(invocations: "pd.DataFrame", solutions: "pd.DataFrame") -> "pd.DataFrame":
    """The invocations that made all solutions of their run by themselves, undisturbed and without a memo.

    Left out are those that a signal stopped, and selections among stored samples, which take no time of their own.
    """
    took = solutions.assign(took=solutions["t1"] - solutions["t0"])
    made = took.groupby("run_id").agg(all=("sample", "size"), by=("invocation", "nunique"), longest=("took", "max"))
    told = invocations.merge(made.reset_index(), on="run_id")
    alone = (told["by"] == 1) & (told["all"] == told["records"]) & told["stopped"].isna() & ~told["memo"].astype(bool)
    return told[alone & (told["longest"] > 0)].drop(columns=["all", "by", "longest"])


def latency(invocations: "pd.DataFrame", solutions: "pd.DataFrame") -> "pd.DataFrame":
    """Seconds from a question's first request to its last answer, of each whole run, by `concurrency`, the most
    questions in flight: `p50`, `p99` (linear between order statistics: Hyndman & Fan, 1996, type 7), `mean`; and
    `seconds` of the whole run with `per_second`, solutions a second.

    A question's time holds its waiting for a place in a batch, not that for one of the `concurrency` slots.
    """
    whole = whole_runs(invocations, solutions)
    took = solutions.assign(took=solutions["t1"] - solutions["t0"]).groupby("run_id")["took"]
    times = took.quantile(0.5).to_frame("p50").assign(p99=took.quantile(0.99), mean=took.mean())
    kept = whole[[*RUN, "engine", "concurrency", "records", "seconds"]]
    found = kept.assign(per_second=kept["records"] / kept["seconds"])
    return found.merge(times.reset_index(), on="run_id").sort_values(RUN, ignore_index=True)


def gpu_seconds(
    invocations: "pd.DataFrame",
    solutions: "pd.DataFrame",
    proposals: "pd.DataFrame",
    devices: Mapping[str, Mapping[Role, int]] | None = None,
) -> "pd.DataFrame":
    """GPU-seconds per question of each whole run, `busy` and `reserved`, and the `devices` that it holds.

    An engine is busy in the union of the intervals in which it has a request in flight: `seconds_draft`, …, per
    question. busy = Σ over devices of the union over the engines on it; reserved = wall-clock × devices. A draft's step
    is in flight until it is scored, so the draft's and the PRM's intervals both hold both, and are upper bounds.
    `devices`: {run_id: {role: number}}, where each engine has devices of its own; by default those that the invocation
    noted, and NaN where it noted none, as of servers elsewhere.
    """
    import pandas as pd

    rows = []
    whole = whole_runs(invocations, solutions)
    by_run = dict(iter(proposals[proposals["run_id"].isin(whole["run_id"])].groupby("run_id")))
    for told in whole.to_dict("records"):
        run, questions = by_run[told["run_id"]], told["questions"]
        drafted, scored = run["origin"] == "draft", run["reward"].notna()
        work = {"draft": run[drafted], "target": run[~drafted], "prm": run[scored]}
        roles = [role for role in ROLES if len(work[role])]
        given = devices.get(told["run_id"]) if devices else None
        held: dict[Role, list[Device]] = {}  # of all roles, or nothing is known
        if given is not None:
            held = {role: [(role, i) for i in range(given[role])] for role in roles}
        elif all(role in told["devices"] for role in roles):
            held = {role: [("device", i) for i in told["devices"][role]] for role in roles}
        on = {device: [r for r in roles if device in held[r]] for some in held.values() for device in some}
        busy = sum(_union(pd.concat([work[role] for role in here])) for here in on.values()) if on else np.nan
        count = len(on) or np.nan
        rows.append(
            {
                **{name: told[name] for name in (*RUN, "concurrency", "questions")},
                "devices": count,
                "wall": told["seconds"] / questions,
                **{f"seconds_{role}": _union(work[role]) / questions for role in ROLES},
                "busy": busy / questions,
                "reserved": told["seconds"] * count / questions,
            }
        )
    return pd.DataFrame(rows)


def _union(proposals: "pd.DataFrame") -> float:
    """Seconds in which at least one of the proposals was in flight."""
    starts, ends = proposals["t0"].to_numpy(), proposals["t1"].to_numpy()
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], ends[order]
    reached = np.concatenate([[-np.inf], np.maximum.accumulate(ends)])[:-1]  # how far those before it go
    return float(np.maximum(ends - np.maximum(starts, reached), 0.0).sum())
