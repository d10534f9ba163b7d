"""Which runs a command asks for: the union of the grids of its experiments, times those of its sweeps and its own.

    overrides = OverridesParser.create().parse_overrides(["+experiment=fig5", "limit=50"])
    expand(overrides)   # [("model=tiny", "method=rsd", "delta=0.0", "limit=50"), …]

``experiments/<name>.yaml`` holds `grids`, a list of {group or key: value or list of values}, ``conf/sweep/<name>.yaml``
is one such grid. Values may name what ``preset=`` chooses. What stands on the command line wins over both.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from hydra import compose
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.types import Override
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from rsd.errors import ConfigError, hint

Grid = dict[str, list[str]]  # of each key, "key=value" for each of its values

FILES = {"experiment": "experiments", "sweep": "conf/sweep"}


def expand(overrides: Sequence[Override]) -> list[tuple[str, ...]]:
    """The overrides of each run, in order, without repetitions.

    Raises ConfigError where there is no such experiment or sweep, or its file holds no grids.
    """
    own: Grid = {}
    named: dict[str, list[str]] = {"experiment": [], "sweep": []}
    for override in overrides:
        values = [_value(line) for line in _lines(override)]
        if override.key_or_group in named:
            named[override.key_or_group] = values
        else:
            own[override.get_key_element()] = _lines(override)
    runs = []
    for preset in own.get("preset", [None]):
        chosen = [] if preset is None else [preset]
        experiments = [grid for name in named["experiment"] for grid in _grids("experiment", name, chosen)] or [{}]
        sweeps = [grid for name in named["sweep"] for grid in _grids("sweep", name, chosen)] or [{}]
        for experiment, sweep in product(experiments, sweeps):
            grid = {**experiment, **sweep, **own, **({"preset": chosen} if chosen else {})}
            runs += list(product(*grid.values()))
    return list(dict.fromkeys(runs))


def _lines(override: Override) -> list[str]:
    """``key=value`` for each value of an override of the command line."""
    if not override.is_sweep_override():
        return [override.input_line or ""]
    if not override.is_discrete_sweep():
        raise ConfigError(f"{override.input_line}: give a list of values, as in {override.key_or_group}=1,2,3.")
    return [f"{override.get_key_element()}={value}" for value in override.sweep_string_iterator()]


def _value(line: str) -> str:
    return line.partition("=")[2]


def _grids(group: str, name: str, preset: list[str]) -> Iterator[Grid]:
    """The grids of an experiment or a sweep."""
    known = sorted(GlobalHydra.instance().config_loader().get_group_options(group))
    if name not in known:
        raise ConfigError(f"+{group}={name}: there is no {FILES[group]}/{name}.yaml; {hint(name, known)}")
    try:
        content = OmegaConf.to_container(
            compose("config", overrides=[*preset, f"+{group}={name}"])[group], resolve=True
        )
    except OmegaConfBaseException as error:
        raise ConfigError(f"{FILES[group]}/{name}.yaml: {' '.join(str(error).split())}") from error
    grids = content.get("grids") if group == "experiment" and isinstance(content, dict) else [content]
    if not isinstance(grids, list) or not all(isinstance(grid, dict) and grid for grid in grids):
        raise ConfigError(f"{FILES[group]}/{name}.yaml: grids must be a list of {{key: value or list of values}}.")
    yield from (_grid(grid) for grid in grids)


def _grid(values: Mapping[Any, Any]) -> Grid:
    return {
        str(key): [f"{key}={_text(one)}" for one in (value if isinstance(value, list) else [value])]
        for key, value in values.items()
    }


def _text(value: Any) -> str:
    """A value of a grid as the command line writes it."""
    if isinstance(value, list):
        return f"[{','.join(map(_text, value))}]"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
