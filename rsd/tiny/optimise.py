"""The training loop of the tiny family: Muon, a cosine schedule, checkpoints to go on from.

    seconds = optimise(model, losses, steps=1200, peak=5e-3, checkpoint=Path("m.pt"), label="policy m")

`losses(step)` yields the loss of each micro-batch of an optimiser step. It is a pure function of the step, so that an
interrupted training ends with the weights of an uninterrupted one.
"""

import hashlib
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from transformers import PreTrainedModel

SAVE_EVERY = 50  # optimiser steps between checkpoints
MICRO_BATCHES = 4  # of similar length each, so that little padding is computed
IGNORE = -100
COLUMNS = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())

Losses = Callable[[int], Iterator[torch.Tensor]]


def optimise(model: PreTrainedModel, losses: Losses, *, steps: int, peak: float, checkpoint: Path, label: str) -> float:
    """Train `model` in place for `steps` optimiser steps; return the seconds that took, over all sittings.

    Matrices of the layers learn by Muon (Jordan et al., 2024; half the loss of AdamW after 200 steps of policy M),
    embeddings, norms, biases and heads by AdamW, both at rates that rise to `peak` and fall as a cosine.
    """
    layers = {name for name, weight in model.named_parameters() if weight.ndim == 2 and ".layers." in name}
    hidden = [weight for name, weight in model.named_parameters() if name in layers]
    others = [weight for name, weight in model.named_parameters() if name not in layers]
    optimisers: list[torch.optim.Optimizer] = [
        torch.optim.Muon(hidden, lr=peak, weight_decay=0.01, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, lr=peak, betas=(0.9, 0.98), weight_decay=0.01),
    ]
    first, seconds, start = 0, 0.0, digest(model, steps, peak)
    if checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=True)
        if saved.get("start") == start:  # else it belongs to another training
            model.load_state_dict(saved["model"])
            for optimiser, state in zip(optimisers, saved["optimisers"], strict=True):
                optimiser.load_state_dict(state)
            first, seconds = saved["step"], saved["seconds"]
    with Progress(*COLUMNS, TimeRemainingColumn()) as progress:
        task = progress.add_task(label, total=steps, completed=first)
        model.train()
        for step in range(first, steps):
            began = time.monotonic()
            for group in (group for optimiser in optimisers for group in optimiser.param_groups):
                group["lr"] = peak * _rate(step, steps)
            total = 0.0
            for loss in losses(step):
                loss.backward()
                total += loss.item()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            for optimiser in optimisers:
                optimiser.step()
            model.zero_grad()
            seconds += time.monotonic() - began
            progress.update(task, advance=1, description=f"{label}  loss {total:.3f}")
            if (step + 1) % SAVE_EVERY == 0 or step + 1 == steps:
                states = [optimiser.state_dict() for optimiser in optimisers]
                saved = {"model": model.state_dict(), "optimisers": states, "step": step + 1}
                checkpoint.parent.mkdir(parents=True, exist_ok=True)
                torch.save({**saved, "seconds": seconds, "start": start}, checkpoint.with_suffix(".new"))
                checkpoint.with_suffix(".new").replace(checkpoint)
    model.eval()
    return seconds


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


def _rate(step: int, steps: int) -> float:
    """Share of the peak rate: a linear rise over a twentieth of the steps, then a cosine down to 2%."""
    rise = max(1, steps // 20)
    decay = 0.5 * (1 + math.cos(math.pi * max(0, step - rise) / max(1, steps - rise)))
    return min((step + 1) / rise, 0.02 + 0.98 * decay)


def digest(model: PreTrainedModel, *settings: float) -> str:
    """A name for `settings` and every weight of `model`: what a training, or a sampling, starts from."""
    found = hashlib.blake2b(repr(settings).encode(), digest_size=8)
    for name, tensor in model.state_dict().items():
        found.update(name.encode() + tensor.numpy().tobytes())
    return found.hexdigest()
