"""Every draw has a key of its own."""

from itertools import product

from rsd.keys import keyed_seed, uniform


def test_every_part_of_the_key_counts() -> None:
    seeds = [
        keyed_seed(run_seed=a, question_id=b, sample=c, step=d, role=e, candidate=f, piece=g)
        for a, b, c, d, e, f, g in product(
            (0, 1), ("a", "b", "1"), (0, 1), (0, 1, 11), ("draft", "target", "accept"), (0, 1), (0, 1)
        )
    ]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_the_encoding_is_unambiguous() -> None:
    a = keyed_seed(run_seed=1, question_id="2, 3", sample=4, step=5, role="draft")
    b = keyed_seed(run_seed=1, question_id="2", sample=3, step=4, role="draft")
    assert a != b


def test_a_key_is_stable_over_processes_and_versions() -> None:
    # a changed value here would change every stored run
    assert keyed_seed(run_seed=0, question_id="0123456789ab", sample=0, step=0, role="draft") == 1886597212172945265


def test_uniform_numbers_look_uniform() -> None:
    numbers = [
        uniform(keyed_seed(run_seed=0, question_id=f"q{i}", sample=0, step=0, role="accept")) for i in range(10_000)
    ]
    assert abs(sum(numbers) / 10_000 - 0.5) < 4 * (1 / 12 / 10_000) ** 0.5
    assert all(0 <= number < 1 for number in numbers)
