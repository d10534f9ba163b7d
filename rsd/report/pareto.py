"""Which points of a plot of cost against accuracy no other point beats."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def pareto(costs: Sequence[float], accuracies: Sequence[float]) -> npt.NDArray[np.bool_]:
    """[point]: True where no point costs as little and is as accurate, and is better in one of the two.

    Equal points are on the front together; a point whose cost or accuracy is NaN is not on it.
    """
    cost, accuracy = np.array(costs, dtype=np.float64), np.array(accuracies, dtype=np.float64)
    known = ~(np.isnan(cost) | np.isnan(accuracy))
    no_worse = (cost[:, None] <= cost) & (accuracy[:, None] >= accuracy)  # [i, j]: i is no worse than j
    better = (cost[:, None] < cost) | (accuracy[:, None] > accuracy)
    return known & ~(no_worse & better).any(axis=0)
