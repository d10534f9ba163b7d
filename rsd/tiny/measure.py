"""What the tiny family can do, as the Markdown tables of its README.

``python -m rsd.tiny.measure`` asks the models problems that no training batch and no benchmark holds: how well votes
do, and how well reward models tell right from wrong. ``python -m rsd.tiny.measure results/runs`` tables the accuracy of
the stored runs there by level instead.
"""

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from scipy.stats import mannwhitneyu
from transformers import AutoTokenizer, PreTrainedTokenizerBase, Qwen2ForCausalLM, Qwen2ForSequenceClassification

from rsd.benchmarks.jsonl import JsonLinesBenchmark
from rsd.compare import Run, read_run
from rsd.records import Problem
from rsd.report.runs import samples_of
from rsd.report.statistics import wilson
from rsd.tiny.benchmark import BENCHMARKS, FOLDER
from rsd.tiny.optimise import IGNORE, padded
from rsd.tiny.policies import CYCLES, HOME, SEED, held_out, problems
from rsd.tiny.rewards import logits
from rsd.tiny.rollouts import Rollout, sample_rollouts
from rsd.tiny.train import REWARDS

WEIGHTS = HOME / "weights"
TEMPERATURE = 0.7
VOTED, VOTES = 100, 16  # problems put to the vote, and solutions of each
SCORED = 500  # problems whose steps reward models score
DELTA = 0.7
Scored = tuple[np.ndarray, np.ndarray]  # probabilities and 0/1 labels, one per step or solution


def policies(tokenizer: PreTrainedTokenizerBase) -> Iterator[tuple[str, Qwen2ForCausalLM]]:
    """Every policy with its name."""
    for size in CYCLES:
        yield size, Qwen2ForCausalLM.from_pretrained(WEIGHTS / size)


def voting(policy: Qwen2ForCausalLM, tokenizer: PreTrainedTokenizerBase) -> tuple[float, float]:
    """Share of right answers at temperature 0.7: of one sample, and of the majority of `VOTES`."""
    asked = problems("measure/vote", VOTED, held_out())
    repeated = [problem for problem in asked for _ in range(VOTES)]
    rollouts = sample_rollouts(policy, tokenizer, repeated, temperature=TEMPERATURE, seed=SEED)
    answers = [rollout.steps[-1] for rollout in rollouts]
    right = [answer == problem.steps[-1] for answer, problem in zip(answers, repeated, strict=True)]
    ballots = [answers[i * VOTES : (i + 1) * VOTES] for i in range(VOTED)]
    won = [Counter(ballot).most_common(1)[0][0] == p.steps[-1] for ballot, p in zip(ballots, asked, strict=True)]
    return sum(right) / len(right), sum(won) / len(won)


@torch.inference_mode()
def scores(name: str, rollouts: Sequence[Rollout], tokenizer: PreTrainedTokenizerBase) -> Scored:
    """The reward model's probability for every place where it is read, and whether it is right there."""
    model = Qwen2ForSequenceClassification.from_pretrained(WEIGHTS / name)
    _, row, _ = REWARDS[name]
    found, labels = [], []
    for ids, marks in padded([row(tokenizer, rollout) for rollout in rollouts], int(tokenizer.pad_token_id)):
        read = marks != IGNORE
        found.append(logits(model, ids, read).sigmoid())
        labels.append(marks[read])
    return torch.cat(found).numpy(), torch.cat(labels).numpy()


def discrimination(scored: Scored) -> dict[str, float]:
    """AUC (chance that a right one outranks a wrong one), Brier score, and what δ = 0.7 keeps."""
    probability, label = scored
    right, kept = label == 1, probability >= DELTA
    pairs = right.sum() * (~right).sum()
    return {
        "right": right.mean(),
        "AUC": mannwhitneyu(probability[right], probability[~right]).statistic / pairs,
        "Brier": np.mean((probability - label) ** 2),
        "kept": kept.mean(),
        "right among the kept": right[kept].mean(),
        "right ones kept": kept[right].mean(),
    }


def calibration(scored: Scored) -> list[tuple[int, float]]:
    """In each fifth of [0, 1]: how many probabilities lie there, and the share of right ones among them (NaN of
    none)."""
    probability, label = scored
    fifth = np.minimum((probability * 5).astype(int), 4)
    count, right = (np.bincount(fifth, weights, minlength=5) for weights in (None, label))
    return [(int(n), k / n if n else float("nan")) for n, k in zip(count, right, strict=True)]


def by_level(run: Run, questions: Mapping[str, Problem]) -> list[str]:
    """Accuracy in percent with its 95% Wilson interval, level by level and over all."""
    outcomes = defaultdict(list)
    for question, (right, _) in samples_of(run.solutions).items():
        outcomes[questions[question].row["level"]].append(right)
    groups = [outcomes[level] for level in sorted(outcomes)]
    return [_share(group) for group in [*groups, [right for group in groups for right in group]]]


def _share(outcomes: Sequence[int]) -> str:
    low, high = wilson(sum(outcomes), len(outcomes))
    return f"{100 * sum(outcomes) / len(outcomes):.1f} [{100 * low:.0f}, {100 * high:.0f}]"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    head = list(head)
    for cells in (head, ["---"] * len(head), *rows):
        print("| " + " | ".join(cells) + " |")
    print()


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="?", type=Path, help="a folder of runs by benchmark, such as results/runs")
    args = parser.parse_args()
    if args.runs:
        for name, (_, levels) in BENCHMARKS.items():
            questions = {
                p.question_id: p for p in JsonLinesBenchmark(name=name, path=str(FOLDER / f"{name}.jsonl")).problems()
            }
            folders = sorted((args.runs / name).glob("*/"))  # <method>-<models>-<hash>
            rows = ([f.name.rpartition("-")[0], *by_level(read_run(f), questions)] for f in folders)
            _table([name, *map(str, levels), "all"], rows)
        return
    tokenizer = AutoTokenizer.from_pretrained(WEIGHTS / "m")
    drawn = {}
    votes = []
    for size, policy in policies(tokenizer):
        one, majority = voting(policy, tokenizer)
        votes.append([size, f"{one:.1%}", f"{majority:.1%}"])
        asked = problems("measure/scores", SCORED, held_out())
        drawn[size] = sample_rollouts(policy, tokenizer, asked, temperature=TEMPERATURE, seed=SEED)
    _table(["policy", "one sample", f"majority of {VOTES}"], votes)
    scored = {(name, size): scores(name, drawn[size], tokenizer) for name in REWARDS for size in drawn}
    columns = list(discrimination(scored["prm_m", "s"]))
    _table(
        ["reward model", "solutions of", *columns],
        ([*key, *(f"{value:.3f}" for value in discrimination(values).values())] for key, values in scored.items()),
    )
    fifths = [f"[{i / 5:.1f}, {(i + 1) / 5:.1f}{']' if i == 4 else ')'}" for i in range(5)]
    _table(
        ["reward model", "solutions of", *fifths],
        ([*key, *(f"{share:.2f} of {n}" for n, share in calibration(values))] for key, values in scored.items()),
    )


if __name__ == "__main__":
    main()
