"""The paper's figures from stored runs, each with its data beside it.

    with configuration():
        write_all(partial(load, "results"), Path("results/figures/tiny"), "tiny")

A figure is a module with `data(source) -> DataFrame`, all numbers that are drawn, and `draw(frame) -> Figure`. What
it shows is defined in its docstring, which stands under it as the caption.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from rsd.report.figures import (
    fig3,
    fig4,
    fig4_gpu_seconds,
    fig4_seconds,
    fig5,
    fig6,
    fig_b1,
    omega,
    reliability,
    rewards,
)
from rsd.report.figures.source import Load, Source
from rsd.report.figures.style import save, styled
from rsd.report.wanted import Index, asked, preset

Drawing = tuple[Callable[[Source], pd.DataFrame], Callable[[pd.DataFrame], Figure]]

FIGURES: dict[str, Drawing] = {
    "omega": (omega.data, omega.draw),
    "fig3": (fig3.data, fig3.draw),
    "fig4": (fig4.data, fig4.draw),
    "fig4_seconds": (fig4_seconds.data, fig4_seconds.draw),
    "fig4_gpu_seconds": (fig4_gpu_seconds.data, fig4_gpu_seconds.draw),
    "fig5": (fig5.data, fig5.draw),
    "fig6": (fig6.data, fig6.draw),
    "figB1": (fig_b1.data, fig_b1.draw),
    "figB2": (partial(fig3.data, experiment="figB2"), fig3.draw),
    "reliability": (reliability.data, reliability.draw),
    "rewards": (rewards.data, rewards.draw),
}
PAPER = "paper"  # the preset whose figures stand beside the paper's


def write_all(load: Load, folder: Path, chosen: str, overrides: Sequence[str] = ()) -> list[Path]:
    """Write every figure of the preset `chosen` into `folder`, as ``<name>.png``, ``.pdf`` and ``.csv``.

    `load`: `rsd.report.load` with its folder bound. `overrides`: of the experiments, as on the command line. A figure
    without runs says so in its plot area. Returns the paths. Needs `rsd.sweep.compose.configuration` around it.
    """
    source = source_of(load, chosen, overrides)
    paths = []
    with styled():
        for name, (data, draw) in FIGURES.items():
            frame = data(source)
            paths += save(draw(frame), frame, folder / name)
    return paths


def source_of(load: Load, chosen: str, overrides: Sequence[str] = ()) -> Source:
    """What `write_all` draws from."""
    runs = load(rows="runs")
    index = Index(runs)

    @cache
    def wanted(experiment: str) -> pd.DataFrame:
        found = [index.find(run) for run in asked(experiment, f"preset={chosen}", *overrides)]
        return pd.DataFrame([row for row in found if row is not None], columns=runs.columns).astype(runs.dtypes)

    return Source(load, preset(chosen), wanted, paper=chosen == PAPER)
