"""Drawing tokens: the cumulative distribution inverted, nucleus included."""

import torch

from rsd.engines.sampler import sample


def draw(probabilities: list[float], top_p: float, u: float) -> int:
    logits = torch.tensor([probabilities]).log()
    double = torch.float64
    return int(sample(logits, *(torch.tensor([x], dtype=double) for x in (1.0, top_p, u))))


def test_the_uniform_number_picks_by_descending_probability() -> None:
    assert [draw([0.1, 0.6, 0.3], 1.0, u) for u in (0.0, 0.59, 0.61, 0.89, 0.91, 0.9999)] == [1, 1, 2, 2, 0, 0]


def test_the_nucleus_is_the_fewest_tokens_that_reach_top_p() -> None:
    seen = {draw([0.1, 0.6, 0.3], 0.7, u / 100) for u in range(100)}
    assert seen == {1, 2}
    assert {draw([0.1, 0.6, 0.3], 0.01, u / 100) for u in range(100)} == {1}


def test_impossible_tokens_are_never_drawn() -> None:
    assert {draw([0.0, 0.5, 0.5, 0.0], 1.0, u) for u in (0.0, 0.25, 0.5, 0.75, 1 - 2**-53)} == {1, 2}
