"""FLOPs from usage: values by hand, the sum over positions written out, and what must not matter."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsd.cost import ACCOUNTINGS, Accounting, Shape, add, flops, flops_by_role, ratio
from rsd.records import PolicyRole, Proposal, Role, Usage

SMALL = Shape(parameters=1000, matmul_parameters=800, layers=2, heads=3, head_dim=5)
LARGE = Shape(parameters=7000, matmul_parameters=6000, layers=4, heads=2, head_dim=8)

shapes = st.builds(
    Shape,
    parameters=st.integers(1, 10**10),
    matmul_parameters=st.integers(1, 10**10),
    layers=st.integers(1, 80),
    heads=st.integers(1, 64),
    head_dim=st.integers(1, 128),
)


@st.composite
def policy_calls(draw: st.DrawFn) -> Usage:
    prompt = draw(st.integers(1, 200))
    generated = draw(st.integers(1, 60))
    return Usage(generated=generated, passes=generated, prompt=prompt, cached=draw(st.integers(0, prompt - 1)))


def proposal(usage: dict[Role, Usage], origin: PolicyRole = "draft") -> Proposal:
    return Proposal(step=0, origin=origin, kept=True, token_ids=(), text="", finish="step", usage=usage, t0=0, t1=0)


def measured(usage: Usage, shape: Shape, accounting: Accounting) -> int:
    cost = flops(usage, shape, accounting)
    assert cost is not None
    return cost


def test_policy_call_by_hand() -> None:
    usage = Usage(generated=3, passes=3, prompt=10, cached=8)
    assert flops(usage, SMALL, "passes") == 2 * 1000 * 3
    assert flops(usage, SMALL, "positions") == 2 * 1000 * 3
    # Prompt tokens 8 and 9 are not cached; the first two tokens written, 10 and 11, are read back and
    # the third is not: 4 positions, of contexts 9 + 10 + 11 + 12 = 42. Attention: 4·2·3·5 = 120 each.
    assert flops(usage, SMALL, "full") == 2 * 800 * 4 + 120 * 42 == 11_440


def test_prm_call_by_hand() -> None:
    # A step of 6 tokens, of which the PRM found nothing in its cache, after 20 that it had read.
    usage = Usage(prompt=26, cached=20, verified=6, passes=1)
    assert flops(usage, SMALL, "passes") == 2 * 1000 * 1
    assert flops(usage, SMALL, "positions") == 2 * 1000 * 6
    # Contexts 21 + 22 + 23 + 24 + 25 + 26 = 141; every position of the input is run, the last too.
    assert flops(usage, SMALL, "full") == 2 * 800 * 6 + 120 * 141 == 26_520


def test_the_paper_s_reading_of_a_prm_call() -> None:
    """In `passes` a PRM call costs one token of its model whatever the step's length."""
    short, long = (Usage(prompt=n, verified=n, passes=1) for n in (5, 500))
    assert flops(short, LARGE, "passes") == flops(long, LARGE, "passes") == 2 * 7000


def test_cache_unknown_leaves_only_full_unmeasured() -> None:
    usage = Usage(generated=3, passes=3, prompt=10, cached=None)
    assert [flops(usage, SMALL, accounting) for accounting in ACCOUNTINGS] == [6000, 6000, None]


@given(policy_calls(), shapes)
def test_full_is_the_sum_over_positions(usage: Usage, shape: Shape) -> None:
    assert usage.cached is not None
    total = 0
    for position in range(usage.cached, usage.prompt + usage.generated - 1):
        total += 2 * shape.matmul_parameters
        total += 4 * shape.layers * shape.heads * shape.head_dim * (position + 1)
    assert flops(usage, shape, "full") == total


@given(policy_calls(), shapes, st.data())
def test_cutting_a_call_in_two_costs_nothing_with_a_perfect_cache(
    usage: Usage, shape: Shape, data: st.DataObject
) -> None:
    """A cache holds all that was run: of the first part, everything but its last token."""
    first = data.draw(st.integers(1, usage.generated))
    rest = usage.generated - first
    parts = [Usage(generated=first, passes=first, prompt=usage.prompt, cached=usage.cached)]
    if rest:
        prompt = usage.prompt + first
        parts.append(Usage(generated=rest, passes=rest, prompt=prompt, cached=prompt - 1))
    for accounting in ACCOUNTINGS:
        assert add(*(flops(part, shape, accounting) for part in parts)) == flops(usage, shape, accounting)


@given(st.lists(policy_calls(), max_size=6), st.lists(policy_calls(), max_size=6))
def test_cost_adds_up_over_proposals(first: list[Usage], second: list[Usage]) -> None:
    roles: dict[Role, Shape] = {"draft": SMALL}
    a, b = ([proposal({"draft": usage}) for usage in usages] for usages in (first, second))
    whole, part, rest = (flops_by_role(proposals, roles) for proposals in (a + b, a, b))
    for accounting in ACCOUNTINGS:
        total = add(part[accounting].get("draft", 0), rest[accounting].get("draft", 0))
        assert whole[accounting].get("draft", 0) == total


@given(policy_calls(), policy_calls(), st.integers(1, 50))
def test_ratios_do_not_depend_on_the_unit_of_size(a: Usage, b: Usage, factor: int) -> None:
    """All parameters times `factor`: ratios of `passes` and `positions` stay, exactly."""
    grown = Shape(parameters=1000 * factor, matmul_parameters=800, layers=2, heads=3, head_dim=5)
    accountings: tuple[Accounting, ...] = ("passes", "positions")
    for accounting in accountings:
        before = Fraction(measured(a, SMALL, accounting), measured(b, SMALL, accounting))
        assert Fraction(measured(a, grown, accounting), measured(b, grown, accounting)) == before


@given(policy_calls(), shapes)
def test_a_longer_cached_prefix_never_costs_more(usage: Usage, shape: Shape) -> None:
    assert measured(usage, shape, "full") <= measured(replace(usage, cached=0), shape, "full")


def test_roles_are_kept_apart() -> None:
    drafted = proposal({"draft": Usage(generated=3, passes=3, cached=None), "prm": Usage(verified=3, passes=1)})
    replaced = proposal({"target": Usage(generated=2, passes=2, prompt=4, cached=3)}, origin="target")
    costs = flops_by_role([drafted, replaced, drafted], {"draft": SMALL, "target": LARGE})
    # draft: 2 · (2·1000·3); target: 2·7000·2; the PRM's shape is unknown, so nothing of it is measured.
    assert costs["passes"] == {"draft": 12_000, "prm": None, "target": 28_000}
    # target: positions 3 and 4, contexts 4 + 5: 2 · (2·6000) + (4·4·2·8)·9; draft: its cache is unknown.
    assert costs["full"] == {"draft": None, "prm": None, "target": 24_000 + 256 * 9}
    assert add(*costs["passes"].values()) is None


def test_ratio() -> None:
    assert ratio(30, 60) == 0.5
    assert ratio(None, 60) is ratio(30, None) is ratio(30, 0) is None


@pytest.mark.parametrize("accounting", ACCOUNTINGS)
def test_no_work_is_free(accounting: Accounting) -> None:
    assert flops(Usage(), LARGE, accounting) == 0
