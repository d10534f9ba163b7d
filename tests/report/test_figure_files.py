"""Figures as files: all are written whatever runs there are, as vectors, with a caption, and readable."""

import inspect
import itertools
import re
import zlib
from functools import partial
from math import isnan
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from rsd.identity import run_id
from rsd.report import load
from rsd.report.figures import FIGURES, fig3, fig5, source_of, style, write_all
from rsd.report.figures.source import Source
from rsd.report.wanted import composed, preset
from rsd.sweep.compose import configuration
from tests.hand_made import contrasted, source_in
from tests.stored import manifest, record, store

NAMES = list(FIGURES)
RECORDS = [record("a", contrasted(0.9, True, 0.8))]


class Gallery(dict[str, Figure]):
    """The figures of a source by name, each drawn once."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def __missing__(self, name: str) -> Figure:
        data, draw = FIGURES[name]
        with style.styled():
            self[name] = draw(data(self.source))
            self[name].draw_without_rendering()
        return self[name]


@pytest.fixture(scope="module")
def by_hand(tmp_path_factory: pytest.TempPathFactory) -> Gallery:
    return Gallery(source_in(tmp_path_factory.mktemp("results")))


@pytest.fixture(scope="module")
def without_runs(tmp_path_factory: pytest.TempPathFactory) -> Gallery:
    """The paper's layout before the first run."""
    stored = partial(load, tmp_path_factory.mktemp("results"))
    with configuration():
        chosen = preset("paper")
    return Gallery(Source(stored, chosen, lambda experiment: stored(), paper=True))


def words(figure: Figure) -> str:
    return " ".join(" ".join(text.get_text() for text in figure.findobj(Text)).split())


def test_every_figure_is_written_also_without_a_run(tmp_path: Path) -> None:
    with configuration():
        paths = write_all(partial(load, tmp_path), tmp_path / "figures", "paper")
    assert {path.name for path in paths} == {f"{name}.{kind}" for name in NAMES for kind in ("png", "pdf", "csv")}
    assert all(path.stat().st_size for path in paths)
    for name in NAMES:
        assert is_vector((tmp_path / f"figures/{name}.pdf").read_bytes()), name
        columns = pd.read_csv(tmp_path / f"figures/{name}.csv").columns
        assert len(columns) > 1, f"{name}: its headings stand also without rows"
    assert len(pd.read_csv(tmp_path / "figures/fig5.csv")) == 11, "the paper's thresholds"


def is_vector(pdf: bytes) -> bool:
    """Whether a page holds paths and fonts, and no picture."""
    streams = [zlib.decompress(found) for found in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL)[:1]]
    assert streams, "a page has content"
    return b"/Subtype /Image" not in pdf and b"/FontFile2" in pdf


@pytest.mark.parametrize("name", [name for name in NAMES if name != "omega"])
def test_a_figure_without_runs_says_so_in_its_plot_area(without_runs: Gallery, by_hand: Gallery, name: str) -> None:
    figure = without_runs[name]
    inside = [text.get_text() for ax in figure.findobj(Axes) for text in ax.texts]
    assert any("no run yet of" in text for text in inside)
    if name != "figB2":  # by hand there is no large pair
        assert "no run yet of" not in words(by_hand[name])


@pytest.mark.parametrize(
    ("runs", "name"),
    [("by_hand", name) for name in NAMES] + [("without_runs", name) for name in ("fig4", "fig5", "fig6", "figB1")],
)
def test_no_words_overlap_or_leave_the_page(request: pytest.FixtureRequest, runs: str, name: str) -> None:
    figure = request.getfixturevalue(runs)[name]
    boxes = [(text.get_text(), text.get_window_extent()) for text in shown(figure)]
    assert len(boxes) > 5
    page = figure.bbox.padded(2)
    assert not [text for text, box in boxes if not (page.contains(box.x0, box.y0) and page.contains(box.x1, box.y1))]
    pairs = itertools.combinations(boxes, 2)
    assert not [(one, other) for (one, first), (other, second) in pairs if overlap(first, second)]


@pytest.mark.parametrize("name", NAMES)
def test_everything_drawn_lies_within_the_axes(by_hand: Gallery, name: str) -> None:
    figure = by_hand[name]
    points = 0
    for ax in figure.findobj(Axes):
        (left, right), (bottom, top) = sorted(ax.get_xlim()), sorted(ax.get_ylim())
        for line in (line for line in ax.lines if line.get_transform() == ax.transData):
            for x, y in line.get_xydata():
                points += 1
                assert isnan(x + y) or (left <= x <= right and bottom <= y <= top), (x, y)
    assert points or name in {"fig3", "rewards"}, "of bars and steps only"
    assert not figure.findobj(lambda artist: artist.get_rasterized())


def shown(figure: Figure) -> list[Text]:
    """The texts that are drawn; axes also keep labels of ticks beyond their ends."""
    beyond = set()
    for axis in itertools.chain.from_iterable((ax.xaxis, ax.yaxis) for ax in figure.findobj(Axes)):
        low, high = sorted(axis.get_view_interval())
        ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
        beyond |= {label for tick in ticks if not low <= tick.get_loc() <= high for label in (tick.label1, tick.label2)}
    texts = [text for text in figure.findobj(Text) if text not in beyond]
    return [text for text in texts if text.get_visible() and text.get_text().strip()]


def overlap(first: Bbox, second: Bbox) -> bool:
    both = Bbox.intersection(first, second)
    return both is not None and both.width > 1 and both.height > 1


@pytest.mark.parametrize("name", NAMES)
def test_what_is_plotted_is_defined_beneath(by_hand: Gallery, name: str) -> None:
    data, _ = FIGURES[name]
    module = inspect.getmodule(data.func if isinstance(data, partial) else data)
    assert module is not None
    definition = style.caption(module.__doc__)
    assert len(definition) > 80
    assert definition in words(by_hand[name])


def test_the_same_runs_give_the_same_bytes(by_hand: Gallery, tmp_path: Path) -> None:
    with style.styled():
        frame = fig5.data(by_hand.source)
        first, second = (style.save(fig5.draw(frame), frame, tmp_path / name / "fig5") for name in "ab")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert is_vector(first[1].read_bytes())


def test_a_figures_runs_are_those_that_its_experiment_asks_for(tmp_path: Path) -> None:
    names = []
    with configuration():
        for overrides in ((), ("limits.steps=9",), ("seed=1",)):
            asked = composed(("model=tiny", "prm=tiny_m", "delta=0.7", "score_target=all", *overrides))
            identity = {**(asked.identity or {}), "benchmark": {"name": "tiny_chain", "data": "hash"}}
            names.append(run_id(identity, asked.config, asked.method))
            told = manifest("tiny_chain", settings=dict(asked.method.settings), model="tiny")
            told["config"]["benchmark"] = asked.config.benchmark
            store(tmp_path, names[-1], RECORDS, {"a"}, {**told, "identity": identity})
        frame = fig3.data(source_of(partial(load, tmp_path), "tiny"))
        other = fig3.data(source_of(partial(load, tmp_path), "tiny", ["seed=1"]))
    assert frame["run_id"].unique().tolist() == [names[0]]
    assert other["run_id"].unique().tolist() == [names[2]]
    assert frame.iloc[0]["contexts"] == 1
