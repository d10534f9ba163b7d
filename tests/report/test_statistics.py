"""Intervals and tests: published examples, brute force, statsmodels, and bounds that always hold."""

from itertools import product
from math import comb, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import mcnemar as mcnemar_of_statsmodels
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from rsd.report.statistics import (
    Paired,
    bootstrap,
    bootstrap_difference,
    holm,
    mcnemar,
    newcombe,
    pair,
    resampled_differences,
    wilson,
)

counts = st.integers(0, 40)
tables = st.tuples(counts, counts, counts, counts).filter(any)


def test_wilson_of_a_half_by_hand() -> None:
    """p = 1/2, n = 100, z = 1.959964: half-width z·sqrt(n/4 + z²/4)/(n + z²), centred on 1/2."""
    z = 1.959964
    half = z * sqrt(25 + z * z / 4) / (100 + z * z)
    assert wilson(50, 100) == pytest.approx((0.5 - half, 0.5 + half), abs=1e-6)


@given(st.integers(1, 500), st.data())
def test_wilson_encloses_the_share_and_stays_in_range(trials: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, trials))
    low, high = wilson(successes, trials)
    assert -1e-12 <= low <= successes / trials + 1e-12
    assert successes / trials - 1e-12 <= high <= 1 + 1e-12
    mirrored = wilson(trials - successes, trials)
    assert (low, high) == pytest.approx((1 - mirrored[1], 1 - mirrored[0]))
    # The limits solve |share − p| = z·sqrt(p(1 − p)/n): the definition of the score interval.
    for p in (low, high):
        assert abs(successes / trials - p) == pytest.approx(1.9599640 * sqrt(max(p * (1 - p), 0) / trials), abs=1e-6)


def test_wilson_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="not less than 1"):
        wilson(0, 0)


@pytest.mark.parametrize(
    ("table", "interval"),
    [
        # Complete response before and after consolidation (Cavo et al., 2012), as in Fagerland, Lydersen
        # & Laake, "Statistical Analysis of Contingency Tables" (2017), chapter 8, and the tests of its R package.
        ((59, 6, 16, 80), (-0.1186, -0.0046)),
        # Airway hyper-responsiveness before and after transplantation (Bentur et al., 2009), same chapter.
        ((1, 1, 7, 12), (-0.5069, -0.0256)),
    ],
)
def test_newcombe_published(table: tuple[int, int, int, int], interval: tuple[float, float]) -> None:
    assert newcombe(*table) == pytest.approx(interval, abs=5e-5)


@given(tables)
def test_newcombe_bounds(table: tuple[int, int, int, int]) -> None:
    both, won, lost, neither = table
    low, high = newcombe(*table)
    assert -1 - 1e-9 <= low <= (won - lost) / sum(table) + 1e-12
    assert (won - lost) / sum(table) - 1e-12 <= high <= 1 + 1e-9
    # Naming the other run first turns the interval round; so does counting wrong answers in place of right ones.
    assert newcombe(both, lost, won, neither) == pytest.approx((-high, -low))
    assert newcombe(neither, lost, won, both) == pytest.approx((-high, -low))


def test_mcnemar_published() -> None:
    """Two media for tubercle bacilli, 12 against 2 (Armitage & Berry, 1994, p. 127): exact P = 0.0129."""
    assert mcnemar(12, 2) == pytest.approx(0.0129, abs=5e-5)


@given(st.integers(0, 11), st.integers(0, 11))
def test_mcnemar_is_brute_force(won: int, lost: int) -> None:
    """All outcomes of won + lost fair coins, and the share of those at least as lopsided."""
    n = won + lost
    lopsided = sum(comb(n, k) for k in range(n + 1) if abs(2 * k - n) >= abs(won - lost))
    assert mcnemar(won, lost) == pytest.approx(lopsided / 2**n)


def test_mcnemar_enumerated() -> None:
    """3 against 1, all 16 sequences written out: 10 have a majority of 3 or 4."""
    lopsided = sum(abs(sum(coins) - 2) >= 1 for coins in product((0, 1), repeat=4))
    assert (lopsided, mcnemar(3, 1)) == (10, 10 / 16)


def test_pair_takes_common_questions_only() -> None:
    first = {"a": True, "b": True, "c": False, "d": False, "e": True, "only": True}
    second = {"a": True, "b": False, "c": True, "d": False, "e": False, "other": True}
    outcome = pair(first, second)
    assert outcome == Paired(both=1, won=2, lost=1, neither=1)
    assert outcome.difference == pytest.approx(1 / 5)
    assert outcome.p == 1.0
    assert outcome.interval == newcombe(1, 2, 1, 1)


def test_bootstrap_spread_by_hand() -> None:
    """40 questions, half always right: the mean has standard error sqrt(0.25/40) = 0.0791."""
    samples = {f"q{i}": (4 * (i % 2), 4) for i in range(40)}
    low, high = bootstrap(samples)
    assert (high - low) / 2 == pytest.approx(1.96 * 0.0791, rel=0.1)
    assert (low + high) / 2 == pytest.approx(0.5, abs=0.02)


def test_bootstrap_resamples_samples_too() -> None:
    """Every question right in 2 of 4: all spread is within questions, sqrt(0.25/4/40) = 0.0395."""
    low, high = bootstrap({f"q{i}": (2, 4) for i in range(40)})
    assert (high - low) / 2 == pytest.approx(1.96 * 0.0395, rel=0.1)


def test_bootstrap_is_seeded() -> None:
    samples = {"a": (1, 3), "b": (2, 4), "c": (0, 2), "d": (5, 5)}
    assert bootstrap(samples) == bootstrap(dict(reversed(samples.items()))), "a resumed run may be in another order"
    assert bootstrap(samples, seed=1) != bootstrap({**samples, "e": (1, 2)}, seed=1)


def test_bootstrap_difference_pairs_questions() -> None:
    """Questions that differ wildly, but alike in both runs, leave no spread in the difference."""
    first = {f"q{i}": (3 * (i % 2), 3) for i in range(30)}
    assert bootstrap_difference(first, {**first, "other": (0, 3)}) == (0.0, 0.0)
    assert bootstrap_difference(dict.fromkeys(first, (3, 3)), dict.fromkeys(first, (0, 2))) == (1.0, 1.0)


def test_the_shortcut_for_single_samples_is_the_bootstrap() -> None:
    """Won, lost and equal questions drawn at once spread as questions drawn one by one do."""
    outcomes = [1] * 25 + [-1] * 10 + [0] * 65
    first = {f"q{i}": (int(by > 0), 1) for i, by in enumerate(outcomes)}
    second = {f"q{i}": (int(by < 0), 1) for i, by in enumerate(outcomes)}
    rng = np.random.default_rng(0)
    found = resampled_differences(first, second, rng)
    by_hand = rng.choice(outcomes, size=(20_000, 100)).mean(axis=1)
    assert found.mean() == pytest.approx(by_hand.mean(), abs=0.005)
    assert found.std() == pytest.approx(by_hand.std(), rel=0.05)
    assert np.quantile(found, [0.025, 0.975]) == pytest.approx(np.quantile(by_hand, [0.025, 0.975]), abs=0.011)


def test_holm_by_hand() -> None:
    """0.01·4, then max(0.04, 0.02·3), max(0.06, 0.03·2), max(0.06, 0.2·1); one that was not tested does not count."""
    assert holm([0.03, 0.01, 0.2, 0.02]) == pytest.approx([0.06, 0.04, 0.2, 0.06])
    assert holm([0.6, 0.9]) == [1.0, 1.0]
    assert holm([]) == []
    assert holm([0.04, float("nan"), 0.01]) == pytest.approx([0.04, float("nan"), 0.02], nan_ok=True)


@pytest.mark.parametrize("seed", range(4))
def test_holm_is_that_of_statsmodels(seed: int) -> None:
    p_values = np.round(np.random.default_rng(seed).random(12) ** 4, 2)  # some of them equal
    assert holm(p_values.tolist()) == pytest.approx(multipletests(p_values, method="holm")[1])


@given(st.integers(1, 3000), st.data())
def test_wilson_is_that_of_statsmodels(trials: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, trials))
    assert wilson(successes, trials) == pytest.approx(proportion_confint(successes, trials, method="wilson"), abs=1e-9)


@given(st.integers(0, 300), st.integers(0, 300))
def test_mcnemar_is_that_of_statsmodels(won: int, lost: int) -> None:
    expected = mcnemar_of_statsmodels([[5, won], [lost, 5]], exact=True).pvalue
    assert mcnemar(won, lost) == pytest.approx(expected, rel=1e-6)
