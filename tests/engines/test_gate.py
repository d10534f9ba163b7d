"""Models that share a device take turns, and everybody gets one."""

import asyncio
from collections.abc import Mapping
from random import Random

import pytest

from rsd.engines.gate import SHARE, DeviceGate, gated
from rsd.engines.placement import sharing
from rsd.methods.rsd import RSD
from rsd.records import Role
from rsd.weighting import Binary
from tests.benchmarks.clock import virtually
from tests.benchmarks.harness import run
from tests.benchmarks.scheduling import DECODING, DELTA, simulated
from tests.benchmarks.simulated import Device, questions

ROLES: tuple[Role, ...] = ("draft", "target", "prm")


async def until(gate: DeviceGate, role: Role, leave: asyncio.Event, told: list[Role]) -> None:
    async with gate.entered(role):
        told.append(role)
        await leave.wait()


def test_the_running_engine_keeps_the_device_until_others_wait_for_more_than_its_share() -> None:
    async def calls() -> list[Role]:
        gate, leave, told = DeviceGate(), asyncio.Event(), list[Role]()
        tasks = [asyncio.create_task(until(gate, "draft", leave, told)) for _ in range(8)]
        await asyncio.sleep(0)
        for waiting in range(1, 4):
            tasks.append(asyncio.create_task(until(gate, "target", leave, told)))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            expected = waiting if SHARE * (8 + waiting) > 8 else 0
            assert told.count("target") == expected, f"{waiting} wait for 8"
        leave.set()
        await asyncio.gather(*tasks)
        return told

    assert asyncio.run(calls()) == ["draft"] * 8 + ["target"] * 3


def test_an_idle_device_lets_anybody_in_and_a_call_that_failed_leaves_it() -> None:
    async def calls() -> None:
        gate = DeviceGate()
        for role in ROLES:
            with pytest.raises(ValueError, match="no answer"):
                async with gate.entered(role):
                    raise ValueError("no answer")
            async with asyncio.timeout(1), gate.entered(role):
                pass

    asyncio.run(calls())


def test_calls_that_are_called_off_hold_nobody_up() -> None:
    async def calls() -> None:
        gate, leave, told, random = DeviceGate(), asyncio.Event(), list[Role](), Random(0)
        leave.set()
        for _ in range(200):
            tasks = [asyncio.create_task(until(gate, random.choice(ROLES), leave, told)) for _ in range(5)]
            for _ in range(random.randrange(4)):
                await asyncio.sleep(0)
            random.choice(tasks).cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for role in ROLES:
            async with asyncio.timeout(1), gate.entered(role):
                pass

    asyncio.run(calls())


@pytest.mark.parametrize("devices", [1, 3])
def test_records_do_not_depend_on_who_waits_for_whom(devices: int) -> None:
    problems = questions(20)

    def outline(roles: list[frozenset[Role]]) -> list[object]:
        models = gated(simulated([Device() for _ in range(devices)]), roles)
        _, (_, records) = virtually(run(RSD(weighting=Binary(delta=DELTA)), models, DECODING, problems))
        return [[(p.origin, p.text, p.accepted, p.reward) for p in record.proposals] for record in records]

    free = outline([])
    assert free == outline([frozenset(ROLES)])
    assert free == outline([frozenset({"draft", "prm"})])


@pytest.mark.parametrize(
    ("devices", "groups"),
    [
        ({"draft": {0}, "target": {1}, "prm": {2}}, []),
        ({"draft": {0}, "target": {1, 2}, "prm": {0}}, [{"draft", "prm"}]),
        ({"draft": {0}, "target": {0, 1}, "prm": {1}}, [{"draft", "target", "prm"}]),
        ({"draft": {0}, "target": {1}, "prm": {0, 1}}, [{"draft", "target", "prm"}]),
        ({"target": {0}}, []),
    ],
)
def test_models_that_meet_on_a_device_share_it(devices: Mapping[Role, set[int]], groups: list[set[Role]]) -> None:
    assert sharing(devices) == groups
