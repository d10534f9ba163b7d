"""What figures are made of: the stored runs that experiments ask for, their solutions and steps, the paper's points.

source = Source(load, preset("tiny"), wanted, paper=False) runs = source.choose("fig5", method="rsd") solutions =
source.rows("solutions", runs) source.printed("fig5", "delta", "accuracy_MATH500")
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import pandas as pd

from rsd.report.paper import numbers


class Load(Protocol):
    """`rsd.report.load` with its folder bound."""

    def __call__(self, *, rows: str = "runs", **filters: Any) -> pd.DataFrame: ...


@dataclass(frozen=True)
class Source:
    """`preset`: what its names stand for (``conf/preset/*.yaml``). `wanted`: the stored runs that experiments ask for,
    as rows of `load`. `paper`: whether the paper's own points stand beside ours."""

    load: Load
    preset: Mapping[str, Any]
    wanted: Callable[[str], pd.DataFrame]
    paper: bool

    def choose(self, *experiments: str, **columns: Any) -> pd.DataFrame:
        """The stored runs of some experiments with these values (of a list, any), in order of delta."""
        runs = pd.concat([self.wanted(experiment) for experiment in experiments], ignore_index=True)
        runs = runs.drop_duplicates(["benchmark", "run_id"])
        for name, value in columns.items():
            runs = runs[runs[name].isin(value if isinstance(value, list) else [value])]
        return runs.sort_values(["delta", "run_id"], ignore_index=True)

    def rows(self, kind: str, runs: pd.DataFrame) -> pd.DataFrame:
        """The ``solutions``, ``proposals`` or ``invocations`` of `runs`, all of one benchmark."""
        return self.load(rows=kind, benchmark=list(runs["benchmark"].unique()), run_id=list(runs["run_id"]))

    def printed(self, name: str, *numeric: str) -> pd.DataFrame:
        """The paper's numbers of a figure, the columns `numeric` as numbers, NaN where it has none."""
        frame = pd.DataFrame(numbers(name)).rename(columns={"quality": "paper_quality"})
        frame[[*numeric]] = frame[[*numeric]].apply(pd.to_numeric)
        return frame
