"""Over a question each model reads each token about once; a trajectory is its own question's alone."""

import asyncio
from collections.abc import Sequence

import pytest

from rsd.engines.base import Totals
from rsd.methods.trajectory import Trajectory
from rsd.models import load_models
from rsd.plan import make_plan
from rsd.records import Problem, Role, Solution
from tests.conftest import compose_config
from tests.tokens import least_tokens


def decode(
    overrides: Sequence[str], problems: Sequence[Problem] | None = None
) -> tuple[list[Solution], dict[Role, Totals]]:
    """Solve all problems at once, and tell what each model really ran."""
    plan = make_plan(compose_config(*overrides))
    chosen = plan.problems if problems is None else problems

    async def main() -> tuple[list[Solution], dict[Role, Totals]]:
        models = load_models(plan)

        async def solve(problem: Problem) -> Solution:
            trajectory = Trajectory(problem, 0, models=models, decoding=plan.decoding, clock=lambda: 0.0)
            await plan.method.solve(trajectory)
            return trajectory.solution()

        try:
            return list(await asyncio.gather(*map(solve, chosen))), dict(plan.engine.totals())
        finally:
            await plan.engine.close()

    return asyncio.run(main())


def test_each_model_runs_each_token_about_once() -> None:
    # delta = 0.9 rejects often, so that rejected steps and steps of the other model are among them
    solutions, totals = decode(["limit=20", "delta=0.9"])
    assert any(p.origin == "target" for s in solutions for p in s.proposals)
    for role in ("draft", "target", "prm"):
        least = sum(least_tokens(s, role) for s in solutions)
        assert least <= totals[role].tokens <= 1.10 * least, f"{role}: {totals[role].tokens} run, {least} needed"


def outcome(solution: Solution) -> list[tuple[object, ...]]:
    """Tokens and decisions, exactly; rewards and log-probabilities but for rounding."""

    def near(value: float | None) -> object:
        return value if value is None else pytest.approx(value, abs=1e-4)

    return [
        (p.origin, p.step, p.token_ids, p.text, p.finish, p.accepted, p.kept, near(p.reward), near(p.logprob_draft))
        for p in solution.proposals
    ]


def test_a_trajectory_does_not_depend_on_its_batch() -> None:
    plan = make_plan(compose_config("limit=100"))
    hundred = decode(["limit=100"])[0]
    for size in (1, 5):
        for start in range(0, 10, size):
            own = decode(["limit=100"], plan.problems[start : start + size])[0]
            assert [s.end_reason for s in own] == [s.end_reason for s in hundred[start : start + size]]
            assert [outcome(s) for s in own] == [outcome(s) for s in hundred[start : start + size]]
