"""A server is started with what the engine in this process would be."""

import json
import os
import shlex

import pytest

from rsd.engines.commands import Command, command_of
from rsd.engines.http import checked_url

OPTIONS = {
    "model": "Qwen/Qwen2.5-Math-7B-Instruct",
    "revision": None,
    "dtype": "bfloat16",
    "hf_overrides": {"max_position_embeddings": 4097},
    "enable_prefix_caching": True,
    "generation_config": "vllm",
    "async_scheduling": False,
    "device_ids": [2, 3],
    "allowed_media_domains": ["a.org", "b.org"],
}


def command(**changes: object) -> Command:
    given = {"role": "target", "options": OPTIONS, "host": "127.0.0.1", "port": 8001, "servers": 3}
    return command_of(**{**given, **changes})


def test_options_become_flags_that_a_shell_reads_as_they_are() -> None:
    words = shlex.split(str(command()))
    assert words[words.index("Qwen/Qwen2.5-Math-7B-Instruct") + 1 :] == [
        *("--dtype", "bfloat16", "--hf-overrides", json.dumps({"max_position_embeddings": 4097})),
        *("--enable-prefix-caching", "--generation-config", "vllm", "--no-async-scheduling"),
        *("--device-ids", "2,3", "--allowed-media-domains", "a.org", "b.org"),
        *("--host", "127.0.0.1", "--port", "8001", "--enable-prompt-tokens-details"),
    ]
    assert "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1" in words
    assert "VLLM_HOST_IP=127.0.0.1" not in words, "of a CPU alone"
    assert command().devices == {2, 3}


def test_a_reward_models_server_is_not_asked_for_details_that_it_cannot_give() -> None:
    assert "--enable-prompt-tokens-details" not in command(role="prm").arguments


def test_servers_on_a_cpu_speak_on_this_machine_alone() -> None:
    options = {name: value for name, value in OPTIONS.items() if name != "device_ids"}
    assert "VLLM_HOST_IP=127.0.0.1" in str(command(options=options))


def test_servers_on_a_cpu_share_its_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {name: value for name, value in OPTIONS.items() if name != "device_ids"}
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    assert "OMP_NUM_THREADS=2 " in str(command(options=options))
    assert "OMP_NUM_THREADS=1 " in str(command(options=options, servers=9))
    assert "OMP_NUM_THREADS" not in str(command()), "of GPUs"


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("gpu1", "http://gpu1:8001"),
        ("0.0.0.0", "http://127.0.0.1:8001"),
        ("::1", "http://[::1]:8001"),
        ("::", "http://[::1]:8001"),
    ],
)
def test_a_server_is_asked_where_it_listens_and_here_where_it_does_everywhere(host: str, url: str) -> None:
    assert command(host=host).url == url
    assert checked_url(url, "engine.target.urls") == url
