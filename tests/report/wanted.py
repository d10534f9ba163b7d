"""Stored runs under the ids that tables ask for, and the lines of what is written of them."""

import csv
from collections.abc import Iterable
from pathlib import Path

from rsd.identity import run_id
from rsd.records import Record
from rsd.report.tables.cells import Stored
from rsd.report.tables.write import write_tables
from rsd.report.wanted import composed, ordered
from rsd.sweep.compose import configuration
from tests.stored import manifest, proposal, record, store

FILES = {f"table{name}.{kind}" for name in (1, 2, 3, 4, 5, 6, "B1", "B2", "B3") for kind in ("csv", "md")}
TARGET = "model=tiny method=single"
DRAFT = "model=tiny method=single method.role=draft"
SD = "model=tiny method=speculative"
RSD = "model=tiny method=rsd prm=tiny_s delta={}"


def write(
    results: Path, words: str, right: set[str], records: Iterable[Record], benchmark: str = "tiny_chain", size: int = 3
) -> Path:
    """Store what the run of `words` would have left, under the id that it would have."""
    with configuration():
        known = composed(ordered(words.split()))
    assert known.identity is not None
    identity = {**known.identity, "benchmark": {"name": benchmark, "data": "by hand"}}
    told = manifest(
        benchmark=benchmark, size=size, name=known.method.name, settings=dict(known.method.settings), identity=identity,
        model=known.config.model.name, prm=known.config.prm.name if "prm" in known.method.roles else None,
        config=known.config.model_dump(mode="json"),
    )  # fmt: skip
    return store(results, run_id(identity, known.config, known.method), records, right, told)


def answers(questions: Iterable[str]) -> list[Record]:
    return [record(question, proposal("target", 4)) for question in questions]


def golden(results: Path) -> Path:
    """Twelve records: four runs of three questions."""
    write(
        results, TARGET, {"a", "b"},
        [record("a", proposal("target", 20)), record("b", proposal("target", 30)),
         record("c", proposal("target", 70), end_reason="context_limit")],
    )  # fmt: skip
    write(
        results, DRAFT, {"a"},
        [record("a", proposal("draft", 10)), record("b", error="OSError: gone"),
         record("c", proposal("draft", 20), end_reason="repetition")],
    )  # fmt: skip
    write(results, SD, {"a", "b", "c"}, answers("abc"))
    write(
        results, RSD.format(0.7), {"a", "c"},
        [
            record("a", proposal("draft", 10, 0.9, True), proposal("draft", 20, 0.8, True, step=1)),
            record("b", proposal("draft", 10, 0.75, True), end_reason="prm_context"),
            record("c", proposal("draft", 5, 0.3, False), proposal("target", 8),
                   proposal("draft", 10, 0.71, True, step=1), end_reason="max_steps"),
        ],
    )  # fmt: skip
    return results


def report(results: Path) -> None:
    """Write the tables, not the figures."""
    stored = Stored.read(results)
    with configuration():
        write_tables(stored, "paper", (), results / "tables")
        write_tables(stored, "tiny", (), results / "tables" / "tiny")


def lines(results: Path, table: str, preset: str = "tiny") -> list[dict[str, str]]:
    path = results / "tables" / ("" if preset == "paper" else preset) / f"{table}.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def line(results: Path, table: str, preset: str = "tiny", **labels: str) -> dict[str, str]:
    """The one line with these labels."""
    (found,) = [row for row in lines(results, table, preset) if labels.items() <= row.items()]
    return found
