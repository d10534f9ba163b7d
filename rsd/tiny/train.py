"""Train the tiny family from nothing: tokenizer, policies S, M and L, process and outcome reward models.

``python -m rsd.tiny.train`` rebuilds ``rsd/tiny/weights/``; ``--only s`` trains one model and
``--smoke`` makes a rough family within a minute or two. An interrupted training goes on from its
checkpoint in ``--scratch`` and sees the batches that an uninterrupted one would have seen.
"""

import argparse
import json
from pathlib import Path

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase, Qwen2ForCausalLM

from rsd.tiny.optimise import digest
from rsd.tiny.policies import CYCLES, HOME, SEED, held_out, problems, train_policy
from rsd.tiny.rewards import Row, orm_row, prm_row, train_reward
from rsd.tiny.rollouts import Rollout, sample_rollouts, store, stored
from rsd.tiny.tokenizer import build_tokenizer

ROLLOUTS = {"s": 8_000, "m": 8_000}  # sampled solutions that reward models learn from, of the policies that draft
REWARDS: dict[str, tuple[str, Row, int]] = {  # model -> policy that it begins as, where it is read, steps
    "prm_s": ("s", prm_row, 1_000),
    "prm_m": ("m", prm_row, 800),
    "orm_m": ("m", orm_row, 400),
}
NAMES = (*CYCLES, *REWARDS)


def save(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: Path, *, steps: int, seconds: float
) -> None:
    """Write weights, config, tokenizer and chat template where `from_pretrained` finds them, and beside
    them what the training took."""
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    path = folder.parent / "training.json"
    notes = json.loads(path.read_text()) if path.exists() else {}
    notes[folder.name] = {"steps": steps, "seconds": round(seconds)}
    path.write_text(json.dumps({name: notes[name] for name in NAMES if name in notes}, indent=2) + "\n")


def rollouts_of(
    size: str, folder: Path, scratch: Path, count: int, tokenizer: PreTrainedTokenizerBase
) -> list[Rollout]:
    """`count` solutions of policy `size` at temperature 1; those that `scratch` holds are not sampled again."""
    policy = Qwen2ForCausalLM.from_pretrained(folder / size)
    path = scratch / f"rollouts_{size}_{digest(policy, count)}.jsonl"
    if not path.exists():
        asked = problems(f"rollouts/{size}", count, held_out())
        seed = SEED + list(CYCLES).index(size)
        drawn = sample_rollouts(policy, tokenizer, asked, temperature=1.0, seed=seed, label=f"rollouts {size}")
        store(drawn, path)
    return stored(path)


def main() -> None:
    """Build what `--only` names (default: everything), in the order in which it depends on itself."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--out", type=Path, help="folder of the finished models; default: where they are shipped")
    parser.add_argument("--scratch", type=Path, default=Path("results/tiny"), help="folder of the checkpoints")
    parser.add_argument("--smoke", action="store_true", help="a hundredth of the training")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    args = parser.parse_args()
    args.out = args.out or (args.scratch / "smoke" if args.smoke else HOME / "weights")
    torch.set_num_threads(args.threads)
    share = 100 if args.smoke else 1
    tokenizer = build_tokenizer(SEED)
    for size in CYCLES:
        if size in args.only:
            cycles = [(steps // share, peak) for steps, peak in CYCLES[size]]
            policy, seconds = train_policy(size, tokenizer, cycles=cycles, scratch=args.scratch)
            save(policy, tokenizer, args.out / size, steps=sum(steps for steps, _ in cycles), seconds=seconds)
    rewards = [name for name in REWARDS if name in args.only]
    if rewards:
        drawn = [rollouts_of(size, args.out, args.scratch, n // share, tokenizer) for size, n in ROLLOUTS.items()]
        rollouts = [rollout for of_policy in drawn for rollout in of_policy]
    for name in rewards:
        size, row, steps = REWARDS[name]
        policy = Qwen2ForCausalLM.from_pretrained(args.out / size)
        model, seconds = train_reward(
            policy,
            rollouts,
            row,
            tokenizer,
            steps=steps // share,
            checkpoint=args.scratch / f"{name}.pt",
            label=name,
        )
        save(model, tokenizer, args.out / name, steps=steps // share, seconds=seconds)


if __name__ == "__main__":
    main()
