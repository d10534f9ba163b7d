"""Solutions sampled from a policy, with every step labelled: what a process reward model learns from::

rollouts = sample_rollouts(policy, tokenizer, problems, temperature=1.0, seed=0)
rollouts[0].steps, rollouts[0].labels
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from rsd.tiny.problems import ChainProblem

STEP = re.compile(r".*?\n\n|.+\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Rollout:
    """One sampled solution of `question`, split into steps, each with its exact label."""

    question: str
    steps: tuple[str, ...]
    labels: tuple[bool, ...]


def chat_prompt(tokenizer: PreTrainedTokenizerBase, question: str) -> str:
    """The text every model of the family reads before a solution."""
    messages = [{"role": "user", "content": question}]
    return str(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))


@torch.inference_mode()
def sample_rollouts(
    policy: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    problems: Sequence[ChainProblem],
    *,
    temperature: float,
    seed: int,
    batch: int = 256,
    max_new_tokens: int = 160,
) -> list[Rollout]:
    """Sample one solution per problem at `temperature` (0: greedy), cut at `max_new_tokens`."""
    torch.manual_seed(seed)
    policy.eval()
    sampling = {"do_sample": True, "temperature": temperature, "top_k": 0} if temperature else {"do_sample": False}
    rollouts = []
    for start in range(0, len(problems), batch):
        chunk = problems[start : start + batch]
        texts = [chat_prompt(tokenizer, p.question) for p in chunk]
        inputs = tokenizer(texts, return_tensors="pt", padding=True, padding_side="left", add_special_tokens=False)
        output = policy.generate(  # type: ignore[operator]
            input_ids=inputs.input_ids,
            attention_mask=inputs.attention_mask,
            max_new_tokens=max_new_tokens,
            **sampling,
        )
        replies = tokenizer.batch_decode(output[:, inputs.input_ids.shape[1] :], skip_special_tokens=True)
        for problem, reply in zip(chunk, replies, strict=True):
            steps = tuple(STEP.findall(reply))
            rollouts.append(Rollout(problem.question, steps, tuple(problem.correct(steps))))
    return rollouts
