"""The tiny family's reward models: classifiers that begin as a policy and learn from labelled rollouts.

A *process* reward model (`prm_row`) reads one logit at the last token of every step, an *outcome* reward model
(`orm_row`) one at the last token of the conversation; the sigmoid is the chance that the step, the solution, is right.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

import torch
from torch.nn import functional
from transformers import PreTrainedTokenizerBase, Qwen2Config, Qwen2ForCausalLM, Qwen2ForSequenceClassification

from rsd.chat import chat_text
from rsd.tiny.optimise import IGNORE, optimise, padded
from rsd.tiny.policies import BATCH, SEED, encode
from rsd.tiny.rollouts import Rollout

PEAK = 2e-3  # highest learning rate

# The token ids of a rollout and, where the model is read, whether what stands before is right; elsewhere IGNORE.
Row = Callable[[PreTrainedTokenizerBase, Rollout], tuple[list[int], list[int]]]


def prm_row(tokenizer: PreTrainedTokenizerBase, rollout: Rollout) -> tuple[list[int], list[int]]:
    """Prompt and steps as the policy writes them; a label at the last token of each step."""
    ids = encode(tokenizer, chat_text(tokenizer, rollout.question))
    labels = [IGNORE] * len(ids)
    for text, right in zip(rollout.steps, rollout.labels, strict=True):
        piece = encode(tokenizer, text)
        ids += piece
        labels += [IGNORE] * (len(piece) - 1) + [int(right)]
    return ids, labels


def orm_row(tokenizer: PreTrainedTokenizerBase, rollout: Rollout) -> tuple[list[int], list[int]]:
    """The finished conversation in the chat template; one label at its last token."""
    messages = [
        {"role": "user", "content": rollout.question},
        {"role": "assistant", "content": "".join(rollout.steps)},
    ]
    ids = encode(tokenizer, str(tokenizer.apply_chat_template(messages, tokenize=False)))
    return ids, [IGNORE] * (len(ids) - 1) + [int(rollout.solved)]


def untrained(policy: Qwen2ForCausalLM) -> Qwen2ForSequenceClassification:
    """A classifier with the backbone of `policy` and a fresh head of one logit."""
    torch.manual_seed(SEED)
    config = Qwen2Config(**{**policy.config.to_dict(), "architectures": None, "num_labels": 1})
    model = Qwen2ForSequenceClassification(config)
    model.model.load_state_dict(policy.model.state_dict())
    torch.nn.init.normal_(model.score.weight, std=0.02)
    return model


def logits(model: Qwen2ForSequenceClassification, ids: torch.Tensor, read: torch.Tensor) -> torch.Tensor:
    """The logits [tokens read] of right-padded `ids` [rows, tokens] where `read` [rows, tokens] is true."""
    values: torch.Tensor = model.score(model.model(ids).last_hidden_state[read]).squeeze(-1)
    return values


def train_reward(
    policy: Qwen2ForCausalLM,
    rollouts: Sequence[Rollout],
    row: Row,
    tokenizer: PreTrainedTokenizerBase,
    *,
    steps: int,
    checkpoint: Path,
    label: str,
) -> tuple[Qwen2ForSequenceClassification, float]:
    """Train a classifier, begun as `policy`, on the labels that `row` places; binary cross-entropy.

    Returns the model and the seconds that its training took.
    """
    model = untrained(policy)

    def losses(step: int) -> Iterator[torch.Tensor]:
        rows = [row(tokenizer, rollout) for rollout in Random(f"{SEED}/reward/{step}").sample(rollouts, BATCH)]
        count = sum(label != IGNORE for _, labels in rows for label in labels)
        for ids, labels in padded(rows, int(tokenizer.pad_token_id)):
            read = labels != IGNORE
            target = labels[read].float()
            yield functional.binary_cross_entropy_with_logits(logits(model, ids, read), target, reduction="sum") / count

    seconds = optimise(model, losses, steps=steps, peak=PEAK, checkpoint=checkpoint, label=label)
    return model, seconds
