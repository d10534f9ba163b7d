"""How much a PRM's rewards say about the final answer.

steps = scored_steps(proposals, solutions)     # of the same runs, from load()
reliability(steps)                             # P(final answer right) by bin of reward
score_histogram(steps)                         # counts by outcome
near_threshold(solutions, delta=0.7)           # accuracy of questions decided just above it
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from rsd.report.statistics import wilson

if TYPE_CHECKING:
    import pandas as pd

KEY = ["run_id", "question_id", "sample"]
BINS = 10
WIDTH = 0.05  # above a threshold, still near it


def scored_steps(proposals: "pd.DataFrame", solutions: "pd.DataFrame") -> "pd.DataFrame":
    """The steps that stand in a response and have a reward, each with `correct`, its response's verdict.

    Rejected proposals are left out: the answer that came of the response says nothing about them.
    """
    steps = proposals[proposals["kept"] & proposals["reward"].notna()]
    graded = solutions.loc[solutions["graded"], [*KEY, "correct"]]
    return steps.merge(graded, on=KEY, how="inner")


def reliability(steps: "pd.DataFrame", bins: int | Sequence[float] = BINS) -> "pd.DataFrame":
    """Reliability diagram (Murphy & Winkler, 1977, Applied Statistics 26:41-47): a row for each bin of reward.

    `low` and `high` bound the bin (the last one includes its bound), `steps` counts, `reward` is their mean, `right`
    how many belong to a right answer, `share` of them, with the 95% Wilson interval `share_low` to `share_high`. It
    takes steps for independent, which those of one response are not: real intervals are wider. `bins`: their number
    between 0 and 1 (between the least and greatest reward where one lies outside), or their bounds.
    """
    import pandas as pd

    edges = _edges(steps, bins)
    place = _places(steps, edges)
    rows = []
    for i, (low, high) in enumerate(pairwise(edges)):
        here = steps[place == i]
        right = int(here["correct"].sum())
        interval = wilson(right, len(here)) if len(here) else (np.nan, np.nan)
        row = {"low": low, "high": high, "steps": len(here), "reward": here["reward"].mean(), "right": right}
        share = right / len(here) if len(here) else np.nan
        rows.append({**row, "share": share, "share_low": interval[0], "share_high": interval[1]})
    return pd.DataFrame(rows)


def score_histogram(steps: "pd.DataFrame", bins: int | Sequence[float] = 2 * BINS) -> "pd.DataFrame":
    """How many steps of right and of wrong answers have a reward in each bin: `low`, `high`, `right`, `wrong`."""
    import pandas as pd

    edges = _edges(steps, bins)
    right = np.histogram(steps.loc[steps["correct"], "reward"], edges)[0]
    wrong = np.histogram(steps.loc[~steps["correct"], "reward"], edges)[0]
    return pd.DataFrame({"low": edges[:-1], "high": edges[1:], "right": right, "wrong": wrong})


def near_threshold(solutions: "pd.DataFrame", delta: float, width: float = WIDTH) -> "pd.DataFrame":
    """Accuracy by the smallest reward among a solution's accepted draft steps: two rows, ``near`` for those in
    [δ, δ + `width`) and ``above`` for the others that accepted one.

    Columns `smallest`, `solutions`, `right`, `share`, `share_low`, `share_high` (95% Wilson; NaN for none).
    """
    import pandas as pd

    graded = solutions[solutions["graded"] & solutions["lowest_accepted"].notna()]
    near = (graded["lowest_accepted"] >= delta) & (graded["lowest_accepted"] < delta + width)
    rows = []
    for name, part in (("near", graded[near]), ("above", graded[graded["lowest_accepted"] >= delta + width])):
        right, n = int(part["correct"].sum()), len(part)
        low, high = wilson(right, n) if n else (np.nan, np.nan)
        share = right / n if n else np.nan
        rows.append(
            {"smallest": name, "solutions": n, "right": right, "share": share, "share_low": low, "share_high": high}
        )
    return pd.DataFrame(rows)


def _edges(steps: "pd.DataFrame", bins: int | Sequence[float]) -> npt.NDArray[np.float64]:
    if not isinstance(bins, int):
        return np.array(bins, dtype=np.float64)
    rewards = steps["reward"].to_numpy(dtype=np.float64)
    within = not len(rewards) or (rewards.min() >= 0 and rewards.max() <= 1)
    low, high = (0.0, 1.0) if within else (float(rewards.min()), float(rewards.max()))
    return np.linspace(low, high, bins + 1)


def _places(steps: "pd.DataFrame", edges: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """The bin that each step's reward lies in; -1 or the number of bins outside of them."""
    rewards = steps["reward"].to_numpy(dtype=np.float64)
    places: npt.NDArray[np.int64] = np.searchsorted(edges, rewards, side="right") - 1
    places[rewards == edges[-1]] = len(edges) - 2
    return places
