"""Numbers of each solution, counted over the columns of its proposals::

numbers_of(columns, used, lengths, Facts(shapes=shapes, delta=0.7))["flops_full"]
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rsd.cost import ACCOUNTINGS, Floats, Shape, UsageColumns, flops_of_many
from rsd.records import Role
from rsd.report.summary import NEAR_DELTA, ROLES

Values = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the columns need to know of a run: the models' `shapes`, the threshold `delta` that rewards may lie near to,
    the tokens that the PRM was trained on (`context`), and whether the method is one that `scores_all` proposals, so
    that one without a reward was too long for the PRM."""

    shapes: Mapping[Role, Shape]
    delta: float | None = None
    context: int | None = None
    scores_all: bool = False


def numbers_of(
    columns: Mapping[str, pa.Array], used: Mapping[Role, UsageColumns], lengths: Values, facts: Facts
) -> dict[str, Any]:
    """[record]: numbers of each one's proposals, by the definitions of `rsd.report.summary`.

    `columns` are the proposals', record after record; `used` what each role did for them, `lengths` how many each
    record has. `idle_target`, where the target did nothing, is an array of its own kind.
    """
    owner = np.repeat(np.arange(len(lengths)), lengths)

    def total(values: Values) -> Floats:
        return np.bincount(owner, weights=values, minlength=len(lengths)).astype(np.float64)

    accepted = columns["accepted"].fill_null(False).to_numpy(zero_copy_only=False)
    judged = columns["accepted"].is_valid().to_numpy(zero_copy_only=False)
    kept = columns["kept"].to_numpy(zero_copy_only=False)
    drafted = np.equal(columns["origin"].to_numpy(zero_copy_only=False), "draft")
    tokens = columns["tokens"].to_numpy().astype(np.float64)
    rewards = columns["reward"].to_numpy(zero_copy_only=False).astype(np.float64)
    draft, target, prm = (used[role] for role in ROLES)
    ahead = ~drafted & (draft.generated > 0)  # what the draft wrote for the target to verify
    near = judged & (np.abs(rewards - (np.nan if facts.delta is None else facts.delta)) <= NEAR_DELTA)
    counts = {
        "response_tokens": kept * tokens,
        "steps": kept,
        "draft_tokens_kept": (kept & drafted) * tokens,
        "target_tokens_kept": (kept & ~drafted) * tokens,
        "judged": judged,
        "accepted": accepted,
        "judged_tokens": judged * tokens,
        "accepted_tokens": accepted * tokens,
        "wasted_tokens": (drafted & ~kept) * draft.generated + ahead * (target.drafted - target.accepted),
        "tokens_draft": draft.generated,
        "tokens_target": target.generated,
        "tokens_prm": prm.verified,
        "prm_calls": prm.passes,
        "unscored": facts.scores_all & np.isnan(rewards) & (draft.generated + target.generated > 1),  # EOS alone is 1
        "near_delta": None if facts.delta is None else near,
        "beyond_context": None if facts.context is None else prm.prompt > facts.context,
    }
    sums = {
        name: pa.nulls(len(lengths), pa.int64()) if values is None else pa.array(total(values).astype(np.int64))
        for name, values in counts.items()
    }
    for accounting in ACCOUNTINGS:
        costs: Floats = sum(  # type: ignore[assignment]
            flops_of_many(used[role], facts.shapes[role], accounting)
            if role in facts.shapes
            else np.where(_touched(used[role]), np.nan, 0.0)
            for role in ROLES
        )
        sums[f"flops_{accounting}"] = pa.array(total(costs), pa.float64())
    starts, ends = columns["t0"].to_numpy(), columns["t1"].to_numpy()
    return {
        **sums,
        "lowest_accepted": _extreme(np.minimum, rewards, accepted & ~np.isnan(rewards), owner, len(lengths)),
        "t0": _extreme(np.minimum, starts, ~np.isnan(starts), owner, len(lengths)),
        "t1": _extreme(np.maximum, ends, ~np.isnan(ends), owner, len(lengths)),
        "idle_target": total(_touched(target)) == 0,
    }


def _touched(usage: UsageColumns) -> Values:
    """Where a role worked on a proposal at all."""
    touched: Values = (usage.passes + usage.generated + usage.prompt + usage.verified) > 0
    return touched


def _extreme(reduce: np.ufunc, values: Floats, chosen: Values, owner: Values, records: int) -> pa.Array:
    """[record]: the least or greatest of its chosen values; NaN where there is none."""
    found = np.full(records, np.inf if reduce is np.minimum else -np.inf)
    reduce.at(found, owner[chosen], values[chosen])
    return pa.array(np.where(np.isinf(found), np.nan, found))
