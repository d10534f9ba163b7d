"""Expected accuracy of choosing among k of a question's N samples, over all subsets of k.

    expected_majority([3, 2, 1], right=[True, False, False], abstaining=2, k=4)
    expected_best([0.9, 0.7, None], [True, False, True], k=2)

One sampling run of N solutions so gives maj@k and best-of-k for every k <= N, without drawing again; at cost k/N.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import comb, sqrt
from statistics import fmean

import numpy as np
import numpy.typing as npt
from rich import box
from rich.table import Table

from rsd.records import Record
from rsd.store import GradeRecord, Key, is_error

SUBSETS = 2000  # drawn for a weighted vote, which has no closed form

Floats = npt.NDArray[np.float64]


def expected_majority(sizes: Sequence[int], right: Sequence[bool], abstaining: int, k: int) -> float:
    """Probability that k of N samples, drawn without replacement, elect a right class; ties are shared.

    `sizes`: samples in each class of answers, `right`: which classes are right, `abstaining`: samples without an
    answer, which use a place. Sum over m >= 1 of C(n_c, m) · [ways to draw k - m from the others with no class above
    m and t classes at m] / (t + 1) / C(N, k), for each right class c. Raises ValueError unless 1 <= k <= N.
    """
    total = sum(sizes) + abstaining
    if not 1 <= k <= total:
        raise ValueError(f"k={k} samples cannot be drawn from {total}")
    share = 0.0
    for c in (c for c, is_right in enumerate(right) if is_right):
        others = [size for i, size in enumerate(sizes) if i != c]
        for m in range(1, min(sizes[c], k) + 1):
            ways = _ways(others, abstaining, draws=k - m, most=m)
            share += comb(sizes[c], m) * float(sum(row[k - m] / (t + 1) for t, row in enumerate(ways)))
    return share / comb(total, k)


def _ways(sizes: Sequence[int], abstaining: int, *, draws: int, most: int) -> list[Floats]:
    """[t][s]: ways to draw s <= `draws` samples with no class above `most` and t classes at it."""
    ways = [_choices(abstaining, draws, draws)]
    for size in sizes:
        below = _choices(size, draws, most - 1)
        drawn = [_product(row, below) for row in ways]
        if size >= most and most <= draws:
            drawn.append(np.zeros(draws + 1))
            for t, row in enumerate(ways):
                drawn[t + 1][most:] += comb(size, most) * row[: draws + 1 - most]
        ways = drawn
    return ways


def _choices(size: int, draws: int, most: int) -> Floats:
    """[s]: ways to choose s <= `draws` of `size` samples, none for s above `most`."""
    return np.array([comb(size, s) if s <= most else 0 for s in range(draws + 1)], dtype=np.float64)


def _product(a: Floats, b: Floats) -> Floats:
    return np.convolve(a, b)[: len(a)]


def expected_best(values: Sequence[float | None], right: Sequence[bool], k: int) -> float:
    """Probability that the highest valued of k of N samples is right; equal ones share, None ranks below all.

    From ranks: the i-th highest is the best of C(N - i, k - 1) of the C(N, k) subsets. Raises ValueError unless
    1 <= k <= N.
    """
    if not 1 <= k <= len(values):
        raise ValueError(f"k={k} samples cannot be drawn from {len(values)}")
    groups: dict[tuple[bool, float], list[bool]] = {}
    for value, is_right in zip(values, right, strict=True):
        groups.setdefault((value is not None, value or 0.0), []).append(is_right)
    share, left = 0.0, len(values)
    for key in sorted(groups, reverse=True):
        group = groups[key]
        share += fmean(group) * (comb(left, k) - comb(left - len(group), k))
        left -= len(group)
    return share / comb(len(values), k)


def weighted_vote(
    classes: Sequence[int | None], values: Sequence[float | None], right: Sequence[bool], k: int, seed: int = 0
) -> tuple[float, float]:
    """Share of 2,000 seeded subsets of k in which the class with the greatest sum of values is right, and the
    Monte-Carlo standard error of that share. Ties go to the class that came first; no answer, no vote."""
    rng = np.random.default_rng(seed)
    subsets = np.argsort(rng.random((SUBSETS, len(classes))), axis=1)[:, :k]
    numbers = np.array([-1 if number is None else number for number in classes])
    weights = np.zeros((max(0, numbers.max(initial=-1)) + 1, len(classes)))  # [class, sample]
    voting = [i for i, number in enumerate(classes) if number is not None]
    weights[numbers[voting], voting] = [values[i] or 0.0 for i in voting]
    voted = np.zeros_like(weights)
    voted[numbers[voting], voting] = 1
    chosen = np.zeros((SUBSETS, len(classes)))
    np.put_along_axis(chosen, subsets, 1.0, axis=1)
    totals = np.where(chosen @ voted.T > 0, chosen @ weights.T, -np.inf)
    elected = totals.argmax(axis=1)
    is_right = np.array([any(right[i] for i in voting if classes[i] == c) for c in range(len(weights))])
    wins = is_right[elected] & np.isfinite(totals.max(axis=1))
    share = float(wins.mean())
    return share, sqrt(share * (1 - share) / SUBSETS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """One question's samples: class of each answer, value of each (None: none), and which are right."""

    classes: tuple[int | None, ...]
    values: tuple[float | None, ...]
    right: tuple[bool, ...]

    def majority(self, k: int) -> float:
        """maj@k; a class is right where its first answer is."""
        sizes = Counter(number for number in self.classes if number is not None)
        right = [self.right[self.classes.index(number)] for number in sizes]
        return expected_majority(list(sizes.values()), right, self.classes.count(None), k)


def samples_in(record: Record, grades: Mapping[Key, GradeRecord]) -> Samples:
    """The samples that a selection's `record` chose among, with the `grades` of the run that drew them."""
    drawn = [(p.diagnostic or {}, p.reward) for p in record.proposals]
    verdicts = [grades.get((record.question_id, told["sample"])) for told, _ in drawn]
    return Samples(
        classes=tuple(told["answer_class"] for told, _ in drawn),
        values=tuple(value for _, value in drawn),
        right=tuple(verdict is not None and verdict.correct for verdict in verdicts),
    )


def subset_table(method: str, records: Iterable[Record], grades: Mapping[Key, GradeRecord]) -> Table:
    """Expected accuracy of `method` (``majority`` or ``best_of_n``) at k = 1, 2, 4, … samples of each question."""
    questions = [samples_in(record, grades) for record in records if not is_error(record)]
    most = min((len(question.right) for question in questions), default=0)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("k", justify="right")
    columns = ["maj@k"] if method == "majority" else ["best of k", "weighted maj@k", "maj@k"]
    for name in columns:
        table.add_column(name, justify="right")
    for k in sorted({2**i for i in range(most.bit_length()) if 2**i <= most} | ({most} if most else set())):
        cells = [f"{100 * fmean(question.majority(k) for question in questions):.1f}%"]
        if method != "majority":
            best = fmean(expected_best(question.values, question.right, k) for question in questions)
            votes = [weighted_vote(q.classes, q.values, q.right, k) for q in questions]
            error = sqrt(sum(error**2 for _, error in votes)) / len(votes)
            cells = [f"{100 * best:.1f}%", f"{100 * fmean(v for v, _ in votes):.1f}% ±{100 * error:.1f}", *cells]
        table.add_row(str(k), *cells)
    return table
