"""Which stored runs a figure shows: chosen by what they are, one for each configuration.

    source = Source(load, preset, paper=False)
    runs = source.choose(model="tiny", method="rsd", weighting="binary", benchmark="tiny_chain")
    solutions = source.rows("solutions", runs)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import pandas as pd

from rsd.report.paper import numbers

DEFINING = ["benchmark", "model", "method", "role", "n", "stepwise", "prm", "weighting", "delta"]
SAMPLED = {"sample", "majority", "best_of_n", "process_best_of_n", "beam"}  # at temperature 0.7, the others greedily
DIAGNOSTIC = "score_target"


class Load(Protocol):
    """`rsd.report.load` with its folder and grader bound."""

    def __call__(self, *, rows: str = "runs", **filters: Any) -> pd.DataFrame: ...


@dataclass(frozen=True)
class Source:
    """The stored runs, and the names that `preset` (``conf/preset/*.yaml``) gives to models, PRMs and benchmarks.

    `paper`: the figures are those of the paper's own models, so that its points stand beside ours.
    """

    load: Load
    preset: Mapping[str, Any]
    paper: bool

    @cached_property
    def runs(self) -> pd.DataFrame:
        """All runs of seed 0 and one sample, without a tag."""
        runs = self.load(rows="runs")
        return runs[(runs["seed"] == 0) & (runs["samples"] == 1) & runs["tag"].isna()]

    def choose(self, settings: Mapping[str, Any] | None = None, **columns: Any) -> pd.DataFrame:
        """The runs with these values (of a list, any; None: none), one for each configuration, in order of delta.

        `settings`: what the method's settings must hold besides; runs that also score the target's steps are chosen only
        where it says so. Of several runs of one configuration that at the default temperature counts, then that with most
        questions.
        """
        wanted = {DIAGNOSTIC: None, **(settings or {})}
        runs = self.runs
        for name, value in columns.items():
            values = value if isinstance(value, list) else [value]
            runs = runs[runs[name].isin(values) | (runs[name].isna() & (None in values))]
        held = runs["settings"].map(lambda own: all(own.get(key) == value for key, value in wanted.items()))
        runs = runs[held.astype(bool)]
        default = runs["temperature"] == runs["method"].isin(SAMPLED) * 0.7
        runs = runs.assign(default=default, asked=runs["settings"].map(lambda own: str(sorted(own.items()))))
        runs = runs.sort_values(["default", "questions", "run_id"], ascending=[False, False, True])
        runs = runs.drop_duplicates([*DEFINING, "asked"])
        return runs.drop(columns=["default", "asked"]).sort_values(["delta", "run_id"], ignore_index=True)

    def printed(self, name: str, *numeric: str) -> pd.DataFrame:
        """The paper's numbers of a figure (`rsd.report.paper`), the columns `numeric` as numbers, NaN where it has none."""
        frame = pd.DataFrame(numbers(name)).rename(columns={"quality": "paper_quality"})
        frame[[*numeric]] = frame[[*numeric]].apply(pd.to_numeric)
        return frame

    def rows(self, kind: str, runs: pd.DataFrame) -> pd.DataFrame:
        """The ``solutions``, ``proposals`` or ``invocations`` of `runs`."""
        return self.load(rows=kind, run_id=list(runs["run_id"]))
