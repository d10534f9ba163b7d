"""Train the tiny family from nothing: tokenizer, policies S and M, process reward model M.

``python -m rsd.tiny.train`` rebuilds ``rsd/tiny/weights/``; ``--only s`` trains one model and
``--smoke`` makes a rough family within a minute. An interrupted training goes on from its
checkpoint in ``--scratch`` and sees the batches that an uninterrupted one would have seen.
"""

import argparse
import hashlib
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import torch
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from torch.nn import functional
from transformers import (
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen2ForSequenceClassification,
)

from rsd.tiny.problems import LEVELS, ChainProblem, chain
from rsd.tiny.rollouts import Rollout, chat_prompt, sample_rollouts
from rsd.tiny.tokenizer import build_tokenizer

HOME = Path(__file__).parent
SEED = 20250131
BATCH = 64
MICRO_BATCHES = 4  # of similar length each, so that little padding is computed
IGNORE = -100
SAVE_EVERY = 50  # optimiser steps between checkpoints
SHAPES: dict[str, dict[str, Any]] = {
    "s": {"hidden_size": 64, "intermediate_size": 192, "num_hidden_layers": 2, "num_attention_heads": 2},
    "m": {"hidden_size": 128, "intermediate_size": 384, "num_hidden_layers": 4, "num_attention_heads": 4},
}
POLICY_STEPS = {"s": 5000, "m": 2200}
POLICY_PEAK = {"s": 4e-3, "m": 2e-3}  # peak learning rate
PRM_STEPS = 800
ROLLOUTS = 6_000  # sampled solutions of each policy that the reward model learns from

Losses = Callable[[int], Iterator[torch.Tensor]]  # optimiser step -> loss of each micro-batch


def held_out() -> set[str]:
    """The questions of the tiny benchmarks, which no training batch may hold."""
    return {json.loads(line)["question"] for path in (HOME / "data").glob("*.jsonl") for line in path.open()}


def problems(key: str, count: int, excluded: set[str]) -> list[ChainProblem]:
    """`count` problems of mixed levels, a pure function of `key`, none of them in `excluded`."""
    rng = Random(f"{SEED}/{key}")
    drawn: list[ChainProblem] = []
    while len(drawn) < count:
        problem = chain(rng, rng.choice(LEVELS))
        if problem.question not in excluded:
            drawn.append(problem)
    return drawn


def optimise(model: PreTrainedModel, losses: Losses, *, steps: int, peak: float, checkpoint: Path, label: str) -> None:
    """Run AdamW with linear warm-up and cosine decay, saving `checkpoint` every `SAVE_EVERY` steps."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=peak, betas=(0.9, 0.98), weight_decay=0.01)
    warmup = max(1, steps // 20)

    def rate(step: int) -> float:
        decay = 0.5 * (1 + math.cos(math.pi * max(0, step - warmup) / max(1, steps - warmup)))
        return min((step + 1) / warmup, 0.02 + 0.98 * decay)

    first, start = 0, _digest(model, steps, peak)
    if checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=True)
        if saved["start"] == start:  # else it belongs to another training
            model.load_state_dict(saved["model"])
            optimiser.load_state_dict(saved["optimiser"])
            first = saved["step"]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn()) as progress:
        task = progress.add_task(label, total=steps, completed=first)
        model.train()
        for step in range(first, steps):
            for group in optimiser.param_groups:
                group["lr"] = peak * rate(step)
            total = 0.0
            for loss in losses(step):
                loss.backward()
                total += loss.item()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            optimiser.zero_grad()
            progress.update(task, advance=1, description=f"{label}  loss {total:.3f}")
            if (step + 1) % SAVE_EVERY == 0 or step + 1 == steps:
                checkpoint.parent.mkdir(parents=True, exist_ok=True)
                state = {"model": model.state_dict(), "optimiser": optimiser.state_dict(), "step": step + 1}
                state["start"] = start
                torch.save(state, checkpoint.with_suffix(".new"))
                checkpoint.with_suffix(".new").replace(checkpoint)
    model.eval()


def _digest(model: PreTrainedModel, steps: int, peak: float) -> str:
    """What a training starts from: its length, its rate and every weight."""
    digest = hashlib.blake2b(repr((steps, peak)).encode(), digest_size=8)
    for name, tensor in model.state_dict().items():
        digest.update(name.encode() + tensor.numpy().tobytes())
    return digest.hexdigest()


def padded(rows: list[tuple[list[int], list[int]]], pad: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Sort (ids, labels) rows by length and yield right-padded micro-batches [rows, tokens]."""
    rows = sorted(rows, key=lambda row: len(row[0]))
    size = math.ceil(len(rows) / MICRO_BATCHES)
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        width = max(len(ids) for ids, _ in part)
        yield (
            torch.tensor([ids + [pad] * (width - len(ids)) for ids, _ in part]),
            torch.tensor([labels + [IGNORE] * (width - len(labels)) for _, labels in part]),
        )


def encode(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    """Token ids of `text`, nothing added."""
    return list(tokenizer(text, add_special_tokens=False).input_ids)


def train_policy(size: str, tokenizer: PreTrainedTokenizerBase, *, steps: int, checkpoint: Path) -> Qwen2ForCausalLM:
    """Train policy `size` on reference solutions; the loss is read on the solution's tokens only."""
    torch.manual_seed(SEED)
    config = Qwen2Config(
        **SHAPES[size],
        num_key_value_heads=SHAPES[size]["num_attention_heads"],
        vocab_size=len(tokenizer),
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        dtype="float32",
    )
    model = Qwen2ForCausalLM(config)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    excluded = held_out()

    def losses(step: int) -> Iterator[torch.Tensor]:
        rows = []
        for problem in problems(f"policy/{step}", BATCH, excluded):
            prompt = encode(tokenizer, chat_prompt(tokenizer, problem.question))
            solution = [*encode(tokenizer, "".join(problem.steps)), int(tokenizer.eos_token_id)]
            rows.append((prompt + solution, [IGNORE] * len(prompt) + solution))
        count = sum(label != IGNORE for _, labels in rows for label in labels)
        for ids, labels in padded(rows, int(tokenizer.pad_token_id)):
            logits = model(ids).logits[:, :-1]
            yield functional.cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten(), reduction="sum") / count

    optimise(model, losses, steps=steps, peak=POLICY_PEAK[size], checkpoint=checkpoint, label=f"policy {size}")
    return model


def train_prm(
    policy: Qwen2ForCausalLM,
    rollouts: list[Rollout],
    tokenizer: PreTrainedTokenizerBase,
    *,
    steps: int,
    checkpoint: Path,
    label: str,
) -> Qwen2ForSequenceClassification:
    """Train a classifier, begun from `policy`'s backbone, to tell right steps from wrong ones.

    One logit is read at the last token of every step; its sigmoid is the step's reward.
    """
    torch.manual_seed(SEED)
    config = Qwen2Config(**{**policy.config.to_dict(), "architectures": None, "num_labels": 1})
    model = Qwen2ForSequenceClassification(config)
    model.model.load_state_dict(policy.model.state_dict())
    torch.nn.init.normal_(model.score.weight, std=0.02)

    def losses(step: int) -> Iterator[torch.Tensor]:
        rows = []
        for rollout in Random(f"{SEED}/prm/{step}").sample(rollouts, BATCH):
            ids = encode(tokenizer, chat_prompt(tokenizer, rollout.question))
            labels = [IGNORE] * len(ids)
            for text, right in zip(rollout.steps, rollout.labels, strict=True):
                piece = encode(tokenizer, text)
                ids += piece
                labels += [IGNORE] * (len(piece) - 1) + [int(right)]
            rows.append((ids, labels))
        count = sum(label != IGNORE for _, labels in rows for label in labels)
        for ids_, labels_ in padded(rows, int(tokenizer.pad_token_id)):
            scored = labels_ != IGNORE
            logits = model.score(model.model(ids_).last_hidden_state[scored]).squeeze(-1)
            target = labels_[scored].float()
            yield functional.binary_cross_entropy_with_logits(logits, target, reduction="sum") / count

    optimise(model, losses, steps=steps, peak=5e-4, checkpoint=checkpoint, label=label)
    return model


def save(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Write weights, config, tokenizer and chat template where `from_pretrained` finds them."""
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def main() -> None:
    """Build what `--only` names (default: everything), in the order in which it depends on itself."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=["s", "m", "prm_m"], default=["s", "m", "prm_m"])
    parser.add_argument("--out", type=Path, help="folder of the finished models; default: where they are shipped")
    parser.add_argument("--scratch", type=Path, default=Path("results/tiny"), help="folder of the checkpoints")
    parser.add_argument("--smoke", action="store_true", help="a hundredth of the training")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    args = parser.parse_args()
    args.out = args.out or (args.scratch / "smoke" if args.smoke else HOME / "weights")
    torch.set_num_threads(args.threads)
    share = 100 if args.smoke else 1
    fresh = {"s", "m"} & set(args.only)
    tokenizer = build_tokenizer(SEED) if fresh else AutoTokenizer.from_pretrained(args.out / "m")
    for size in ("s", "m"):
        if size in args.only:
            policy = train_policy(
                size, tokenizer, steps=POLICY_STEPS[size] // share, checkpoint=args.scratch / f"{size}.pt"
            )
            save(policy, tokenizer, args.out / size)
    if "prm_m" in args.only:
        rollouts: list[Rollout] = []
        excluded = held_out()
        for number, size in enumerate(("s", "m")):
            sampler = Qwen2ForCausalLM.from_pretrained(args.out / size)
            asked = problems(f"rollouts/{size}", ROLLOUTS // share, excluded)
            rollouts += sample_rollouts(sampler, tokenizer, asked, temperature=1.0, seed=SEED + number)
        policy = Qwen2ForCausalLM.from_pretrained(args.out / "m")
        prm = train_prm(
            policy,
            rollouts,
            tokenizer,
            steps=PRM_STEPS // share,
            checkpoint=args.scratch / "prm_m.pt",
            label="prm m",
        )
        save(prm, tokenizer, args.out / "prm_m")


if __name__ == "__main__":
    main()
