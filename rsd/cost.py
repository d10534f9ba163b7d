"""What decoding costs: usage in tokens to FLOPs, under three named accountings.

Pure functions of records and model shapes; nothing here is measured while decoding::

    flops(Usage(generated=5, prompt=20, passes=5), shape, "full")
    flops_by_role(record.proposals, {"draft": small, "target": large})["passes"]["draft"]

A token costs 2 FLOPs per parameter (one multiplication, one addition) in its forward pass
(Kaplan et al., 2020, arXiv:2001.08361, section 2.1). The accountings differ in which tokens count:

* ``passes``: every sequential forward pass is one token, however many positions it covers;
* ``positions``: every position written or judged, discarded ones included, prompts excluded;
* ``full``: every position really run, uncached prompts included, plus attention.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from rsd.records import Proposal, Role, Usage

Accounting = Literal["passes", "positions", "full"]
ACCOUNTINGS: tuple[Accounting, ...] = get_args(Accounting)
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What cost accounting needs to know of a model: parameter counts and attention's sizes.

    `matmul_parameters` leaves out embeddings that are only looked up (a tied output matrix counts).
    """

    parameters: int
    matmul_parameters: int
    layers: int
    heads: int
    head_dim: int


@dataclass(frozen=True, slots=True)
class UsageColumns:
    """Many usages of one model, field by field as `Usage`; `cached` is NaN where the engine did not tell."""

    generated: Floats
    prompt: Floats
    cached: Floats
    drafted: Floats
    verified: Floats
    accepted: Floats
    passes: Floats


def flops(usage: Usage, shape: Shape, accounting: Accounting) -> int | None:
    """FLOPs of one model's `usage` for one proposal; None where `full` was not measured.

    ``passes`` is 2·parameters·passes, ``positions`` is 2·parameters·(generated + verified), and
    ``full`` is 2·matmul_parameters per position run plus 4·layers·heads·head_dim·context, where
    the context of position p (counted from 0) is p + 1: queries with keys, then weights with values.
    ``full`` needs `cached` and takes the usage to be one call's. For a usage summed over several
    calls of growing prompts it is an upper bound; so are the drafted tokens that were verified in vain, each taken
    to have the context of the last.
    """
    if accounting == "full" and usage.cached is None:
        return None
    return int(_formula(usage, shape, accounting))


def flops_of_many(usages: UsageColumns, shape: Shape, accounting: Accounting) -> Floats:
    """`flops` of each of many usages; NaN where it was not measured."""
    values: Floats = _formula(usages, shape, accounting)
    return values


def _formula(usage: Any, shape: Shape, accounting: Accounting) -> Any:
    """The definition, over numbers or arrays of them."""
    match accounting:
        case "passes":
            return 2 * shape.parameters * usage.passes
        case "positions":
            return 2 * shape.parameters * (usage.generated + usage.verified)
        case "full":
            # The last token written is an output only: this call never reads it back as an input.
            end = usage.prompt + usage.generated - (usage.generated > 0)
            in_vain = usage.verified * (usage.drafted > 0)
            contexts = _triangle(end) - _triangle(usage.cached) + in_vain * end
            attention = 4 * shape.layers * shape.heads * shape.head_dim * contexts
            return 2 * shape.matmul_parameters * (end - usage.cached + in_vain) + attention


def flops_by_role(
    proposals: Iterable[Proposal], shapes: Mapping[Role, Shape]
) -> dict[Accounting, dict[Role, int | None]]:
    """FLOPs of all `proposals`, summed for each role that worked on them.

    None stands where a sum is not measured: a call's cache is unknown, or the role's shape is.
    """
    totals: dict[Accounting, dict[Role, int | None]] = {accounting: {} for accounting in ACCOUNTINGS}
    for proposal in proposals:
        for role, usage in proposal.usage.items():
            for accounting, roles in totals.items():
                cost = flops(usage, shapes[role], accounting) if role in shapes else None
                roles[role] = add(roles.get(role, 0), cost)
    return totals


def add(*costs: int | None) -> int | None:
    """Sum of `costs`, not measured (None) as soon as one of them is not."""
    total = 0
    for cost in costs:
        if cost is None:
            return None
        total += cost
    return total


def ratio(cost: float | None, baseline: float | None) -> float | None:
    """`cost` over `baseline`; None where one of the two was not measured or the baseline is nothing."""
    return None if cost is None or not baseline else cost / baseline


def _triangle(n: Any) -> Any:
    return n * (n + 1) // 2
