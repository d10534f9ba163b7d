"""Which runs the experiments ask for, and which of them are stored: found by run id, without models or data.

with configuration():
    runs = asked("table2", "preset=tiny")       # [Asked(benchmark="tiny_chain", words={"model": "tiny", …}), …]
    index = Index(load(rows="runs"))
    index.find(runs[0])                         # its row of the frame, or None
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra import compose
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

from rsd.config import RunConfig
from rsd.errors import ModelError
from rsd.identity import identify, run_id
from rsd.methods.base import Method, Selection
from rsd.plan import limits_of, method_of
from rsd.store import read_manifest
from rsd.sweep.compose import Composer
from rsd.sweep.grids import expand

if TYPE_CHECKING:
    import pandas as pd

Words = tuple[str, ...]  # key=value, of a run but for its benchmark, in one order (`ordered`)

FIRST = ("model=", "method", "prm")
USUAL = {"weighting=binary": "", "method.role=target": "method=single"}  # meant where nothing is said, beside a word


def experiments() -> list[str]:
    """Names of all experiments."""
    return sorted(GlobalHydra.instance().config_loader().get_group_options("experiment"))


def presets() -> list[str]:
    """Names of all presets: ``tiny``, ``paper``, and a user's own."""
    return sorted(GlobalHydra.instance().config_loader().get_group_options("preset"))


@cache
def preset(name: str) -> Mapping[str, Any]:
    """What a preset's names stand for, as ``{"benchmarks": ["math500", …], …}``."""
    chosen = OmegaConf.to_container(compose("config", overrides=[f"preset={name}"])["preset"], resolve=True)
    assert isinstance(chosen, dict)
    return {str(key): value for key, value in chosen.items()}


@dataclass(frozen=True, slots=True)
class Asked:
    """One run that an experiment asks for; `words` are its overrides, benchmark and preset aside."""

    benchmark: str
    words: Words

    def word(self, key: str) -> str | None:
        """What an override says, None where it does not."""
        return dict(word.split("=", 1) for word in self.words).get(key)


@cache
def asked(experiment: str, *overrides: str) -> tuple[Asked, ...]:
    """The runs of an experiment, in its order, under `overrides`, as on the command line. Raises ConfigError."""
    runs = []
    for run in expand(OverridesParser.create().parse_overrides([f"+experiment={experiment}", *overrides])):
        benchmark = next(word.partition("=")[2] for word in run if word.startswith("benchmark="))
        rest = [word for word in run if not word.startswith(("benchmark=", "preset="))]
        runs.append(Asked(benchmark, ordered(rest)))
    return tuple(runs)


def ordered(words: Iterable[str]) -> Words:
    """Words in one order, whatever the order that a file has them in: what the run is first, its settings last."""
    every = list(words)
    told = [word for word in every if USUAL.get(word) not in ("", *every)]
    return tuple(sorted(told, key=lambda word: (not word.startswith(FIRST), word.partition("=")[0])))


@dataclass(frozen=True, slots=True)
class Composed:
    """A run's configuration, but for the benchmark; `identity` is None where a model's folder is not there."""

    config: RunConfig
    method: Method | Selection
    identity: Mapping[str, Any] | None


@cache
def composed(words: Words) -> Composed:
    """Compose the run with these overrides. Raises ConfigError, and Hydra's own errors."""
    config = _composer().configure(words)
    method = method_of(config)
    try:
        identity = identify(config, method, limits_of(config)[0], data="")
    except ModelError:
        identity = None
    return Composed(config, method, identity)


@cache
def _composer() -> Composer:
    return Composer()


class Index:
    """Stored runs by what identifies them; `runs`: the frame of ``rsd.report.load(rows="runs")``."""

    def __init__(self, runs: "pd.DataFrame") -> None:
        self._runs = {(row["benchmark"], row["run_id"]): row for row in runs.to_dict("records")}
        kinds = zip(runs["benchmark"], runs["model"], runs["method"], runs["delta"], strict=True)
        self._kinds = {(*kind[:2], _searching(kind[2]), _number(kind[3])) for kind in kinds}
        self._where = [f"results_dir={json.dumps(str(Path(folder).parents[2]))}" for folder in runs["folder"][:1]]
        self._data: defaultdict[str, set[str | None]] = defaultdict(set)
        for benchmark, folder in zip(runs["benchmark"], runs["folder"], strict=True):
            self._data[benchmark].add(read_manifest(Path(folder))["identity"].get("benchmark", {}).get("data"))

    def find(self, run: Asked) -> Mapping[str, Any] | None:
        """The stored run that `run` asks for; of runs on different files of one benchmark, that with the most
        questions."""
        kind = run.benchmark, run.word("model"), _searching(run.word("method")), _number(run.word("delta"))
        if None not in kind[:3] and kind not in self._kinds and (*kind[:3], None) not in self._kinds:
            return None  # without composing it, which takes a tenth of a second
        known = composed(run.words)
        if known.config.prm.merged or any(policy.merged for policy in known.config.model.policies.values()):
            known = composed((*run.words, *self._where))  # merged models lie beside the runs
        if known.identity is None:
            return None
        found = []
        for data in self._data[run.benchmark]:
            identity = {**known.identity, "benchmark": {"name": run.benchmark, "data": data}}
            found.append(self._runs.get((run.benchmark, run_id(identity, known.config, known.method))))
        return max((row for row in found if row), key=lambda row: row["questions"], default=None)


def _searching(method: str | None) -> str | None:
    """A method; process Best-of-N is beam search of width 1."""
    return "beam" if method == "process_best_of_n" else method


def _number(value: Any) -> float | None:
    """A threshold; None for none."""
    number = math.nan if value is None else float(value)
    return None if math.isnan(number) else number
