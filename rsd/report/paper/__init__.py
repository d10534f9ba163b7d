"""The paper's own numbers (camera-ready version of arXiv:2501.19324), to stand beside measured ones.

    numbers("table2")        # one dict per row, as printed: {"family": "Qwen2.5-Math-Instruct", …, "MATH500": "83.2"}
    slips("table2")          # where the paper contradicts itself

One CSV per table and figure lies in this folder, with the paper's columns and two more. `quality`: ``exact`` (printed),
``approx`` (read off a plot, or said in words) or ``derived`` (follows from other tables). `run`: the overrides of the
runs behind the row, but for the benchmark, with the values of a threshold that is chosen among them; empty where the
row needs models that no configuration names. ``delta_star.csv`` holds the thresholds behind Table 2's δ*, which are
those of the best accuracy on the test set itself.
"""

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent

BENCHMARKS = {
    "MATH500": "math500",
    "GSM8K": "gsm8k",
    "GaoKao2023En": "gaokao2023en",
    "OlympiadBench": "olympiadbench",
    "GPQA_Diamond": "gpqa_diamond",
    "MMLU_STEM": "mmlu_stem",
    "Minerva_Math": "minerva_math",
    "CN_Middle_School_24": "cn_middle_school",
    "College_Math": "college_math",
}
"""Columns of the paper's tables, and the names of their benchmarks in ``conf/benchmark/``."""

Row = dict[str, str]


@dataclass(frozen=True, slots=True)
class Slip:
    """Something in a table that contradicts the rest of the paper: in the row of `run`, under `column`."""

    run: str
    column: str
    note: str


@cache
def numbers(name: str) -> tuple[Row, ...]:
    """The rows of a table or figure (``table2``, ``tableB1``, ``fig5``, ``delta_star``) as printed: strings, empty
    where nothing is printed. Raises KeyError where the paper has no such table, or none with numbers."""
    path = FOLDER / f"{name}.csv"
    if not path.is_file():
        raise KeyError(name)
    with path.open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


def slips(name: str) -> tuple[Slip, ...]:
    """What is known to be wrong in the paper's table `name`."""
    return tuple(Slip(row["run"], row["column"], row["note"]) for row in numbers("slips") if row["table"] == name)
