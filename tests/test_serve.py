"""Servers are started in turn where they share a device, and none is left behind. What they run here answers as a
server does, and reads no model; real ones are in tests/vllm."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from rsd.config import ServeConfig, check_as
from rsd.engines.base import ModelSource
from rsd.engines.commands import Command
from rsd.engines.vllm import VLLMEngine
from rsd.errors import ConfigError, EngineError, ModelError
from rsd.models import source_of
from rsd.plan import make_plan
from rsd.records import Role
from rsd.serve import check_free, commands_of, keep, serve
from tests.conftest import ROOT, environment

SLOW = """
import http.server, sys, time
port, delay, log = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
class Health(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    def log_message(self, *_): pass
print(f"{time.monotonic()} starts", file=open(log, "a"))
time.sleep(delay)
server = http.server.HTTPServer(("127.0.0.1", port), Health)
print(f"{time.monotonic()} answers", file=open(log, "a"))
server.serve_forever()
"""
SOURCES: dict[Role, ModelSource] = {
    role: ModelSource(key=f"model.{role}.path", path="m", revision=None, dtype="float32", context=512)
    for role in ("draft", "target")
}


def command(role: Role, port: int, folder: Path, *, devices: set[int], program: str = SLOW) -> Command:
    arguments = (sys.executable, "-c", program, str(port), "0.5", str(folder / f"{role}.times"))
    return Command(
        role=role, host="127.0.0.1", port=port, arguments=arguments, environment={}, devices=frozenset(devices)
    )


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C reaches this process, also where it was started in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt_when_ready(capsys: pytest.CaptureFixture[str]) -> None:
    """Press Ctrl-C once the servers are said to answer."""
    for _ in range(600):
        time.sleep(0.1)
        if "All servers answer" in capsys.readouterr().out:
            break
    os.kill(os.getpid(), signal.SIGINT)


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens at."""
    with ExitStack() as stack:
        bound = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in bound]


def left_behind(*ports: int) -> list[psutil.Process]:
    """Servers that still run."""
    children = psutil.Process().children(recursive=True)
    return [process for process in children if {*map(str, ports)} & {*process.cmdline()}]


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("devices", [{0}, {1}])
def test_servers_of_one_device_start_in_turn_and_others_together(
    devices: set[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draft, target = free_ports(2)
    commands = [command("draft", draft, tmp_path, devices={0}), command("target", target, tmp_path, devices=devices)]
    presser = threading.Thread(target=interrupt_when_ready, args=(capsys,))
    presser.start()
    keep(commands, SOURCES, tmp_path)
    presser.join()
    times = {
        (role, line.split()[1]): float(line.split()[0])
        for role in ("draft", "target")
        for line in (tmp_path / f"{role}.times").read_text().splitlines()
    }
    assert (times["target", "starts"] > times["draft", "answers"]) == (devices == {0})
    assert not left_behind(draft, target)


def test_a_server_that_ends_by_itself_is_told_and_the_others_are_stopped(tmp_path: Path) -> None:
    ending = "raise ValueError('no such option')"
    draft, target = free_ports(2)
    commands = [
        command("draft", draft, tmp_path, devices={0}),
        command("target", target, tmp_path, devices={1}, program=ending),
    ]
    told = rf"model\.target\.path: vLLM cannot serve m \(ValueError: no such option\); see .*{target}-target\.log"
    with pytest.raises(ModelError, match=told):
        keep(commands, SOURCES, tmp_path)
    assert not left_behind(draft, target)


ONCE = """
import http.server, os, signal, sys
class Health(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.flush()
        self.connection.close()
        os.kill(os.getpid(), signal.SIGKILL)
print("OSError: of no importance", flush=True)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Health).serve_forever()
"""


def test_of_a_server_that_was_killed_no_old_error_is_told(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    killed = "it was ended by SIGKILL, as the system does when memory runs out"
    told = rf"^engine\.draft: vLLM, which served m, has ended \({killed}\); see .*{port}-draft\.log\.$"
    with pytest.raises(EngineError, match=told):
        keep([command("draft", port, tmp_path, devices={0}, program=ONCE)], SOURCES, tmp_path)
    early = "import os, signal; print('OSError: of no importance', flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    with pytest.raises(ModelError, match=rf"vLLM cannot serve m \({killed}\); see "):
        keep([command("draft", port, tmp_path, devices={0}, program=early)], SOURCES, tmp_path)


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "localhost"])
def test_a_port_that_is_in_use_is_told_before_anything_starts(host: str, tmp_path: Path) -> None:
    """What listens there would answer in the server's place."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = replace(command("draft", other.getsockname()[1], tmp_path, devices={0}), host=host)
        with pytest.raises(ConfigError, match=rf"port {taken.port} is in use; set port= to the first of free ones"):
            check_free(taken)
    check_free(taken)
    with pytest.raises(ConfigError, match=r"cannot listen, host=203\.0\.113\.1 port=.* set host= or port= to others"):
        check_free(replace(taken, host="203.0.113.1"))


def test_nothing_is_started_where_one_port_is_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(VLLMEngine, "prepare", lambda *_: None)  # of vLLM, which need not be here
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(
            ConfigError, match=r"^The server of (draft|target) cannot listen, port \d+ is in use; set port="
        ):
            serve(configured("run=true", f"port={port - 1}", f"results_dir={tmp_path}"))
    assert not list(tmp_path.rglob("*.log"))


def configured(*overrides: str) -> ServeConfig:
    """What the command would be told."""
    with initialize_config_dir(config_dir=str(ROOT / "conf"), version_base="1.3"):
        return check_as(ServeConfig, OmegaConf.to_container(compose("serve", overrides=list(overrides)), resolve=True))


def test_the_servers_ports_follow_each_other_where_there_are_as_many() -> None:
    with pytest.raises(ConfigError, match=r"port=0 is wrong: it should be greater than or equal to 1"):
        configured("port=0")
    config = configured("port=65533", "host=::1")
    plan = make_plan(config)
    sources = {role: source_of(plan, role) for role in plan.method.roles}
    urls = [command.url for command in commands_of(config, plan, sources)]
    assert urls == [f"http://[::1]:{port}" for port in (65533, 65534, 65535)]
    with pytest.raises(ConfigError, match=r"^port=65534 leaves no 3 ports for the servers; set it to 65533 or less\.$"):
        commands_of(configured("port=65534"), plan, sources)


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("engine=transformers", "engine: servers are started with vLLM; leave engine out, or set engine=vllm."),
        ("detach=true", "detach=true is for runs; leave it out: without run=true the commands are only printed."),
        ("-m", "-m is for runs: python -m rsd.serve starts the servers of one configuration; leave it out."),
    ],
)
def test_what_is_of_runs_is_refused(word: str, told: str) -> None:
    command = [sys.executable, "-m", "rsd.serve", word]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment(), check=False)
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"Error: {told}\n")
