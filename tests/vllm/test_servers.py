"""``python -m rsd.serve`` and ``engine=openai`` with real vLLM servers: of the tiny family's policies and, as their
PRM, of a language model with RLHFlow's layout."""

import asyncio
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from rsd.config import build
from rsd.engines.base import Completion, Context, Logprobs, Sampling
from rsd.errors import ServerError
from rsd.models import source_of
from rsd.plan import make_plan
from tests.conftest import ROOT, Run, compose_config, environment
from tests.engines.test_openai import outline
from tests.vllm.conftest import BLOCK, CACHE

pytestmark = pytest.mark.vllm
KEY = "of-these-tests"
READY = "All servers answer. Ctrl-C stops them.\n"


def free_ports(count: int) -> int:
    """The first of `count` ports in a row that nobody listens at."""
    for first in range(20_000 + os.getpid() % 10_000, 60_000, count):
        with socket.socket() as one, socket.socket() as two, socket.socket() as three:
            try:
                for number, each in enumerate((one, two, three)[:count]):
                    each.bind(("127.0.0.1", first + number))
            except OSError:
                continue
            return first
    raise AssertionError("no free ports")


@pytest.fixture(scope="module")
def prm(rlhflow: Path) -> list[str]:
    """Settings of the reward model."""
    return ["prm=rlhflow_8b", f"prm.path={rlhflow}", "prm.dtype=float32", "prm.max_length=1024"]


@pytest.fixture(scope="module")
def urls(prm: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """Settings that lead to started servers; when the tests are done, Ctrl-C has to stop them all."""
    args = [f"engine.{role}.args={{block_size: {BLOCK}}}" for role in ("draft", "target", "prm")]
    options = [f"results_dir={tmp_path_factory.mktemp('servers')}", "run=true", f"port={free_ports(3)}", CACHE, *args]
    command = [sys.executable, "-m", "rsd.serve", *options, *prm]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment(VLLM_API_KEY=KEY), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as serving:
        told = lines_until(READY, serving)
        (client,) = (line for line in told if line.startswith("python -m rsd.run "))
        yield [word for word in client.split() if word.startswith("engine=") or ".urls=" in word]
        processes = psutil.Process(serving.pid).children(recursive=True)
        serving.send_signal(signal.SIGINT)
        assert serving.wait(60) == 0
    _, alive = psutil.wait_procs(processes, timeout=20)
    assert len(processes) >= 6, "each server and its engine, the worker in it"
    assert not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


def lines_until(last: str, process: "subprocess.Popen[str]") -> list[str]:
    """What `process` prints up to the line `last`."""
    assert process.stdout is not None
    lines: queue.Queue[str] = queue.Queue()
    threading.Thread(target=lambda out: [*map(lines.put, out), lines.put("")], args=(process.stdout,)).start()
    told = [lines.get(timeout=400)]
    while told[-1] not in (last, ""):
        told.append(lines.get(timeout=400))
    assert told[-1] == last, told
    return told


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_API_KEY", KEY)


def test_the_servers_take_the_trajectories_of_the_other_engines(urls: list[str], prm: list[str], run: Run) -> None:
    settings = ["limit=50", "delta=0.5", *prm]
    found, expected = run(*settings, "tag=served", *urls), run(*settings)
    assert outline(found) == outline(expected)
    proposals = [proposal for record in found.values() for proposal in record.proposals]
    assert {proposal.accepted for proposal in proposals if proposal.origin == "draft"} == {True, False}
    for key, record in found.items():
        for a, b in zip(record.proposals, expected[key].proposals, strict=True):
            assert a.reward == pytest.approx(b.reward, abs=1e-3)
            assert (a.logprob_draft or a.logprob_target) == pytest.approx(b.logprob_draft or b.logprob_target, abs=1e-3)
        later = [p.usage["draft"] for p in record.proposals if p.origin == "draft"][1:]
        assert all(usage.cached is not None and usage.cached >= BLOCK for usage in later), (
            "prompts are longer than that"
        )


def test_a_text_has_the_likelihood_that_its_own_engine_gives_and_no_cache_outlives_a_run(urls: list[str]) -> None:
    plan = make_plan(compose_config(*urls))
    source = source_of(plan, "draft")
    plan.engine.prepare({"draft": source}, logs=Path())
    policy = plan.engine.load_policy("draft", source)
    context = Context(prompt=policy.prompt(plan.problems[0].question))
    sampling = Sampling(temperature=0.0, top_p=1.0, max_tokens=40, seed=0, stop=None)

    async def asked() -> tuple[list[Completion], Logprobs]:
        written = [await policy.generate(context, sampling) for _ in range(2)]
        told = await policy.logprobs(context, written[0].token_ids)
        await plan.engine.forget()
        written.append(await policy.generate(context, sampling))
        await plan.engine.close()
        return written, told

    written, told = asyncio.run(asked())
    assert sum(told.values) == pytest.approx(written[0].logprob, abs=1e-3)
    assert [completion.usage.cached for completion in written] == [0, len(context.prompt) // BLOCK * BLOCK, 0]
    assert plan.engine.reused("draft", "generate", len(context.prompt)) == written[1].usage.cached


def test_what_a_server_refuses_is_one_sentence(urls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan(compose_config(*urls))
    draft = source_of(plan, "draft")

    async def overflow() -> None:
        policy = plan.engine.load_policy("draft", draft)
        sampling = Sampling(temperature=0.0, top_p=1.0, max_tokens=8, seed=0, stop=None)
        try:
            await policy.generate(Context(prompt=(5,) * 600), sampling)
        finally:
            await plan.engine.close()

    plan.engine.prepare({"draft": draft}, logs=Path())
    with pytest.raises(ServerError, match=r"engine\.draft\.urls: .* \(400: This model's maximum context length is 513"):
        asyncio.run(overflow())
    crossed = compose_config(*urls, *(word.replace("target", "draft") for word in urls if "target" in word))
    with pytest.raises(ServerError, match=r"serves .*/weights/m, where model\.draft\.path says .*/weights/s"):
        build(crossed.engine, "engine").prepare({"draft": draft}, logs=Path())
    monkeypatch.setenv("VLLM_API_KEY", "another")
    with pytest.raises(ServerError, match=r"refuses the API key in VLLM_API_KEY \(401\)"):
        build(compose_config(*urls).engine, "engine").prepare({"draft": draft}, logs=Path())
