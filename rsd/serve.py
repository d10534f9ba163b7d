"""Servers for a run: the commands that start what the configuration names, with this project's reward models::

    python -m rsd.serve model=qwen_math_7b prm=skywork_7b            # print the commands
    python -m rsd.serve model=qwen_math_7b prm=skywork_7b run=true   # start them; Ctrl-C stops them

then, as often as wanted::

    python -m rsd.run engine=openai model=qwen_math_7b prm=skywork_7b delta=0.7

Devices, copies and whatever vLLM is told are those of ``engine=vllm``: ``engine.target.tensor_parallel_size=4``.
"""

import errno
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from rsd.command import CONFIGURATION, attempt, leave, status
from rsd.config import ServeConfig
from rsd.engines.base import ModelSource
from rsd.engines.commands import Command, command_of
from rsd.engines.endings import has_ended, not_served
from rsd.engines.vllm import VLLMEngine
from rsd.engines.vllm_plugin import STARTED_BY
from rsd.errors import ConfigError
from rsd.models import source_of
from rsd.plan import Plan, make_plan
from rsd.records import Role

OWN = re.compile(r"[+~]*(run|host|port|engine)\b")  # settings that are of the servers, not of a run
PATIENCE = 30  # seconds that a server may take to end
LAST_PORT = 65535


def serve(config: ServeConfig) -> None:
    """Print the commands of all servers that a run of `config` asks; start and stop them where it says so.

    Raises ConfigError, ModelError as an engine in this process would, and what `keep` raises.
    """
    for key in ("detach", "dry_run"):
        if getattr(config, key):
            raise ConfigError(f"{key}=true is for runs; leave it out: without run=true the commands are only printed.")
    plan = make_plan(config)
    if not isinstance(plan.engine, VLLMEngine):
        raise ConfigError("engine: servers are started with vLLM; leave engine out, or set engine=vllm.")
    sources = {role: source_of(plan, role) for role in plan.method.roles}
    logs = Path(config.results_dir) / "servers"
    plan.engine.prepare(sources, logs)
    commands = commands_of(config, plan, sources)
    if config.run:
        for command in commands:
            check_free(command)
    shared = len(set().union(*(c.devices for c in commands))) < sum(len(c.devices) for c in commands)
    if shared:
        print("# Some share a device: start each when those before it answer.")
    for command in commands:
        print(f"# {command.role}\n{command}")
    print(f"# When they answer:\npython -m rsd.run {_client(commands)}", flush=True)
    if config.run:
        keep(commands, sources, logs)


def commands_of(config: ServeConfig, plan: Plan, sources: dict[Role, ModelSource]) -> list[Command]:
    """One command for each copy of each model, on ports that follow each other."""
    assert isinstance(plan.engine, VLLMEngine)
    every = [(role, options) for role, source in sources.items() for options in plan.engine.options(role, source)]
    if config.port + len(every) - 1 > LAST_PORT:
        most = LAST_PORT + 1 - len(every)
        raise ConfigError(f"port={config.port} leaves no {len(every)} ports for the servers; set it to {most} or less.")
    make = partial(command_of, host=config.host, servers=len(every))
    return [make(role, options, port=config.port + number) for number, (role, options) in enumerate(every)]


def _client(commands: Sequence[Command]) -> str:
    """What a run is told to find these servers, with the models that this command was told."""
    told = HydraConfig.get().overrides.task
    kept = [shlex.quote(word) for word in told if not OWN.match(word) or ".args=" in word]
    urls: dict[Role, list[str]] = {}
    for command in commands:
        urls.setdefault(command.role, []).append(command.url)
    words = [
        f"engine.{role}.urls={own[0] if len(own) == 1 else '[' + ','.join(own) + ']'}" for role, own in urls.items()
    ]
    return " ".join(["engine=openai", *kept, *words])


def keep(commands: Sequence[Command], sources: dict[Role, ModelSource], logs: Path) -> None:
    """Start all servers, and stop them on Ctrl-C, SIGTERM, or when one of them has ended; those that share a device
    start in turn. What they print goes to files in `logs`, such as ``8000-draft.log``. Raises ModelError where one does
    not start, EngineError where it ends later."""
    running: list[Server] = []
    try:
        for command in commands:
            for earlier in running:  # memory is measured while vLLM starts
                if earlier.command.devices & command.devices:
                    _await(running, [earlier], sources)
            running.append(_start(command, logs / f"{command.port}-{command.role}.log"))
        _await(running, running, sources)
        print("All servers answer. Ctrl-C stops them.", flush=True)
        while True:
            _raise_if_ended(running, sources)
            time.sleep(1)
    except KeyboardInterrupt:
        print("Stopping the servers.", flush=True)
    finally:
        for server in running:
            server.process.terminate()
        deadline = time.monotonic() + PATIENCE
        for server in running:
            try:
                server.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                server.process.kill()


@dataclass(slots=True)
class Server:
    """A started server. `log`: the file with what it prints. `answered`: whether it was up."""

    command: Command
    process: "subprocess.Popen[bytes]"
    log: Path
    answered: bool = False


def check_free(command: Command) -> None:
    """Raises ConfigError where the server could not listen: one that is there already would answer in its place."""
    try:
        family, _, _, _, address = socket.getaddrinfo(command.host, command.port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family) as own:
            own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # of one that has ended, it may linger
            own.bind(address)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            why, mend = f"port {command.port} is in use", "port= to the first of free ones"
        else:
            why, mend = f"host={command.host} port={command.port}: {error.strerror}", "host= or port= to others"
        raise ConfigError(f"The server of {command.role} cannot listen, {why}; set {mend}.") from error


def _start(command: Command, log: Path) -> Server:
    """Start a server, out of reach of the terminal's Ctrl-C, but not beyond the end of this process."""
    beside = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"  # vLLM's own program, unactivated
    program = shutil.which(command.arguments[0], path=beside) or command.arguments[0]
    with log.open("wb") as file:
        process = subprocess.Popen(
            [program, *command.arguments[1:]],
            env={**command.environment, **os.environ, STARTED_BY: str(os.getpid())},
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return Server(command, process, log)


def _await(running: Sequence[Server], wanted: Sequence[Server], sources: dict[Role, ModelSource]) -> None:
    """Return when all of `wanted` answer. Raises ModelError, EngineError when a server ends before."""
    while not all(server.answered for server in wanted):
        time.sleep(0.5)
        _raise_if_ended(running, sources)
        for server in wanted:
            server.answered = server.answered or _answers(server.command.url)


def _answers(url: str) -> bool:
    try:
        with urlopen(f"{url}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except (URLError, OSError):
        return False


def _raise_if_ended(running: Sequence[Server], sources: dict[Role, ModelSource]) -> None:
    for server in running:
        status, role = server.process.poll(), server.command.role
        if status is not None and server.answered:
            raise has_ended(role, sources[role], server.log, status)
        if status is not None:
            raise not_served(role, sources[role], server.log, f"it ended with status {status}", status)


@hydra.main(**{**CONFIGURATION, "config_name": "serve"})
def run(cfg: DictConfig) -> float | None:
    """Validate the composed configuration and serve what it names."""
    return attempt(cfg, serve, ServeConfig)


def command() -> None:
    """Run the command. Raises ConfigError where it is told to sweep."""
    if {"-m", "--multirun"} & {*sys.argv[1:]}:
        raise ConfigError("-m is for runs: python -m rsd.serve starts the servers of one configuration; leave it out.")
    run()


if __name__ == "__main__":
    leave(status(command))
