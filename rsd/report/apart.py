"""Names that tell runs apart: the method in a few words, and of runs that share these, in what they differ.

told_apart([run.row, other.row])    # ["rsd binary delta=0.7, prm=tiny_m", "rsd binary delta=0.7, prm=tiny_s"]
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]

CHOICES = ("model", "prm", "temperature", "top_p", "seed", "tag")


def told_apart(rows: Sequence[Row], shown: Sequence[str] = ()) -> list[str]:
    """A name for each of `rows`, which are rows of ``load(rows="runs")``. `shown`: columns that stand beside it.

    What is off or unset is not named. Runs that differ in nothing that the configuration says, but in their data or
    weights, bear the hash of their run id."""
    alike: defaultdict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        alike[_looks(row, shown)].append(row)
    names = [_name(row, alike[_looks(row, shown)]) for row in rows]
    often = Counter((*_looks(row, shown), name) for row, name in zip(rows, names, strict=True))
    return [
        name if often[*_looks(row, shown), name] == 1 else f"{name}, {row['run_id'].rpartition('-')[2]}"
        for row, name in zip(rows, names, strict=True)
    ]


def _looks(row: Row, shown: Sequence[str]) -> tuple[Any, ...]:
    return tuple(row[column] for column in ("benchmark", "name", *shown))


def _name(row: Row, alike: Sequence[Row]) -> str:
    others = [_settings(other) for other in alike]
    differing = [
        f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}"
        for key, value in _settings(row).items()
        if value is not None and value is not False and any(other.get(key) != value for other in others)
    ]
    return ", ".join([row["name"], *differing])


def _settings(row: Row) -> dict[str, Any]:
    limits = {f"limits.{name}": limit for name, limit in row["limits"].items()}
    return {**{name: row[name] for name in CHOICES}, **limits, **row["settings"]}
