"""The mixture once more, with the tiny family in the embedded engine: real prompts, caches, draws and rewards.

The question is one of which draft and target are both unsure, the step its first few tokens (``Rob has 88``). How
likely each step is comes from the plain models, token by token, over every step that is not all but impossible.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping

import pytest
import torch
from transformers import AutoModelForCausalLM

from rsd.methods.rsd import RSD
from rsd.methods.trajectory import Trajectory
from rsd.models import load_models
from rsd.plan import Plan, make_plan
from rsd.weighting import Binary, RewardRatio, Weighting
from tests.categorical import SIGNIFICANCE, fit, mixture
from tests.conftest import compose_config

DRAWS = 2_000
TOKENS = 5  # of a step: the name, "has", a space and two digits
NEGLIGIBLE = 1e-5  # a step less likely than this under both models is left out
LEAST = 10  # draws expected of a step that has a cell of its own in the chi-square test; the others share one

Ids = tuple[int, ...]
Shares = dict[Ids, float]


@pytest.fixture
def plan() -> Plan:
    step = ("sampling.temperature=1", "limits.steps=1", f"limits.step_tokens={TOKENS}")
    return make_plan(compose_config("benchmark=tiny_story", "offset=54", "limit=1", *step))


@torch.no_grad()
def possible_steps(plan: Plan, prompt: Ids) -> tuple[Shares, Shares]:
    """P_m and P_M of the steps of `TOKENS` tokens after `prompt`; next to none would end before these."""
    policies = plan.config.model.policies
    models = [AutoModelForCausalLM.from_pretrained(policies[role].path) for role in ("draft", "target")]
    written: dict[Ids, tuple[float, float]] = {(): (1.0, 1.0)}
    for _ in range(TOKENS):
        rows = torch.tensor([[*prompt, *ids] for ids in written])
        following = torch.stack([model(rows).logits[:, -1].double().softmax(-1) for model in models], dim=-1)
        joint = torch.tensor(list(written.values())).double()[:, None] * following  # [steps, vocabulary, models]
        likely = (joint.amax(-1) > NEGLIGIBLE).nonzero().tolist()
        begun = list(written)
        written = {(*begun[row], token): tuple(joint[row, token].tolist()) for row, token in likely}
    return {ids: share for ids, (share, _) in written.items()}, {ids: share for ids, (_, share) in written.items()}


async def measure(plan: Plan, weighting: Weighting) -> tuple[Counter[Ids], Shares, Shares, Mapping[Ids, float]]:
    """How often each step was kept; P_m, P_M and the reward of every possible step."""
    models = load_models(plan, ["draft", "target", "prm"])
    assert models.draft is not None
    assert models.prm is not None
    problem = plan.problems[0]

    async def kept(sample: int) -> Ids:
        trajectory = Trajectory(problem, sample, models=models, decoding=plan.decoding, clock=lambda: 0.0)
        await RSD(weighting=weighting).solve(trajectory)
        return next(proposal.token_ids for proposal in trajectory.solution().proposals if proposal.kept)

    try:
        counts = Counter(await asyncio.gather(*map(kept, range(DRAWS))))
        draft, target = possible_steps(plan, models.draft.prompt(problem.question))
        texts = [models.draft.tokenizer.decode(list(ids)) for ids in draft]
        rewards = await asyncio.gather(*(models.prm.score(problem.question, [text]) for text in texts))
    finally:
        await plan.engine.close()
    return counts, draft, target, {ids: reward.value for ids, reward in zip(draft, rewards, strict=True)}


def p_value(counts: Counter[Ids], expected: Shares) -> float:
    """Of the chi-square test that `counts` were drawn from `expected`, its rarer steps counted as one."""
    own = [ids for ids, share in expected.items() if share * DRAWS >= LEAST]
    cells = {ids: expected[ids] for ids in own}
    seen = {ids: counts[ids] for ids in own}
    return fit({**seen, (): DRAWS - sum(seen.values())}, {**cells, (): 1 - sum(cells.values())})


@pytest.mark.parametrize(
    ("weighting", "omega"),
    [
        (Binary(delta=0.9), lambda reward, ratio: float(reward >= 0.9)),
        (RewardRatio(beta=1.5, normalised=False), lambda reward, ratio: min(1.0, 1.5 * reward * ratio)),
    ],
    ids=["binary", "reward_ratio"],
)
def test_the_first_step_of_real_models_is_distributed_as_the_mixture(
    plan: Plan, weighting: Weighting, omega: Callable[[float, float], float]
) -> None:
    counts, draft, target, reward = asyncio.run(measure(plan, weighting))
    assert min(sum(draft.values()), sum(target.values())) > 0.998, "the steps left out are not negligible"
    weights = {ids: omega(reward[ids], target[ids] / draft[ids]) for ids in draft}
    assert p_value(counts, mixture(weights, draft, target)) > SIGNIFICANCE
    assert p_value(counts, draft) < SIGNIFICANCE
    assert p_value(counts, target) < SIGNIFICANCE
