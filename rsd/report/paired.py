"""Two runs compared on the questions that both answered, and averages of such comparisons over benchmarks.

outcome = compare_paired(rsd, target)       # frames of load(rows="solutions"), one run each
outcome.won, outcome.lost, outcome.difference, outcome.interval, outcome.p
average_difference({"math500": (rsd, target), "gsm8k": (rsd_gsm8k, target_gsm8k)}).interval
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from rsd.errors import StoreError
from rsd.report.runs import samples_of
from rsd.report.statistics import (
    Interval,
    Samples,
    bootstrap_difference,
    pair,
    percentiles,
    resampled_differences,
    resampled_means,
)

if TYPE_CHECKING:
    import pandas as pd

    Solutions: TypeAlias = pd.DataFrame | Samples  # a frame of load(rows="solutions"), or `samples_of` it


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A run against another on their `n` common questions; `difference` is its accuracy less the other's.

    With one sample a question, `won` and `lost` are the questions that only it, or only the other, has right, `p` is
    the exact McNemar test of them and `newcombe` the 95% interval of the difference. With several samples accuracy is
    no 0/1 outcome, and all four are None. `bootstrap`: the percentile interval of the difference over questions, and
    samples within them.
    """

    n: int
    won: int | None
    lost: int | None
    difference: float
    newcombe: Interval | None
    bootstrap: Interval
    p: float | None

    @property
    def interval(self) -> Interval:
        """Newcombe's, or for lack of it the bootstrap's."""
        return self.newcombe or self.bootstrap


@dataclass(frozen=True, slots=True, kw_only=True)
class Average:
    """A mean over benchmarks with its 95% interval."""

    value: float
    interval: Interval
    interval_method: Literal["bootstrap"] = "bootstrap"


def compare_paired(solutions_a: "Solutions", solutions_b: "Solutions") -> Comparison:
    """Compare one run's solutions with another's of the same benchmark (see `Comparison` for formulas and sources).

    Raises StoreError when they are of two benchmarks, have no question in common, or are of more than one run.
    """
    first, second = _samples(solutions_a), _samples(solutions_b)
    common = first.keys() & second.keys()
    benchmarks = {
        name for one in (solutions_a, solutions_b) if not isinstance(one, Mapping) for name in one["benchmark"]
    }
    if len(benchmarks) > 1:
        raise StoreError(
            f"runs of {' and '.join(sorted(benchmarks))} have no questions to pair; compare one benchmark's"
        )
    difference = _difference(first, second)
    bootstrap = bootstrap_difference(first, second)
    if all(first[question][1] == second[question][1] == 1 for question in common):
        outcome = pair(*({question: right == 1 for question, (right, _) in s.items()} for s in (first, second)))
        return Comparison(
            n=len(common),
            won=outcome.won,
            lost=outcome.lost,
            difference=outcome.difference,
            newcombe=outcome.interval,
            bootstrap=bootstrap,
            p=outcome.p,
        )
    return Comparison(
        n=len(common), won=None, lost=None, difference=difference, newcombe=None, bootstrap=bootstrap, p=None
    )


def questions_decided(solutions_a: "Solutions", solutions_b: "Solutions") -> tuple[list[str], list[str]]:
    """Which questions the first run has more of its samples right of than the second, and which it has fewer."""
    first, second = _samples(solutions_a), _samples(solutions_b)
    ahead = {q: _share(first[q]) - _share(second[q]) for q in sorted(first.keys() & second.keys())}
    return [q for q, by in ahead.items() if by > 0], [q for q, by in ahead.items() if by < 0]


def average_difference(pairs: Mapping[str, tuple["Solutions", "Solutions"]]) -> Average:
    """Mean over benchmarks, each with the same weight, of the difference in accuracy of two runs' solutions.

    Stratified bootstrap (Davison & Hinkley, 1997, section 3.2): in each resample every benchmark's questions are drawn
    anew, the same ones for both runs, then the samples of each. Raises StoreError as `compare_paired`.
    """
    rng = np.random.default_rng(0)
    samples = [[_samples(run) for run in pairs[name]] for name in sorted(pairs)]
    differences = [_difference(first, second) for first, second in samples]
    drawn = [resampled_differences(first, second, rng) for first, second in samples]
    return Average(value=float(np.mean(differences)), interval=percentiles(np.mean(drawn, axis=0)))


def average_accuracy(runs: Mapping[str, "Solutions"]) -> Average:
    """Mean over benchmarks, each with the same weight, of the accuracy of a run's solutions; stratified bootstrap."""
    rng = np.random.default_rng(0)
    samples = [_samples(runs[name]) for name in sorted(runs)]
    means = [np.mean([_share(sample) for sample in one.values()]) for one in samples]
    drawn = [resampled_means(one, rng) for one in samples]
    return Average(value=float(np.mean(means)), interval=percentiles(np.mean(drawn, axis=0)))


def _samples(solutions: "Solutions") -> Samples:
    if isinstance(solutions, Mapping):
        return solutions
    whole = solutions[solutions["whole"]]
    if whole.duplicated(["question_id", "sample"]).any():
        raise StoreError("a comparison is of one run with one other; name one run on each side")
    return samples_of(whole)


def _difference(first: Samples, second: Samples) -> float:
    """Of the means over the questions that both answered. Raises StoreError where there are none."""
    common = first.keys() & second.keys()
    if not common:
        raise StoreError("the two runs have no question in common, so there is nothing to pair")
    return fsum(_share(first[question]) - _share(second[question]) for question in common) / len(common)


def _share(sample: tuple[int, int]) -> float:
    right, count = sample
    return right / count
