"""Solutions sampled from a policy, every step labelled: what reward models learn from and are measured on::

rollouts = sample_rollouts(policy, tokenizer, problems, temperature=1.0, seed=0)
rollouts[0].steps, rollouts[0].labels, rollouts[0].solved
"""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from rich.progress import track
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from rsd.chat import chat_text
from rsd.tiny.problems import WordProblem

STEP = re.compile(r".*?\n\n|.+\Z", re.DOTALL)
BATCH = 256


@dataclass(frozen=True, slots=True)
class Rollout:
    """One sampled solution of `question`, split into steps, each with its exact label, and whether it is
    a whole right solution."""

    question: str
    steps: tuple[str, ...]
    labels: tuple[bool, ...]
    solved: bool


@torch.inference_mode()
def sample_rollouts(
    policy: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    problems: Sequence[WordProblem],
    *,
    temperature: float,
    seed: int,
    label: str = "rollouts",
    max_new_tokens: int = 160,
) -> list[Rollout]:
    """Sample one solution per problem at `temperature` (0: greedy), cut at `max_new_tokens`."""
    torch.manual_seed(seed)
    policy.eval()
    sampling = {"do_sample": True, "temperature": temperature, "top_k": 0} if temperature else {"do_sample": False}
    rollouts = []
    for start in track(range(0, len(problems), BATCH), description=label):
        chunk = problems[start : start + BATCH]
        texts = [chat_text(tokenizer, p.question) for p in chunk]
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
            labels = tuple(problem.correct(steps))
            rollouts.append(Rollout(problem.question, steps, labels, problem.solved_by(steps)))
    return rollouts


def store(rollouts: Sequence[Rollout], path: Path) -> None:
    """Write `rollouts` to `path`, all or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".new").write_text("".join(json.dumps(asdict(r)) + "\n" for r in rollouts), encoding="utf-8")
    path.with_suffix(".new").replace(path)


def stored(path: Path) -> list[Rollout]:
    """The rollouts that `store` wrote to `path`."""
    rows = map(json.loads, path.open(encoding="utf-8"))
    return [Rollout(r["question"], tuple(r["steps"]), tuple(r["labels"]), r["solved"]) for r in rows]
