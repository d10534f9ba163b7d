"""The command that starts a vLLM server with the options of an engine in this process::

command = command_of("draft", options, host="127.0.0.1", port=8000)
str(command)     # VLLM_NO_USAGE_STATS=1 … vllm serve Qwen/Qwen2.5-Math-1.5B-Instruct --dtype bfloat16 …
"""

import json
import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from rsd.engines.vllm import ENVIRONMENT, cpu_environment
from rsd.records import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What starts one server, which listens at `host` and `port`. `devices`: the GPUs that it takes."""

    role: Role
    host: str
    port: int
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    devices: frozenset[int]

    @property
    def url(self) -> str:
        """Where this machine reaches it."""
        reached = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return f"http://[{reached}]:{self.port}" if ":" in reached else f"http://{reached}:{self.port}"

    def __str__(self) -> str:
        words = [f"{name}={shlex.quote(value)}" for name, value in self.environment.items()]
        return " ".join([*words, shlex.join(self.arguments)])


def command_of(role: Role, options: Mapping[str, Any], *, host: str, port: int, servers: int) -> Command:
    """The command of a server of `role`, one of all `servers`; `options` are those of ``VLLMEngine.options``."""
    told = {**options, "host": host, "port": port}
    if role != "prm":
        told["enable_prompt_tokens_details"] = True  # else no answer says what came from the cache
    on_cpu = "device_ids" not in options
    needed = {name: value for name, value in ENVIRONMENT.items() if on_cpu or name != "VLLM_HOST_IP"}
    needed |= cpu_environment(servers) if on_cpu else {}
    return Command(
        role=role,
        host=host,
        port=port,
        arguments=(*_program(), str(told.pop("model")), *_flags(told)),
        environment=needed,
        devices=frozenset(options.get("device_ids", ())),
    )


def _program() -> tuple[str, ...]:
    """How vLLM is called, up to the model: its build for the CPU has no `vllm serve`, only what lies behind it."""
    try:
        version("vllm")
    except PackageNotFoundError:
        return sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model"
    return "vllm", "serve"


def _flags(options: Mapping[str, Any]) -> Iterator[str]:
    """Options of vLLM's engine as its command line spells them; those that are None keep vLLM's default."""
    for name, value in options.items():
        flag = name.replace("_", "-")
        if value is True or value is False:
            yield f"--{flag}" if value else f"--no-{flag}"
        elif name == "device_ids":
            yield from (f"--{flag}", ",".join(map(str, value)))
        elif isinstance(value, Mapping):
            yield from (f"--{flag}", json.dumps(value))
        elif isinstance(value, list | tuple):
            yield from (f"--{flag}", *map(str, value))
        elif value is not None:
            yield from (f"--{flag}", str(value))
