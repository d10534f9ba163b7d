"""A benchmark that is a data set of the Hugging Face hub, or a local file of the same fields::

    benchmark = HubBenchmark(name="gsm8k", hub="openai/gsm8k", config="main", split="test", answer_pattern="#### (.+)")
    problems = benchmark.problems()

``benchmark.path=FILE`` reads JSON lines instead, without a network.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rsd.benchmarks.jsonl import JsonLinesBenchmark
from rsd.errors import DataError


@dataclass(frozen=True, kw_only=True)
class HubBenchmark(JsonLinesBenchmark):
    """`hub`, `config` and `split` name the data set; `path` a local file of it, which comes first."""

    path: str | None = None
    hub: str
    config: str | None = None
    split: str

    def download(self) -> Any:
        """The data set, from the hub or its cache. Raises DataError when neither has it."""
        from datasets import load_dataset  # takes a second to import
        from datasets.utils.logging import disable_progress_bar

        disable_progress_bar()
        try:
            return load_dataset(self.hub, self.config, split=self.split)
        except Exception as error:  # of many kinds: each library below raises its own
            cause = " ".join(str(error).split())[:300]
            raise DataError(
                f"benchmark={self.name}: cannot load {self.hub} from the hub ({cause}); name a local file with "
                f"benchmark.path=FILE, or run python -m rsd.fetch benchmark={self.name} where there is a network."
            ) from error

    def _rows(self) -> Iterator[tuple[str, Any]]:
        if self.path is not None:
            yield from super()._rows()
            return
        for number, row in enumerate(self.download()):
            yield f"benchmark={self.name}: row {number} of {self.hub}", row
