"""The best threshold δ*, chosen on the test set as the paper does and by cross-fitting, side by side.

star = delta_star({0.6: rsd_06, 0.7: rsd_07, 0.8: rsd_08, 0.9: rsd_09})   # frames of load(rows="solutions")
star.oracle_delta, star.oracle_accuracy
star.fitted_accuracy, star.fitted_spread     # over 20 divisions into folds
compare_paired(star.fitted, target)          # with the first division's verdicts
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean, stdev
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from rsd.errors import StoreError
from rsd.report.runs import samples_of
from rsd.report.statistics import Samples

if TYPE_CHECKING:
    import pandas as pd

GRID = (0.6, 0.7, 0.8, 0.9)
FOLDS = 5
SEEDS = 20  # divisions into folds


@dataclass(frozen=True, kw_only=True)
class DeltaStar:
    """δ* of one configuration on one benchmark, over the `questions` that all thresholds answered.

    The *oracle* is the threshold that is best on the questions it is reported on, which flatters it. *Fitted*: a
    question's verdict is that of the threshold that is best on the folds it is not in. That choice rests on 4/5 of the
    questions, so the gap between the two slightly overstates the oracle's optimism.
    """

    questions: int
    oracle_delta: float
    oracle_accuracy: float
    fitted_accuracies: tuple[float, ...]
    """One for each division, seeds 0-19."""
    fitted_deltas: Mapping[str, float]
    """{question_id: the threshold chosen for its fold} in the division of seed 0."""
    fitted_samples: Samples
    """The solutions of all divisions together, as further samples of a question: what intervals of the mean take."""
    runs: "Mapping[float, pd.DataFrame]" = field(repr=False)

    @property
    def fitted_accuracy(self) -> float:
        """Mean over divisions."""
        return fmean(self.fitted_accuracies)

    @property
    def fitted_spread(self) -> float:
        """Standard deviation over divisions."""
        return stdev(self.fitted_accuracies)

    @cached_property
    def oracle(self) -> "pd.DataFrame":
        """The solutions of the run with the oracle's threshold."""
        return self.runs[self.oracle_delta]

    @cached_property
    def fitted(self) -> "pd.DataFrame":
        """The solutions, one run's for each fold, that the division of seed 0 stands for: what paired tests take."""
        import pandas as pd

        parts = [run[run["question_id"].map(self.fitted_deltas) == delta] for delta, run in self.runs.items()]
        return pd.concat(parts, ignore_index=True)


def delta_star(solutions: "Mapping[float, pd.DataFrame]", *, folds: int = FOLDS, seeds: int = SEEDS) -> DeltaStar:
    """Choose among the thresholds of `solutions` {δ: the solutions of its run}, ties to the smaller one.

    Cross-fitting (Stone, 1974, "Cross-validatory choice and assessment of statistical predictions", J. R. Statist. Soc.
    B 36:111-147): for each of `seeds` divisions of the questions into `folds` of equal size, at random. Raises
    StoreError where the runs have fewer than `folds` questions in common, or there are several of one δ.
    """
    deltas = sorted(solutions)
    whole = {delta: solutions[delta][solutions[delta]["whole"]] for delta in deltas}
    for delta, run in whole.items():
        if run.duplicated(["question_id", "sample"]).any():
            raise StoreError(f"delta* chooses among one run of each delta, and of {delta:g} there are several")
    samples = {delta: samples_of(run) for delta, run in whole.items()}
    common = sorted(set.intersection(*(set(told) for told in samples.values()))) if samples else []
    if len(common) < folds:
        raise StoreError(f"delta* needs {folds} questions that runs of every delta answered; there are {len(common)}")
    shares = np.array([[samples[delta][q][0] / samples[delta][q][1] for q in common] for delta in deltas])
    divisions = [_fitted(shares, folds, seed) for seed in range(seeds)]
    best = _best(shares)
    return DeltaStar(
        questions=len(common),
        oracle_delta=deltas[best],
        oracle_accuracy=float(shares[best].mean()),
        fitted_accuracies=tuple(float(shares[rows, np.arange(len(common))].mean()) for rows in divisions),
        fitted_deltas={question: deltas[row] for question, row in zip(common, divisions[0], strict=True)},
        fitted_samples={
            question: _sum([samples[deltas[rows[i]]][question] for rows in divisions])
            for i, question in enumerate(common)
        },
        runs=whole,
    )


def _sum(samples: Sequence[tuple[int, int]]) -> tuple[int, int]:
    right, count = zip(*samples, strict=True)
    return sum(right), sum(count)


def _fitted(shares: npt.NDArray[np.float64], folds: int, seed: int) -> npt.NDArray[np.int64]:
    """[question]: row of `shares` [delta, question] that is best on the folds that the question is not in."""
    n = shares.shape[1]
    chosen = np.empty(n, dtype=np.int64)
    for fold in np.array_split(np.random.default_rng(seed).permutation(n), folds):
        others = np.ones(n, dtype=bool)
        others[fold] = False
        chosen[fold] = _best(shares[:, others])
    return chosen


def _best(shares: npt.NDArray[np.float64]) -> int:
    """The first row whose mean is greatest, but for rounding."""
    means = shares.mean(axis=1)
    return int(np.flatnonzero(means >= means.max() - 1e-12)[0])
