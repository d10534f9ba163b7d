"""How every figure looks: one palette, one colour for each method, captions, and files beside each other.

    plots, axes = subplots(__doc__, 1, 2, height=2.4)
    save(plots.figure, data, Path("results/figures/fig5"))   # fig5.png, fig5.pdf, fig5.csv

The colours are Okabe and Ito's (jfly.uni-koeln.de/color), told apart with any common colour vision deficiency; marks,
line styles and labels say the same a second time.
"""

import textwrap
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy.typing as npt
import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from rsd.report.figures.names import title

GREY, LIGHT = "#767676", "#C8C8C8"
ORANGE, GREEN, BLUE, PURPLE, OLIVE = "#E69F00", "#009E73", "#0072B2", "#CC79A7", "#A08C00"
DRAFT, TARGET, RSD = "#56B4E9", "#000000", "#D55E00"
METHODS = {  # colour and mark, by the words of `rsd.report.figures.names`
    "Draft": (DRAFT, "v"),
    "Target": (TARGET, "^"),
    "SD": (GREY, "P"),
    "RSD": (RSD, "o"),
    "RSD+SD": (PURPLE, "h"),
    "Majority": (ORANGE, "D"),
    "BoN": (GREEN, "s"),
    "Process BoN": (OLIVE, "X"),
    "Beam": (BLUE, "*"),
}
WEIGHTINGS = {"constant": ORANGE, "binary": RSD, "clipping": GREEN, "sigmoidal": BLUE, "logistic": PURPLE}
RIGHT, WRONG = BLUE, ORANGE  # of answers

WIDTH = 7.0  # inches, the width of a page's text
CAPTION = 7  # points
CHARACTERS = 132  # in a line of the caption
LINE = 0.128  # inches that it takes
STYLE: Any = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, and has δ and ω
    "font.size": 8,
    "axes.titlesize": 8,
    "figure.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.3,
    "lines.markersize": 4.5,
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "pdf.fonttype": 42,  # text stays text, in embedded TrueType
    "savefig.dpi": 200,
}


def styled() -> AbstractContextManager[None]:
    """Everything drawn and written within is in this style."""
    return rc_context(STYLE)


def caption(doc: str | None) -> str:
    """What a figure shows: the second paragraph of its module's docstring."""
    return " ".join((doc or "").split("\n\n")[1].split())


def subplots(
    doc: str | None, rows: int, columns: int, *, height: float, note: str = "", **options: Any
) -> tuple[SubFigure, npt.NDArray[Any]]:
    """A figure as wide as a page with `rows` x `columns` axes, `height` inches of them, over the caption in `doc`.

    `note` follows the caption; `options` go to `Figure.subplots`.
    """
    text = " ".join(f"{caption(doc)} {note}".split()).replace(" = ", "\u00a0=\u00a0")
    text = textwrap.fill(text, CHARACTERS, break_on_hyphens=False)
    below = LINE * (text.count("\n") + 1) + 0.08
    figure = Figure(figsize=(WIDTH, height + below), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.08)  # type: ignore[union-attr, call-arg]
    plots, words = figure.subfigures(2, 1, squeeze=False, height_ratios=[height, below], hspace=0).flat
    words.text(0.01, 0.98, text, fontsize=CAPTION, color="#333333", va="top", linespacing=1.3)
    return plots, plots.subplots(rows, columns, squeeze=False, **options)


def heading(plots: SubFigure, runs: pd.DataFrame, *, configurations: bool = True) -> None:
    """Name the benchmark, and the configurations, above the axes."""
    named = [title(benchmark) for benchmark in runs["benchmark"].dropna().unique()]
    plots.suptitle(", ".join([*named, *(runs["configuration"].dropna().unique() if configurations else [])]))


def legend(plots: SubFigure, axes: npt.NDArray[Any], **options: Any) -> None:
    """One legend for all `axes`, below them: each label once."""
    entries = {label: handle for ax in axes.flat for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    if entries:
        options = {"loc": "outside lower center", "ncols": min(len(entries), 5), **options}
        plots.legend(entries.values(), entries.keys(), **options)


def empty(axes: Axes, what: str) -> None:
    """Say in the plot area that there is no run to show yet, and `what` it would be."""
    write(axes, f"no run yet of\n{what}")
    if not axes.has_data():
        axes.tick_params(axis="x", labelbottom=False)


def write(axes: Axes, text: str) -> None:
    """Write something into the plot area, at the bottom."""
    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 2}
    place: dict[str, Any] = {"ha": "center", "va": "bottom", "transform": axes.transAxes, "zorder": 5}
    axes.text(0.5, 0.06, text, color=GREY, bbox=box, **place)


def line(axes: Axes, data: pd.DataFrame, x: str, y: str, *, color: str, label: str, **options: Any) -> None:
    """Our points of `y` over `x`, joined, in a band from `<y>_low` to `<y>_high`; grey where the run is partial."""
    data = data[data[y].notna()].astype({x: float, y: float})
    if data.empty:
        return
    options = {"marker": "o", "zorder": 3, **options}
    axes.plot(data[x], data[y], color=color, label=label, **options)
    axes.fill_between(
        data[x], data[f"{y}_low"].astype(float), data[f"{y}_high"].astype(float), color=color, alpha=0.15, linewidth=0
    )
    part = data[data["complete"].eq(False)]
    grey = {**options, "markerfacecolor": LIGHT, "linestyle": "none", "zorder": 4}
    axes.plot(part[x], part[y], color=color, **grey)


def point(axes: Axes, data: pd.DataFrame, x: str, y: str, *, bars: bool = True, **look: Any) -> None:
    """Our points of `y` over `x`, with bars from `<y>_low` to `<y>_high`; a grey face where the run is partial.

    `look` needs a `color`, and a `label` where the legend is to name them.
    """
    look = {"marker": "o", "markersize": 6, "elinewidth": 0.9, "linestyle": "none", "zorder": 3, **look}
    data = data[data[x].notna() & data[y].notna()].astype({x: float, y: float})
    for complete, of in data.groupby(data["complete"].astype(bool)):
        face = {} if complete else {"markerfacecolor": LIGHT, "markeredgecolor": look["color"]}
        ends = [(of[y] - of[f"{y}_low"]).astype(float), (of[f"{y}_high"] - of[y]).astype(float)]
        axes.errorbar(of[x], of[y], ends if bars else None, ecolor=(look["color"], 0.5), **{**look, **face})
        look["label"] = None


def printed(axes: Axes, data: pd.DataFrame, x: str, y: str, *, color: str, label: str | None = "paper") -> None:
    """The paper's points: hollow diamonds, dotted."""
    if y not in data or data[y].isna().all():
        return
    data = data[data[y].notna()].astype({x: float, y: float})
    axes.plot(data[x], data[y], color=color, label=label, marker="D", markerfacecolor="white", linestyle=":", zorder=2)


def alone(axes: Axes, frame: pd.DataFrame, y: str = "accuracy") -> None:
    """Draft and target alone (`line` draft, target) as lines across, with bands of their intervals."""
    for role, color, pattern in (("draft", DRAFT, "--"), ("target", TARGET, "-.")):
        for _, run in frame[(frame["line"] == role) & frame[y].notna()].iterrows():
            axes.axhline(run[y], color=color, linestyle=pattern, label=f"{role} alone", zorder=1, linewidth=1.1)
            axes.axhspan(run[f"{y}_low"], run[f"{y}_high"], color=color, alpha=0.08, linewidth=0)


def percent(axes: Axes, which: str = "y") -> None:
    """Label shares as percentages."""
    axis = axes.yaxis if which == "y" else axes.xaxis
    axis.set_major_formatter(lambda share, _: f"{round(100 * share, 1):g}%")


def save(figure: Figure, data: pd.DataFrame, stem: Path) -> list[Path]:
    """Write ``stem.png``, ``stem.pdf`` and the data as ``stem.csv``; the same data give the same bytes."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    png, pdf, csv = (stem.with_name(f"{stem.name}.{kind}") for kind in ("png", "pdf", "csv"))
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # laid out once, for both
    figure.savefig(png, metadata={"Software": None})
    figure.savefig(pdf, metadata={"CreationDate": None})
    data.to_csv(csv, index=False, float_format="%.10g", lineterminator="\n")
    return [png, pdf, csv]
