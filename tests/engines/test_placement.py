"""Models are placed on devices so that they fit, or the user hears what does not and which setting helps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsd.engines.placement import LEAST_REQUESTS, USABLE, Need, Share, place, working_space
from rsd.errors import ConfigError

SEVEN = Need(weights=14.2, cache=0.22)  # 7B in bfloat16, 4096 tokens
SMALL = Need(weights=2.9, cache=0.11)  # 1.5B
LARGE = Need(weights=135.4, cache=1.25)  # 72B


def alone(needs: dict[str, Need], memory: list[float]) -> dict[str, Share]:
    """Places of models with one copy each."""
    return {role: share for role, (share,) in place(needs, memory).items()}


def test_three_models_share_one_gpu() -> None:
    shares = alone({"draft": SMALL, "target": SEVEN, "prm": SEVEN}, [80.0])
    assert all(share.devices == (0,) for share in shares.values())
    assert sum(share.fraction for share in shares.values()) == pytest.approx(USABLE, abs=1e-3)
    assert shares["target"].fraction == shares["prm"].fraction > shares["draft"].fraction


def test_what_is_left_is_cache_by_the_size_of_a_token() -> None:
    shares = alone({"draft": SMALL, "target": SEVEN}, [80.0])
    cache = {role: 80 * shares[role].fraction - need.fixed(80) for role, need in (("draft", SMALL), ("target", SEVEN))}
    assert cache["target"] / cache["draft"] == pytest.approx(SEVEN.cache / SMALL.cache, rel=1e-2)


def test_with_more_gpus_the_largest_models_part() -> None:
    shares = alone({"draft": SMALL, "target": SEVEN, "prm": SEVEN}, [24.0, 24.0])
    assert shares["target"].devices != shares["prm"].devices


def test_what_is_configured_is_kept() -> None:
    large = Need(weights=LARGE.weights, cache=LARGE.cache, devices=(0, 1, 2, 3), parallel=4)
    prm = Need(weights=14.2, cache=0.22, devices=(2,))
    shares = alone({"draft": SEVEN, "target": large, "prm": prm}, [80.0] * 4)
    assert shares["target"].devices == (0, 1, 2, 3)
    assert shares["prm"].devices == (2,)
    assert shares["draft"].devices != (2,)


def test_a_parallel_model_takes_the_emptiest_devices() -> None:
    large = Need(weights=LARGE.weights, cache=LARGE.cache, parallel=2)
    shares = alone({"target": large, "draft": SEVEN}, [96.0, 96.0, 96.0])
    assert {role: share.devices for role, share in shares.items()} == {"target": (0, 1), "draft": (2,)}


def test_copies_spread_over_devices() -> None:
    copies = Need(weights=14.2, cache=0.22, replicas=3)
    assert [share.devices for share in place({"target": copies}, [80.0] * 4)["target"]] == [(0,), (1,), (2,)]
    named = Need(weights=14.2, cache=0.22, replicas=2, parallel=2, devices=(3, 1, 0, 2))
    assert [share.devices for share in place({"target": named}, [80.0] * 4)["target"]] == [(3, 1), (0, 2)]
    together = place({"target": Need(weights=14.2, cache=0.22, replicas=2, devices=(1,))}, [80.0] * 2)["target"]
    assert [share.devices for share in together] == [(1,), (1,)]
    assert sum(share.fraction for share in together) == pytest.approx(USABLE, abs=1e-3)


def test_a_given_fraction_is_that_models_share() -> None:
    given = Need(weights=14.2, cache=0.22, given=0.5)
    shares = alone({"draft": SMALL, "target": given}, [80.0])
    assert (shares["target"].fraction, shares["draft"].fraction) == (0.5, pytest.approx(USABLE - 0.5))
    assert alone({"target": Need(weights=14.2, cache=0.22, given=0.95)}, [80.0])["target"].fraction == 0.95
    both = {"draft": Need(weights=2.9, cache=0.11, given=0.3), "target": Need(weights=14.2, cache=0.22, given=0.7)}
    assert {role: share.fraction for role, share in alone(both, [80.0]).items()} == {"draft": 0.3, "target": 0.7}


def test_a_given_cache_comes_beside_the_weights_and_the_rest_is_the_others() -> None:
    given = Need(weights=14.2, cache=0.22, given_cache=20)
    shares = alone({"draft": SMALL, "target": given}, [80.0])
    assert 80 * shares["target"].fraction == pytest.approx(14.2 + working_space(80) + 20, abs=0.01)
    assert sum(share.fraction for share in shares.values()) == pytest.approx(USABLE, abs=1e-3)


def test_models_of_larger_devices_get_the_space_that_their_larger_steps_take() -> None:
    assert working_space(24) < working_space(80) < working_space(192)
    fits = alone({"target": Need(weights=70, cache=0.1)}, [86.0])["target"]
    assert fits.fraction == USABLE
    with pytest.raises(ConfigError, match=r"needs 75\.9 \(target 75\.9\)"):
        place({"target": Need(weights=72, cache=0.1)}, [84.0])


@pytest.mark.parametrize(
    ("needs", "memory", "sentence"),
    [
        ({"target": LARGE}, [80.0], r"engine\.target: device 0 has 80\.0 GiB.* use a device with more memory"),
        ({"target": LARGE}, [80.0, 80.0], r"engine\.target\.tensor_parallel_size higher"),
        ({"prm": Need(weights=1, cache=0.1, devices=(3,))}, [80.0], r"engine\.prm asks for device 3.* has 1"),
        ({"target": Need(weights=1, cache=0.1, parallel=2)}, [80.0], r"engine\.target asks for 2 devices.* has 1"),
        ({"target": Need(weights=1, cache=0.1, devices=(0, 1))}, [80.0] * 2, r"names 2 devices for 1 copies"),
        (
            {"target": Need(weights=14.2, cache=0.22, given=0.1)},
            [80.0],
            r"args\.gpu_memory_utilization gives target 8\.0 GiB of device memory, and its weights and one request "
            r"take 14\.4; give more",
        ),
        (
            {"prm": Need(weights=14.2, cache=2, given_cache=1)},
            [80.0],
            r"engine\.prm\.args\.kv_cache_memory_bytes gives prm 1\.0 GiB .*one request take 2\.0",
        ),
        (
            {"target": Need(weights=14.2, cache=0.22, given=0.9), "prm": SEVEN},
            [80.0],
            r"engine\.prm: device 0 .* needs 90\.6 \(target 72\.0, prm 18\.6\); give less in engine\.target\.args",
        ),
        (
            {role: Need(weights=14.2, cache=0.22, given=0.6) for role in ("target", "prm")},
            [80.0],
            r"of which 100% may be used, and needs 96\.0",
        ),
        ({"target": SEVEN, "prm": SEVEN}, [24.0], r"engine\.prm: device 0 .* needs 33\.2 \(target 16\.6, prm 16\.6\)"),
    ],
)
def test_what_does_not_fit_is_said_with_a_mend(needs: dict[str, Need], memory: list[float], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        place(needs, memory)


needs = st.builds(
    Need,
    weights=st.floats(0.1, 60),
    cache=st.floats(0.01, 2),
    parallel=st.sampled_from([1, 2]),
    replicas=st.sampled_from([1, 2]),
    given=st.sampled_from([None, None, 0.2, 0.5]),
)


@given(st.dictionaries(st.sampled_from(["draft", "target", "prm"]), needs, min_size=1), st.sampled_from([2, 4]))
def test_no_device_is_promised_more_than_it_has(models: dict[str, Need], count: int) -> None:
    memory = [80.0] * count
    try:
        shares = place(models, memory)
    except ConfigError:
        return
    for device in range(count):
        here = [share for copies in shares.values() for share in copies if device in share.devices]
        given = {role for role, copies in shares.items() if any(device in s.devices for s in copies)}
        usable = 1 if all(models[role].given for role in given) else USABLE
        assert sum(share.fraction for share in here) <= usable + 1e-3
    for role, copies in shares.items():
        need = models[role]
        least = need.weights / need.parallel + working_space(80) + LEAST_REQUESTS * need.cache / need.parallel
        assert len(copies) == need.replicas
        assert all(
            share.fraction == need.given if need.given else share.fraction * 80 >= least - 0.1 for share in copies
        )
