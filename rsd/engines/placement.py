"""Which devices serve which model, and with what share of their memory.

    shares = place({"draft": Need(...), "target": Need(...), "prm": Need(...)}, memory=[80.0, 80.0])
    shares["target"]   # Share(devices=(0,), fraction=0.31)

Sizes are in GiB. A model keeps its weights and working space; what a device has left is key-value cache, split among
its models by how much one token takes in each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rsd.errors import ConfigError
from rsd.records import Role

USABLE = 0.9  # of a device's memory; the rest is the driver's, CUDA graphs' and fragmentation
WORKING_SPACE = 1.5  # GiB of activations and graphs per model and device
LEAST_REQUESTS = 4  # requests of full length whose key-value cache must fit


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What one model asks of its devices. `weights`: GiB over all of them; `cache`: GiB of key-value
    cache for one request of full length; `devices`: which, None to choose; `parallel`: how many."""

    weights: float
    cache: float
    devices: tuple[int, ...] | None = None
    parallel: int = 1

    @property
    def fixed(self) -> float:
        """GiB on each device before any key-value cache."""
        return self.weights / self.parallel + WORKING_SPACE

    @property
    def least(self) -> float:
        """GiB on each device with the least key-value cache that makes sense."""
        return self.fixed + LEAST_REQUESTS * self.cache / self.parallel


@dataclass(frozen=True, slots=True)
class Share:
    """The devices of a model and the fraction of each one's total memory that it may take."""

    devices: tuple[int, ...]
    fraction: float


def place(needs: Mapping[Role, Need], memory: Sequence[float]) -> dict[Role, Share]:
    """Give every model its devices, the largest first where there is most room, and its memory fraction.

    `memory`: GiB of each device. Raises ConfigError that says what does not fit and which setting would help.
    """
    free = [USABLE * size for size in memory]
    devices: dict[Role, tuple[int, ...]] = {}
    for role, need in sorted(needs.items(), key=lambda item: (item[1].devices is None, -item[1].least)):
        chosen = need.devices or tuple(sorted(sorted(range(len(memory)), key=lambda i: -free[i])[: need.parallel]))
        absent = [i for i in chosen if not 0 <= i < len(memory)]
        if absent or len(chosen) < need.parallel:
            what = f"device {absent[0]}" if absent else f"{need.parallel} devices"
            raise ConfigError(
                f"engine.{role} asks for {what}, and this machine has {len(memory)}; set engine.{role}.device_ids."
            )
        for i in chosen:
            free[i] -= need.least
        devices[role] = chosen
        tightest = min(chosen, key=lambda i: free[i])
        if free[tightest] < 0:
            raise ConfigError(_does_not_fit(role, tightest, needs, devices, memory))
    shares = {}
    for role, chosen in devices.items():
        sizes = [_with_cache(role, i, needs, devices, USABLE * memory[i]) / memory[i] for i in chosen]
        shares[role] = Share(chosen, round(min(sizes), 4))
    return shares


def _with_cache(
    role: Role, device: int, needs: Mapping[Role, Need], devices: Mapping[Role, tuple[int, ...]], usable: float
) -> float:
    """GiB of `device` that `role` may take: what it must have and its part of the rest."""
    here = {other: needs[other] for other, chosen in devices.items() if device in chosen}
    rest = usable - sum(need.fixed for need in here.values())
    caches = {other: need.cache / need.parallel for other, need in here.items()}
    return needs[role].fixed + rest * caches[role] / sum(caches.values())


def _does_not_fit(
    role: Role,
    device: int,
    needs: Mapping[Role, Need],
    devices: Mapping[Role, tuple[int, ...]],
    memory: Sequence[float],
) -> str:
    here = {other: needs[other].least for other, chosen in devices.items() if device in chosen}
    listed = ", ".join(f"{other} {size:.1f}" for other, size in here.items())
    if len(memory) > len(needs[role].devices or devices[role]):
        mend = f"set engine.{role}.device_ids to another device, or engine.{role}.tensor_parallel_size higher"
    else:
        mend = f"use a device with more memory, a smaller {role}, or a lower limits.total_tokens"
    return (
        f"engine.{role}: device {device} has {memory[device]:.1f} GiB, of which {USABLE:.0%} may be used, and needs "
        f"{sum(here.values()):.1f} ({listed}); {mend}."
    )
