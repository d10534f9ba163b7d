"""Which rows and columns a table of the paper has, and which runs fill them.

    for row in rows(TABLES["table2"], "tiny"):
        row.labels, row.runs      # {"method": "RSD", "setting": "delta*", …}, one run's words for each threshold

With ``preset=paper`` the rows are the paper's own, each with the numbers that it prints; with another preset, those of
the runs that the table's experiment asks for, in the order of the paper.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rsd.report.names import words
from rsd.report.paper import BENCHMARKS, numbers
from rsd.report.wanted import Words, asked, composed, experiments, preset

PAPER = "paper"  # the preset with the paper's models
FIXED = 0.7  # the threshold of rows that choose none
SUMS = ("Avg", "diff_vs_single_target")  # columns behind those of the benchmarks
RANKS = {"single": 0, "speculative": 2, "rsd": 3}  # the others stand between a model alone and speculative decoding


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A table: `benchmarks` names the list of a preset that its columns are, `experiments` those that ask for its
    runs, of which the first that there is counts. `starred`: a row for δ = 0.7 and one for δ* in place of one for each
    threshold. `baseline`: the model alone that every row is compared with."""

    name: str
    title: str
    experiments: tuple[str, ...]
    benchmarks: str = "benchmarks"
    starred: bool = False
    baseline: Literal["target", "draft"] = "target"

    @property
    def labels(self) -> list[str]:
        """Columns that say what a row is, as the paper has them."""
        columns = [column for column in numbers(self.name)[0] if column not in ("quality", "run", *SUMS)]
        return [column for column in columns if column not in BENCHMARKS]

    @property
    def columns(self) -> list[str]:
        """The paper's columns of numbers that are no benchmark's: the average, and the difference of averages."""
        return [column for column in SUMS if column in numbers(self.name)[0]]

    @property
    def shows_benchmarks(self) -> bool:
        """Whether the paper gives more than the average (Table 4 does not)."""
        return any(column in BENCHMARKS for column in numbers(self.name)[0])

    @property
    def experiment(self) -> str:
        """The experiment that asks for its runs."""
        return next(name for name in self.experiments if name in experiments())


TABLES = {
    layout.name: layout
    for layout in (
        Layout(name="table2", title="Table 2. Reasoning benchmarks", experiments=("table2",), starred=True),
        Layout(
            name="table3", title="Table 3. RSD against search", experiments=("table3",), benchmarks="search_benchmarks",
            baseline="draft",
        ),
        Layout(name="table4", title="Table 4. Merged models", experiments=("table4", "table5")),
        Layout(name="table5", title="Table 5. Process reward models", experiments=("table5",)),
        Layout(
            name="tableB1", title="Table B.1. Further benchmarks", experiments=("tableB1",),
            benchmarks="other_benchmarks",
        ),
        Layout(name="tableB2", title="Table B.2. Thresholds", experiments=("tableB2",)),
        Layout(name="tableB3", title="Table B.3. Merged models, by benchmark", experiments=("tableB3", "table5")),
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A configuration. `runs`: the words of its runs; of several, the threshold is chosen among them. `baseline`: the
    words of the run that it is compared with. `paper`: what the paper prints for it, if it has such a row."""

    labels: Mapping[str, str]
    runs: tuple[Words, ...]
    baseline: Words
    paper: Mapping[str, str]

    @property
    def starred(self) -> bool:
        """Whether its threshold is chosen."""
        return len(self.runs) > 1


def columns(layout: Layout, chosen: str) -> dict[str, str]:
    """{heading: benchmark} of the table with the preset `chosen`; headings are the paper's where it has any."""
    headings = {benchmark: column for column, benchmark in BENCHMARKS.items()}
    return {headings.get(name, name): name for name in preset(chosen)[layout.benchmarks]}


def rows(layout: Layout, chosen: str, overrides: Sequence[str] = ()) -> list[Row]:
    """The rows of the table with the preset `chosen`, under further `overrides`. Raises ConfigError."""
    large, large_n = (str(preset(chosen).get(key)) for key in ("large", "large_n"))

    def block(run: Words) -> str:
        """The model whose target the run is compared with: of the most samples, that of the large pair."""
        told = dict(word.split("=", 1) for word in run)
        sampled = told["method"] in ("majority", "best_of_n") and told.get("method.n") == large_n
        return large if sampled else told["model"]

    def row(labels: Mapping[str, str], runs: Sequence[Words], paper: Mapping[str, str]) -> Row:
        role = "" if layout.baseline == "target" else "method.role=draft"
        baseline = (f"model={block(runs[0])}", "method=single", role) if runs else ()
        return Row(labels=labels, runs=tuple(runs), baseline=(*filter(None, baseline), *overrides), paper=paper)

    if chosen == PAPER:
        return [
            row({label: printed[label] for label in layout.labels}, _swept(printed["run"], overrides), printed)
            for printed in numbers(layout.name)
        ]
    every = dict.fromkeys(run.words for run in asked(layout.experiment, f"preset={chosen}", *overrides))
    made = []
    for group in _groups(list(every)) if layout.starred else [[run] for run in every]:
        fixed = [run for run in group if f"delta={FIXED}" in run] if len(group) > 1 else group
        made += [row(words(composed(run)), [run], {}) for run in fixed]
        if len(group) > 1:
            made.append(row({**words(composed(group[0])), "setting": "delta*"}, group, {}))
    blocks = list(dict.fromkeys(preset(chosen)["all_pairs"]))

    def place(made: Row) -> tuple[int, int, bool]:
        model = made.baseline[0].partition("=")[2]
        return blocks.index(model) if model in blocks else len(blocks), _rank(made.runs[0]), made.starred

    return sorted(made, key=place)


def _swept(run: str, overrides: Sequence[str]) -> list[Words]:
    """The runs that a row of the paper names: one for each of several thresholds."""
    if not run:
        return []
    told = dict(word.split("=", 1) for word in run.split())
    deltas = told["delta"].split(",") if "delta" in told else [None]
    every = [{**told, "delta": delta} if delta else told for delta in deltas]
    return [(*(f"{key}={value}" for key, value in one.items()), *overrides) for one in every]


def _groups(runs: Sequence[Words]) -> list[list[Words]]:
    """Runs that differ in the threshold only, together."""
    groups: dict[Words, list[Words]] = {}
    for run in runs:
        groups.setdefault(tuple(word for word in run if not word.startswith("delta=")), []).append(run)
    return list(groups.values())


def _rank(run: Words) -> int:
    method = next(word.partition("=")[2] for word in run if word.startswith("method="))
    return RANKS.get(method, 1)
