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
from rsd.report.wanted import Words, asked, composed, ordered, preset

PAPER = "paper"  # the preset with the paper's models
FIXED = 0.7  # the threshold of rows that choose none
SUMS = ("Avg", "diff_vs_single_target")  # columns behind those of the benchmarks
RANKS = {"single": 0, "speculative": 2, "rsd": 3}  # the others stand between a model alone and speculative decoding


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A table, whose runs the experiment of the same name asks for: `benchmarks` names the list of a preset that its
    columns are. `starred`: a row for δ = 0.7 and one for δ* in place of one for each threshold. `baseline`: the model
    alone that every row is compared with."""

    name: str
    title: str
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


TABLES = {
    layout.name: layout
    for layout in (
        Layout(name="table2", title="Table 2. Reasoning benchmarks", starred=True),
        Layout(
            name="table3", title="Table 3. RSD against search", benchmarks="search_benchmarks", baseline="draft",
        ),
        Layout(name="table4", title="Table 4. Merged models"),
        Layout(name="table5", title="Table 5. Process reward models"),
        Layout(name="tableB1", title="Table B.1. Further benchmarks", benchmarks="other_benchmarks"),
        Layout(name="tableB2", title="Table B.2. Thresholds"),
        Layout(name="tableB3", title="Table B.3. Merged models, by benchmark"),
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
    role = "" if layout.baseline == "target" else "method.role=draft"

    def row(labels: Mapping[str, str], runs: Sequence[Words], paper: Mapping[str, str]) -> Row:
        alone = [f"model={_block(runs[0], chosen)}", "method=single", role] if runs else []
        baseline = ordered([*filter(None, alone), *overrides]) if runs else ()
        return Row(labels=labels, runs=tuple(runs), baseline=baseline, paper=paper)

    if chosen == PAPER:
        return [
            row({label: printed[label] for label in layout.labels}, swept(printed["run"], overrides), _starred(printed))
            for printed in numbers(layout.name)
        ]
    return [
        row(words(composed(runs[0])) | ({"setting": "delta*"} if len(runs) > 1 else {}), runs, {})
        for runs in runs_of_rows(layout, chosen, overrides)
    ]


def runs_of_rows(layout: Layout, chosen: str, overrides: Sequence[str] = ()) -> list[list[Words]]:
    """The runs behind each row that the table's experiment makes with the preset `chosen`, in the paper's order: by the
    target that they are compared with, then by method."""
    every = list(dict.fromkeys(run.words for run in asked(layout.name, f"preset={chosen}", *overrides)))
    made = [[run] for run in every]
    if layout.starred:
        groups = _by_threshold(every)
        made = [[run] for group in groups for run in group if len(group) == 1 or f"delta={FIXED}" in run]
        made += [group for group in groups if len(group) > 1]
    blocks = list(preset(chosen)["all_pairs"])

    def place(runs: Sequence[Words]) -> tuple[int, int, bool]:
        model = _block(runs[0], chosen)
        method = _told(runs[0])["method"]
        return blocks.index(model) if model in blocks else len(blocks), RANKS.get(method, 1), len(runs) > 1

    return sorted(made, key=place)


def _block(run: Words, chosen: str) -> str:
    """The model whose target the run is compared with: for the most samples, that of the large pair, for merged models
    that of the pair which they are made of."""
    told, names = _told(run), preset(chosen)
    if told["model"] in (names.get("merged_draft"), names.get("merged_target")):
        return str(names.get("pair"))
    sampled = told["method"] in ("majority", "best_of_n") and told.get("method.n") == str(names.get("large_n"))
    return str(names.get("large")) if sampled else told["model"]


def _told(run: Words) -> dict[str, str]:
    return dict(word.split("=", 1) for word in run)


def _starred(printed: Mapping[str, str]) -> Mapping[str, str]:
    """A row of the paper, with the thresholds (``MATH500_delta``) behind its δ*."""
    configuration = ("family", "target", "draft", "prm")
    same = [row for row in numbers("delta_star") if all(row[key] == printed.get(key) for key in configuration)]
    if printed.get("setting") != "delta*" or not same:
        return printed
    return {**printed, **{f"{column}_delta": same[0][column] for column in BENCHMARKS if column in same[0]}}


def swept(run: str, overrides: Sequence[str]) -> list[Words]:
    """The runs that a row of the paper names: one for each of several thresholds."""
    if not run:
        return []
    told = dict(word.split("=", 1) for word in run.split())
    deltas = told["delta"].split(",") if "delta" in told else [None]
    every = [{**told, "delta": delta} if delta else told for delta in deltas]
    return [ordered([*(f"{key}={value}" for key, value in one.items()), *overrides]) for one in every]


def _by_threshold(runs: Sequence[Words]) -> list[list[Words]]:
    """Runs that differ in the threshold only, together."""
    groups: dict[Words, list[Words]] = {}
    for run in runs:
        groups.setdefault(tuple(word for word in run if not word.startswith("delta=")), []).append(run)
    return list(groups.values())
