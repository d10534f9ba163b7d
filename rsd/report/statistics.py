"""Intervals and tests for shares of right answers, of one run and of two runs on common questions.

SciPy, a second to import, is imported where it is needed, so that a command's ``--help`` does not wait::

    wilson(143, 200)                                  # (0.649, 0.773)
    outcome = pair({"a": True, "b": True}, {"a": True, "b": False})
    outcome.won, outcome.lost, outcome.p, outcome.interval
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from scipy.stats._result_classes import BinomTestResult

Interval = tuple[float, float]
Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

RESAMPLES = 2000


def wilson(successes: int, trials: int, confidence: float = 0.95) -> Interval:
    """Wilson's score interval for a share of independent 0/1 outcomes (Wilson, 1927, JASA 22:209-212).

    Raises ValueError unless 0 <= `successes` <= `trials` and `trials` >= 1.
    """
    interval = _fair_coin(successes, trials).proportion_ci(confidence, method="wilson")
    return float(interval.low), float(interval.high)


def mcnemar(won: int, lost: int) -> float:
    """Exact two-sided p-value of McNemar's test: `won` of the discordant pairs against a fair coin.

    1.0 without discordant pairs, where the data say nothing against equality.
    """
    return float(_fair_coin(won, won + lost).pvalue) if won + lost else 1.0


def newcombe(both: int, won: int, lost: int, neither: int, confidence: float = 0.95) -> Interval:
    """Newcombe's interval for a difference of paired shares, (won - lost) / n; all four are counts.

    Method 10 of Newcombe (1998), "Improved confidence intervals for the difference between
    binomial proportions based on paired data", Statistics in Medicine 17:2635-2650: Wilson's
    limits of both shares, squared and added, less their covariance by the continuity-corrected phi.
    """
    n = both + won + lost + neither
    first, second = (both + won) / n, (both + lost) / n
    first_low, first_high = wilson(both + won, n, confidence)
    second_low, second_high = wilson(both + lost, n, confidence)
    excess = both * neither - won * lost
    corrected = max(excess - n / 2, 0.0) if excess > 0 else excess
    margins = (both + won) * (lost + neither) * (both + lost) * (won + neither)
    phi = corrected / sqrt(margins) if margins else 0.0

    def span(a: float, b: float) -> float:
        return sqrt(a * a - 2 * phi * a * b + b * b)

    difference = first - second
    return (
        difference - span(first - first_low, second_high - second),
        difference + span(first_high - first, second - second_low),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """Two runs on their common questions: right in both, in the first or the second only, in neither."""

    both: int
    won: int
    lost: int
    neither: int

    @property
    def difference(self) -> float:
        """Share right of the first run less that of the second."""
        return (self.won - self.lost) / (self.both + self.won + self.lost + self.neither)

    @property
    def interval(self) -> Interval:
        """95% interval of `difference` (`newcombe`)."""
        return newcombe(self.both, self.won, self.lost, self.neither)

    @property
    def p(self) -> float:
        """Exact McNemar p-value (`mcnemar`)."""
        return mcnemar(self.won, self.lost)


def pair(first: Mapping[str, bool], second: Mapping[str, bool]) -> Paired:
    """Count the outcomes {question: right} of two runs on the questions that both have."""
    common = first.keys() & second.keys()
    return Paired(
        both=sum(first[question] and second[question] for question in common),
        won=sum(first[question] and not second[question] for question in common),
        lost=sum(second[question] and not first[question] for question in common),
        neither=sum(not first[question] and not second[question] for question in common),
    )


Samples = Mapping[str, tuple[int, int]]
"""For each question, how many of its samples are right, and how many there are (>= 1)."""


def bootstrap(samples: Samples, seed: int = 0) -> Interval:
    """95% percentile interval of the mean over questions of the share of right samples.

    Two-level bootstrap (Davison & Hinkley, 1997, section 3.8): questions are drawn with
    replacement, then each one's samples. The order of `samples` does not matter.
    """
    return percentiles(resampled_means(samples, np.random.default_rng(seed)))


def bootstrap_difference(first: Samples, second: Samples, seed: int = 0) -> Interval:
    """95% percentile interval of the difference of two such means on the common questions.

    Both runs see the same resampled questions, so that a question's difficulty cancels; their
    samples are resampled independently.
    """
    return percentiles(resampled_differences(first, second, np.random.default_rng(seed)))


def resampled_differences(first: Samples, second: Samples, rng: np.random.Generator) -> Floats:
    """Differences [resample] of the two means on the common questions, each time of questions drawn anew."""
    kinds, drawn = _drawn([(*first[question], *second[question]) for question in first.keys() & second.keys()], rng)
    return _means(kinds[:, :2], drawn, rng) - _means(kinds[:, 2:], drawn, rng)


def resampled_means(samples: Samples, rng: np.random.Generator) -> Floats:
    """Means [resample] of the shares of right samples, each time of questions, then samples, drawn anew."""
    return _means(*_drawn(list(samples.values()), rng), rng)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment of the p-values of m hypotheses (Holm, 1979, Scandinavian J. Statistics 6:65-70).

    With p_(1) <= … <= p_(m), the i-th becomes max over j <= i of min(1, (m - j + 1)·p_(j)): rejecting those at or below
    α errs in any of them with a probability of at most α. NaN, a hypothesis that was not tested, stays and does not
    count. In the order given.
    """
    values = np.array(p_values, dtype=np.float64)
    tested = np.flatnonzero(~np.isnan(values))
    order = tested[np.argsort(values[tested], kind="stable")]
    steps = np.arange(len(order), 0, -1) * values[order]
    values[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return [float(value) for value in values]


def _drawn(outcomes: Sequence[tuple[int, ...]], rng: np.random.Generator) -> tuple[Integers, Integers]:
    """The kinds of `outcomes` that questions have, and how many questions [resample, kind] are drawn of each: of n
    drawn with replacement, Multinomial(n, shares of the kinds)."""
    kinds, questions = np.unique(np.array(outcomes), axis=0, return_counts=True)
    return kinds, rng.multinomial(len(outcomes), questions / len(outcomes), size=RESAMPLES)


def _means(kinds: Integers, drawn: Integers, rng: np.random.Generator) -> Floats:
    """Means [resample] over the questions `drawn` of each kind (right, count), each with its samples resampled."""
    right, count = kinds.T
    # The right ones among n draws with replacement from n samples, r of them right, are Binomial(n, r/n).
    means: Floats = (rng.binomial(drawn * count, right / count) / count).sum(axis=1) / drawn.sum(axis=1)
    return means


def _fair_coin(successes: int, trials: int) -> "BinomTestResult":
    """SciPy's test of a share against 1/2; its interval is that of the share, whatever the hypothesis."""
    from scipy.stats import binomtest

    return binomtest(successes, trials)


def percentiles(values: Floats) -> Interval:
    """The middle 95% of resampled `values`."""
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)
