"""Figures 3 and B.2: rewards of the draft's and the target's steps in the same context, and who wins.

In each context that RSD came to, the PRM scored the draft's step and one that the target wrote there, kept or not
(score_target=all). Top: their mean rewards at each position in the response; middle: the mean difference in the same
context, 0 where both wrote the same text; bands: 95% intervals (mean ± 1.96 s/√n). Bottom: share of contexts in which
the target's step has the higher reward, the draft's has, or neither: the steps are the same text, or their rewards
are equal. Right solutions: those with the right final answer. Positions with fewer than 10 contexts are not drawn.

    frame = data(source)               # Figure 3: the pair; Figure B.2: data(source, "figB2"), the large pair
    figure = draw(frame)
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from rsd.report.figures import style
from rsd.report.figures.cells import RUN, partial
from rsd.report.figures.names import name
from rsd.report.figures.source import Source

FEWEST = 10  # contexts at a position that is drawn
MEANS = [f"{what}{end}" for what in ("draft_reward", "target_reward", "difference") for end in ("", "_low", "_high")]
COLUMNS = ["solutions", "position", *RUN, "contexts", *MEANS, "target_wins", "ties", "draft_wins", "run_id"]
PRINTED = {"fig3": "62.7 : 37.3 and 56.6 : 43.4", "figB2": "60.2 : 39.8 and 57.6 : 42.4"}
WINS = {
    "target_wins": ("target's reward higher", style.TARGET),
    "ties": ("same step or equal reward", style.LIGHT),
    "draft_wins": ("draft's reward higher", style.DRAFT),
}


def data(source: Source, experiment: str = "fig3") -> pd.DataFrame:
    """One row for each position (from 1) and one for all (missing), of `solutions` all and right; wins are counts.

    `difference`: mean of the target's reward less the draft's in the same context.
    """
    runs = source.choose(experiment)
    steps = source.rows("proposals", runs)
    told = [diagnostic or {} for diagnostic in steps["diagnostic"]]
    steps["target_reward"] = pd.Series([one.get("target_reward") for one in told], steps.index, dtype=float)
    steps["same"] = pd.Series([one.get("same_text", False) for one in told], steps.index, dtype=bool)
    steps = steps[steps["accepted"].notna() & steps["reward"].notna() & steps["target_reward"].notna()]
    verdicts = source.rows("solutions", runs)[["run_id", "question_id", "sample", "correct"]]
    steps = steps.merge(verdicts, on=["run_id", "question_id", "sample"])
    rows = []
    for _, run in runs.iterrows():
        own = {"configuration": name(run), **run[["benchmark", *RUN[2:], "run_id"]]}
        of = steps[steps["run_id"] == run["run_id"]]
        for solutions, some in (("all", of), ("right", of[of["correct"]])):
            rows += [{"solutions": solutions, **own, **row} for row in _by_position(some)]
    frame = pd.DataFrame(rows, columns=COLUMNS)
    return frame.assign(paper_wins=PRINTED[experiment]) if source.paper else frame


def _by_position(steps: pd.DataFrame) -> Iterator[dict[str, float]]:
    """What happened at each position, and at all of them together."""
    difference = (steps["target_reward"] - steps["reward"]).where(~steps["same"], 0.0)
    steps = steps.assign(draft_reward=steps["reward"], difference=difference)
    for position, of in [(np.nan, steps), *steps.groupby("step")]:
        row = {"position": position + 1, "contexts": len(of)}
        for quantity in ("draft_reward", "target_reward", "difference"):
            mean, half = of[quantity].mean(), 1.96 * of[quantity].std() / np.sqrt(max(len(of), 1))
            row |= {quantity: mean, f"{quantity}_low": mean - half, f"{quantity}_high": mean + half}
        won, lost = int((of["difference"] > 0).sum()), int((of["difference"] < 0).sum())
        yield {**row, "target_wins": won, "ties": len(of) - won - lost, "draft_wins": lost}


def draw(frame: pd.DataFrame) -> Figure:
    """Rewards above wins, of all solutions beside right ones."""
    printed = frame["paper_wins"].dropna().unique() if "paper_wins" in frame else []
    note = "".join(
        f" The paper gives wins of {wins}; which pair is of right solutions is not certain." for wins in printed
    )
    options = {"sharex": True, "sharey": "row", "height_ratios": [1.2, 1, 1]}
    plots, axes = style.subplots(__doc__, 3, 2, height=5.0, note=partial(frame, marks=False) + note, **options)
    style.heading(plots, frame)
    for (rewards, gains, wins), solutions in zip(axes.T, ("all", "right"), strict=True):
        of = frame[frame["solutions"] == solutions]
        total = of[of["position"].isna()]
        steps = of[of["position"].notna() & (of["contexts"] >= FEWEST)].astype({"position": int})
        rewards.set_title(f"{solutions} solutions" + "".join(_told(row) for _, row in total.iterrows()))
        style.line(rewards, steps, "position", "draft_reward", color=style.DRAFT, label="draft's step", linewidth=2.6)
        style.line(
            rewards, steps, "position", "target_reward", color=style.TARGET, label="target's step", linestyle="--"
        )
        gains.axhline(0, color=style.GREY, linewidth=0.8)
        style.line(gains, steps, "position", "difference", color=style.BLUE, label="difference", marker="s")
        below = np.zeros(len(steps))
        for column, (label, color) in WINS.items() if len(steps) else ():
            height = (steps[column] / steps["contexts"]).astype(float)
            wins.bar(steps["position"], height, 0.8, below, color=color, label=label, edgecolor="white", linewidth=0.5)
            below += height.to_numpy()
        wins.set(xlabel="position of the step in the response", ylim=(0, 1))
        wins.xaxis.get_major_locator().set_params(integer=True)
        style.percent(wins)
        if of.empty:
            style.empty(rewards, "RSD with score_target=all")
        elif steps.empty:
            style.write(rewards, f"fewer than {FEWEST} contexts\nat every position")
    axes[0, 0].set_ylabel("mean reward")
    axes[1, 0].set_ylabel("target's less\ndraft's reward")
    axes[2, 0].set_ylabel("share of contexts")
    style.legend(plots, axes, ncols=3)
    return plots.figure


def _told(total: pd.Series) -> str:
    """How all positions together went: contexts, in how many one wins, and who."""
    won, lost, contexts = total["target_wins"], total["draft_wins"], total["contexts"]
    if not won + lost:
        return f", {contexts:,} contexts"
    shares = [f"{role} {100 * of / (won + lost):.1f}%" for role, of in (("target", won), ("draft", lost))]
    return f", {contexts:,} contexts\none wins in {100 * (won + lost) / contexts:.1f}%; of these, {', '.join(shares)}"
