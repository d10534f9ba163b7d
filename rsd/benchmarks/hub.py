"""A benchmark of the Hugging Face hub, or a local file of it with the hub's columns or those of the public evaluation
files::

    benchmark = HubBenchmark(name="gsm8k", format="gsm8k", hub="openai/gsm8k", config="main", split="test")
    problems = benchmark.problems()

``benchmark.path=FILE`` reads the file instead, without a network; a data set already in the local cache needs none.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from rsd.benchmarks.formats import FORMATS, Item, Row
from rsd.benchmarks.jsonl import JsonLinesBenchmark
from rsd.benchmarks.rows import Hub, hub_rows, load

Format = Literal[
    "math500", "gsm8k", "question_answer", "olympiadbench", "minerva_math",
    "cn_middle_school", "mmlu_stem", "gpqa", "alpaca_eval",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class HubBenchmark(JsonLinesBenchmark):
    """`format` is the function of ``rsd/benchmarks/formats.py`` that reads a row. `hub`, `config` (one or several,
    joined in order), `split` and `revision` name the data set, `file` one file of it; `hub` null: file only."""

    path: str | None = None
    format: Format
    hub: str | None = None
    config: str | tuple[str, ...] | None = None
    split: str = "test"
    revision: str | None = None
    file: str | None = None

    @property
    def source(self) -> Hub | None:
        """The data set on the hub, where there is one."""
        if self.hub is None:
            return None
        configs = (self.config,) if isinstance(self.config, str) else self.config
        return Hub(self.hub, self.split, configs, self.revision, self.file)

    def download(self) -> int:
        """Fetch the data set into the cache; return its number of rows. Raises DataError when it cannot be had."""
        source = self.source
        return (
            0 if source is None else sum(len(load(source, config, self.name)) for config in source.configs or (None,))
        )

    def _rows(self) -> Iterator[tuple[str, Any]]:
        if self.path is not None or self.source is None:
            yield from super()._rows()
        else:
            yield from hub_rows(self.source, self.name)

    def _item(self, row: Row) -> Item:
        return FORMATS[self.format](row)

    def _kept(self, row: Row) -> dict[str, Any]:
        return dict(row)
