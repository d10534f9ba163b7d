"""The weighting functions ω(r) of Table 1, as implemented.

The probability ω(r) that RSD keeps a draft's step of reward r, with the parameters of the paper's Figure 6; a PRM's
rewards lie in the shaded range from 0 to 1.

    frame = data(source)
    figure = draw(frame)
"""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from rsd.report.figures import style
from rsd.report.figures.source import Source
from rsd.weighting import Binary, Clipping, Constant, Evidence, Logistic, Sigmoidal, Weighting

FUNCTIONS: dict[str, tuple[str, Weighting]] = {
    "constant": ("p\np = 0.6", Constant(p=0.6)),
    "binary": ("1(r ≥ δ)\nδ = 0.7", Binary(delta=0.7)),
    "clipping": ("min(1, max(0, r))\n", Clipping()),
    "sigmoidal": ("max(0, r / (1 + r))\n", Sigmoidal()),
    "logistic": ("1 / (1 + exp(−α(r − δ)))\nα = 1, δ = 0.6", Logistic(alpha=1.0, delta=0.6)),
}
REWARDS = np.round(np.arange(-0.5, 1.5 + 0.005, 0.01), 2)


def data(source: Source) -> pd.DataFrame:
    """One row for each reward, one column for each function; no run is needed."""
    columns = {
        name: [function.omega(Evidence(reward=float(reward))) for reward in REWARDS]
        for name, (_, function) in FUNCTIONS.items()
    }
    return pd.DataFrame({"reward": REWARDS, **columns})


def draw(frame: pd.DataFrame) -> Figure:
    """One panel for each function."""
    plots, axes = style.subplots(__doc__, 1, len(FUNCTIONS), height=2.0, sharey=True)
    for ax, (name, (formula, _)) in zip(axes.flat, FUNCTIONS.items(), strict=True):
        ax.axvspan(0, 1, color=style.LIGHT, alpha=0.25, linewidth=0)
        ax.plot(frame["reward"], frame[name], color=style.WEIGHTINGS[name], linewidth=1.8)
        ax.set_title(f"{name}\n{formula}", fontsize=7)
        ax.set(xlabel="reward r", ylim=(-0.04, 1.04), xticks=[0, 0.5, 1], xticklabels=["0", "0.5", "1"])
    axes[0, 0].set_ylabel("ω(r)")
    return plots.figure
