"""Which devices serve which model, and with what share of their memory.

    shares = place({"draft": Need(...), "target": Need(...), "prm": Need(...)}, memory=[80.0, 80.0])
    shares["target"]   # [Share(devices=(0,), fraction=0.31)], one of each replica

Sizes are in GiB. A model keeps its weights and working space; what a device has left is key-value cache, split among
its models by how much one token takes in each.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rsd.errors import ConfigError
from rsd.records import Role

USABLE = 0.9  # of a device's memory; the rest is the driver's, CUDA graphs' and fragmentation
WORKING_SPACE = 1.5  # GiB of activations and graphs per model and device
LEAST_REQUESTS = 4  # requests of full length whose key-value cache must fit


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What a model asks of its devices. `weights`: GiB of one copy over all of its devices; `cache`: GiB of
    key-value cache for one request of full length; `parallel`: devices of one copy; `replicas`: copies;
    `devices`: those that the copies take in this order, None to choose."""

    weights: float
    cache: float
    parallel: int = 1
    replicas: int = 1
    devices: tuple[int, ...] | None = None

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
    """The devices of one copy of a model and the fraction of each one's total memory that it may take."""

    devices: tuple[int, ...]
    fraction: float


def place(needs: Mapping[Role, Need], memory: Sequence[float]) -> dict[Role, list[Share]]:
    """Give every copy of a model its devices, the largest first where there is most room, and its fraction.

    `memory`: GiB of each device. Raises ConfigError that says what does not fit and which setting would help.
    """
    free = [USABLE * size for size in memory]
    chosen: dict[Role, list[tuple[int, ...]]] = defaultdict(list)
    for role, need in sorted(needs.items(), key=lambda item: (item[1].devices is None, -item[1].least)):
        _check_devices(role, need, len(memory))
        for copy in range(need.replicas):
            if need.devices is None:
                devices = tuple(sorted(sorted(range(len(memory)), key=lambda i: -free[i])[: need.parallel]))
            else:
                first = copy * need.parallel % len(need.devices)
                devices = need.devices[first : first + need.parallel]
            for i in devices:
                free[i] -= need.least
            chosen[role].append(devices)
            tightest = min(devices, key=lambda i: free[i])
            if free[tightest] < 0:
                raise ConfigError(_does_not_fit(role, tightest, needs, chosen, memory))
    fixed, cache = [0.0] * len(memory), [0.0] * len(memory)
    for role, copies in chosen.items():
        for i in (i for devices in copies for i in devices):
            fixed[i] += needs[role].fixed
            cache[i] += needs[role].cache / needs[role].parallel

    def fraction(need: Need, i: int) -> float:
        """What the copy must have and its part of the rest."""
        rest = USABLE * memory[i] - fixed[i]
        return (need.fixed + rest * need.cache / need.parallel / cache[i]) / memory[i]

    return {
        role: [Share(devices, round(min(fraction(needs[role], i) for i in devices), 4)) for devices in copies]
        for role, copies in chosen.items()
    }


def _check_devices(role: Role, need: Need, count: int) -> None:
    """Raises ConfigError where the devices of `need` are not there, or are not whole copies' worth."""
    absent = [i for i in need.devices or () if not 0 <= i < count]
    if absent or need.parallel > count:
        what = f"device {absent[0]}" if absent else f"{need.parallel} devices"
        mend = f"engine.{role}.device" if absent else f"engine.{role}.tensor_parallel_size"
        raise ConfigError(f"engine.{role} asks for {what}, and this machine has {count}; set {mend}.")
    if need.devices is not None and len(need.devices) not in {need.parallel, need.parallel * need.replicas}:
        raise ConfigError(
            f"engine.{role}.device names {len(need.devices)} devices for {need.replicas} copies on {need.parallel} "
            f"each; name {need.parallel * need.replicas}, or change engine.{role}.tensor_parallel_size or replicas."
        )


def _does_not_fit(
    role: Role,
    device: int,
    needs: Mapping[Role, Need],
    chosen: Mapping[Role, Sequence[tuple[int, ...]]],
    memory: Sequence[float],
) -> str:
    here = [(other, needs[other].least) for other, copies in chosen.items() for c in copies if device in c]
    listed = ", ".join(f"{other} {size:.1f}" for other, size in here)
    if len(memory) > needs[role].parallel:
        mend = f"set engine.{role}.device to another device, or engine.{role}.tensor_parallel_size higher"
    else:
        mend = f"use a device with more memory, a smaller {role}, or a lower limits.total_tokens"
    return (
        f"engine.{role}: device {device} has {memory[device]:.1f} GiB, of which {USABLE:.0%} may be used, and needs "
        f"{sum(size for _, size in here):.1f} ({listed}); {mend}."
    )
