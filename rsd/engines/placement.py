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

GIB = 2**30
USABLE = 0.9  # of a device's memory; the rest is the driver's, CUDA graphs' and fragmentation
LEAST_REQUESTS = 4  # requests of full length whose key-value cache must fit


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What a model asks of its devices. `weights`: GiB of one copy over all of its devices; `cache`: GiB of
    key-value cache for one request of full length; `parallel`: devices of one copy; `replicas`: copies;
    `devices`: those that the copies take in this order, None to choose.

    The user may have given the whole, `given`: the fraction of each device; or `given_cache`: GiB of key-value
    cache on each device. Neither is shared out."""

    weights: float
    cache: float
    parallel: int = 1
    replicas: int = 1
    devices: tuple[int, ...] | None = None
    given: float | None = None
    given_cache: float | None = None

    @property
    def planned(self) -> bool:
        """Whether its share is the planner's to choose."""
        return self.given is None and self.given_cache is None

    def fixed(self, memory: float) -> float:
        """GiB on each device, of `memory` GiB, before any key-value cache."""
        return self.weights / self.parallel + working_space(memory)

    def least(self, memory: float) -> float:
        """GiB on each device with the least key-value cache that makes sense."""
        return self.fixed(memory) + LEAST_REQUESTS * self.cache / self.parallel

    def takes(self, memory: float) -> float:
        """GiB on each device that are its own whatever else is there: those given, or the least."""
        if self.given_cache is not None:  # vLLM then pays no heed to a fraction
            return self.fixed(memory) + self.given_cache
        return self.least(memory) if self.given is None else self.given * memory


@dataclass(frozen=True, slots=True)
class Share:
    """The devices of one copy of a model and the fraction of each one's total memory that it may take."""

    devices: tuple[int, ...]
    fraction: float


def place(needs: Mapping[Role, Need], memory: Sequence[float]) -> dict[Role, list[Share]]:
    """Give every copy of a model its devices, the largest first where there is most room, and its fraction.

    `memory`: GiB of each device. Raises ConfigError that says what does not fit and which setting would help.
    """
    chosen: dict[Role, list[tuple[int, ...]]] = defaultdict(list)

    def free(i: int) -> float:
        """GiB that are left of device `i`."""
        here = [needs[role] for role, copies in chosen.items() for devices in copies if i in devices]
        return _usable(here) * memory[i] - sum(need.takes(memory[i]) for need in here)

    largest = max(memory, default=0)
    for role, need in sorted(needs.items(), key=lambda item: (item[1].devices is None, -item[1].takes(largest))):
        _check_devices(role, need, len(memory))
        for copy in range(need.replicas):
            if need.devices is None:
                devices = tuple(sorted(sorted(range(len(memory)), key=lambda i: -free(i))[: need.parallel]))
            else:
                first = copy * need.parallel % len(need.devices)
                devices = need.devices[first : first + need.parallel]
            chosen[role].append(devices)
            tightest = min(devices, key=free)
            _check_given(role, need, memory[tightest])
            if free(tightest) < -1e-9:  # rounding
                raise ConfigError(_does_not_fit(role, tightest, needs, chosen, memory))
    taken, cache = [0.0] * len(memory), [0.0] * len(memory)
    for role, copies in chosen.items():
        for i in (i for devices in copies for i in devices):
            planned = needs[role].planned
            taken[i] += needs[role].fixed(memory[i]) if planned else needs[role].takes(memory[i])
            cache[i] += needs[role].cache / needs[role].parallel if planned else 0

    def fraction(need: Need, i: int) -> float:
        """What is given; else what the copy must have and its part of the rest."""
        if not need.planned:
            return need.takes(memory[i]) / memory[i]
        rest = USABLE * memory[i] - taken[i]
        return (need.fixed(memory[i]) + rest * need.cache / need.parallel / cache[i]) / memory[i]

    return {
        role: [Share(devices, round(min(fraction(needs[role], i) for i in devices), 4)) for devices in copies]
        for role, copies in chosen.items()
    }


def _usable(here: Sequence[Need]) -> float:
    """The part of a device's memory that the models `here` may take together: all, if the user gave each its share."""
    return 1 if here and not any(need.planned for need in here) else USABLE


def working_space(memory: float) -> float:
    """GiB of activations, logits and CUDA graphs of one model on a device of `memory` GiB.

    vLLM's server reads 8,192 tokens of 1,024 requests a step from 70 GiB on, 2,048 of 256 below and 16,384 of 1,024
    from 160 GiB on (``EngineArgs.get_batch_defaults``). Of a 72B model, the two inner activations of a step are 0.9 GiB
    at 8,192 tokens (29,568 wide, bfloat16), and logits and their sorted copy 1.2 GiB at 1,024 requests (152,064 wide,
    float32); graphs and the process itself take about 1 GiB more.
    """
    return 1.5 if memory < 70 else 3.5 if memory < 160 else 4.5


def limit_of(role: Role) -> str:
    """The setting of the longest text that a request of `role` can hold."""
    return "prm.max_length" if role == "prm" else "limits.total_tokens"


def sharing(devices: Mapping[Role, set[int]]) -> list[frozenset[Role]]:
    """The models that share a device with another, directly or through a third; those alone on theirs are left out."""
    groups: list[tuple[set[Role], set[int]]] = []
    for role, own in devices.items():
        met = [group for group in groups if group[1] & own]
        roles, places = {role}.union(*(group[0] for group in met)), own.union(*(group[1] for group in met))
        groups = [group for group in groups if group not in met] + [(roles, places)]
    return [frozenset(roles) for roles, _ in groups if len(roles) > 1]


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


def _check_given(role: Role, need: Need, memory: float) -> None:
    """Raises ConfigError where a given share does not hold the weights and one request."""
    if need.planned:
        return
    if need.given_cache is not None:
        name, has, least, what = "kv_cache_memory_bytes", need.given_cache, need.cache, "one request"
    else:
        least, what = need.weights + need.cache, "its weights and one request"
        name, has = "gpu_memory_utilization", need.takes(memory)
    if has < least / need.parallel:
        raise ConfigError(
            f"engine.{role}.args.{name} gives {role} {has:.1f} GiB of device memory, and {what} take "
            f"{least / need.parallel:.1f}; give more, or lower {limit_of(role)}."
        )


def _does_not_fit(
    role: Role,
    device: int,
    needs: Mapping[Role, Need],
    chosen: Mapping[Role, Sequence[tuple[int, ...]]],
    memory: Sequence[float],
) -> str:
    size, usable = memory[device], _usable([needs[r] for r, copies in chosen.items() for c in copies if device in c])
    here = [(other, needs[other].takes(size)) for other, copies in chosen.items() for c in copies if device in c]
    listed = ", ".join(f"{other} {gib:.1f}" for other, gib in here)
    given = [other for other, _ in here if not needs[other].planned]
    if given:
        mend = f"give less in engine.{given[0]}.args, or set engine.{role}.device to another device"
    elif len(memory) > needs[role].parallel:
        mend = f"set engine.{role}.device to another device, or engine.{role}.tensor_parallel_size higher"
    else:
        mend = f"use a device with more memory, a smaller {role}, or a lower {limit_of(role)}"
    return (
        f"engine.{role}: device {device} has {size:.1f} GiB, of which {usable:.0%} may be used, and needs "
        f"{sum(gib for _, gib in here):.1f} ({listed}); {mend}."
    )
