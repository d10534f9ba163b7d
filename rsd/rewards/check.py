"""A fixed text through the reward model at the start of a run, and on request through transformers as well.

Scores of one checkpoint must not depend on what serves it: a softmax where a sigmoid belongs, a prefix that is
read twice or a head that was not loaded shows here, before a question is answered.
"""

from collections.abc import Sequence

from rsd.engines.base import ModelSource, RewardModel
from rsd.rewards.base import Adapter, ProcessReward

QUESTION = "Janet has 16 eggs and eats 3. How many eggs are left?"
STEPS = ("Janet starts with 16 eggs.\n\n", "After eating 3 she has 16-3=14 eggs.\n\n", "The answer is \\boxed{14}.")


async def fixed_rewards(prm: RewardModel) -> list[float]:
    """Rewards of the fixed text's steps, each given those before it. Raises RewardError where one is none."""
    return [(await prm.score(QUESTION, STEPS[: n + 1])).value for n in range(len(STEPS))]


async def transformers_rewards(adapter: Adapter, source: ModelSource) -> list[float]:
    """The same rewards, with transformers on the CPU. Raises ModelError."""
    from rsd.engines.transformers import TransformersEngine

    engine = TransformersEngine()
    try:
        return await fixed_rewards(ProcessReward(adapter, engine.load_classifier(source), max_length=source.context))
    finally:
        await engine.close()


def told(found: Sequence[float], expected: Sequence[float]) -> str:
    """A line on how far `found` lies from what transformers gives."""
    largest = max(abs(a - b) for a, b in zip(found, expected, strict=True))
    return (
        f"The PRM gives the fixed text {_list(found)}, with transformers {_list(expected)}; "
        f"the largest difference is {largest:.2g}."
    )


def _list(rewards: Sequence[float]) -> str:
    return ", ".join(f"{reward:.4f}" for reward in rewards)
