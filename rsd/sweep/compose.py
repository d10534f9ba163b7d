"""Composing the configurations of many runs, quickly.

with configuration():
    config = Composer().configure(("model=tiny", "delta=0.7"))
"""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType
from omegaconf import DictConfig, OmegaConf

from rsd.command import CONFIGURATION
from rsd.config import RunConfig, check


@contextmanager
def configuration() -> Iterator[None]:
    """Within it the configuration's files can be composed; so they can where Hydra runs already."""
    if GlobalHydra.instance().is_initialized():
        yield
        return
    with initialize_config_dir(config_dir=CONFIGURATION["config_path"], version_base=CONFIGURATION["version_base"]):
        yield


class Composer:
    """Composes runs that choose the same groups once, whatever the values of keys in them. Hydra must be running."""

    def __init__(self) -> None:
        self._groups = frozenset(GlobalHydra.instance().config_loader().list_groups(""))
        self._parser = OverridesParser.create()
        self._composed: dict[tuple[str, ...], DictConfig] = {}

    def configure(self, overrides: Sequence[str]) -> RunConfig:
        """Compose and check one run's configuration. Raises ConfigError, and Hydra's own errors."""
        parsed = self._parser.parse_overrides(list(overrides))
        values = [override for override in parsed if self._is_value(override)]
        chosen = tuple(override.input_line or "" for override in parsed if override not in values)
        if chosen not in self._composed:
            self._composed[chosen] = compose("config", overrides=list(chosen))
        config = copy.deepcopy(self._composed[chosen])
        for override in values:
            OmegaConf.update(config, override.key_or_group, override.value(), merge=True)
        return check(OmegaConf.to_container(config, resolve=True))

    def _is_value(self, override: Override) -> bool:
        """Whether it sets a key that is there, and no more."""
        key = override.key_or_group
        plain = override.type == OverrideType.CHANGE and override.package is None and not key.startswith("hydra")
        return plain and key.partition("/")[0] not in self._groups
