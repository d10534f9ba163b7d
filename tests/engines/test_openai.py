"""Models behind HTTP servers: the records are those of the embedded engine, and what goes wrong is one sentence."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from transformers import PreTrainedTokenizerBase

from rsd.config import build
from rsd.engines.base import Context, Sampling
from rsd.engines.http import Patience, Server
from rsd.engines.loading import load_tokenizer
from rsd.engines.openai import OpenAIEngine
from rsd.engines.prompts import prompt_ids
from rsd.errors import ConfigError, QuestionsFailedError, ServerError
from rsd.invocation import invoke
from rsd.plan import make_plan
from rsd.records import Problem, Record
from rsd.store import Key, read_records
from tests.conftest import Run, compose_config
from tests.servers import Fault, TinyServer, hang_up, html, manifest_text, refusal, source

ROLES = ("draft", "target", "prm")
STEP = Sampling(temperature=0.0, top_p=1.0, max_tokens=100, seed=0, stop="\n\n")


@pytest.fixture(scope="module")
def started() -> Iterator[dict[str, TinyServer]]:
    """A server for each role."""
    with ExitStack() as stack:
        yield {role: stack.enter_context(TinyServer(role)) for role in ROLES}


@pytest.fixture
def servers(started: dict[str, TinyServer]) -> dict[str, TinyServer]:
    """Those servers, as if nobody had asked them yet."""
    for server in started.values():
        server.reset()
        server.api_key = None
    return started


def addresses(servers: dict[str, TinyServer]) -> list[str]:
    return ["engine=openai", *(f"engine.{role}.urls={server.url}" for role, server in servers.items())]


def outline(records: dict[Key, Record]) -> dict[Key, list[tuple[object, ...]]]:
    """What trajectories are made of, without what engines round or count in their own ways."""
    return {
        key: [(p.origin, p.token_ids, p.text, p.finish, p.accepted, p.kept) for p in record.proposals]
        for key, record in records.items()
    }


def test_trajectories_are_those_of_the_embedded_engine(run: Run, servers: dict[str, TinyServer]) -> None:
    found = run("limit=8", *addresses(servers), "tag=remote")
    expected = run("limit=8")
    assert outline(found) == outline(expected)
    for key, record in found.items():
        for a, b in zip(record.proposals, expected[key].proposals, strict=True):
            assert a.reward == pytest.approx(b.reward, abs=1e-3)
            assert (a.logprob_draft or a.logprob_target) == pytest.approx(b.logprob_draft or b.logprob_target, abs=1e-3)
    usage = next(iter(found.values())).proposals[0].usage
    assert (usage["draft"].cached, usage["prm"].cached) == (0, None), "as far as the servers tell"
    sent = [body for _, body in servers["draft"].asked]
    assert {(body["temperature"], body["top_p"], body["top_k"], body["repetition_penalty"]) for body in sent} == {
        (0.0, 1.0, -1, 1.0)
    }


def test_likelihoods_are_those_of_the_embedded_engine(run: Run, servers: dict[str, TinyServer]) -> None:
    weighting = ("weighting=likelihood_ratio", "limit=3")
    found, expected = run(*weighting, *addresses(servers), "tag=remote"), run(*weighting)
    assert outline(found) == outline(expected)
    for key, record in found.items():
        for a, b in zip(record.proposals, expected[key].proposals, strict=True):
            assert a.logprob_target == pytest.approx(b.logprob_target, abs=1e-3)


def test_questions_are_spread_over_the_servers_of_a_role_and_stay_there(
    run: Run, servers: dict[str, TinyServer]
) -> None:
    with TinyServer("draft") as other:
        run("limit=8", *addresses(servers), f"engine.draft.urls=[{servers['draft'].url},{other.url}/v1/]")
    prompts = [prompt_ids(tokenizer(), source("draft"), problem.question) for problem in problems(8)]
    shares = []
    for server in (servers["draft"], other):
        bodies = [body["prompt"] for _, body in server.asked]
        shares.append({n for n, ids in enumerate(prompts) if any(body[: len(ids)] == list(ids) for body in bodies)})
    assert sorted(len(share) for share in shares) == [4, 4]
    assert shares[0].isdisjoint(shares[1])


def tokenizer() -> PreTrainedTokenizerBase:
    return load_tokenizer(source("draft"))


def problems(count: int) -> tuple[Problem, ...]:
    return make_plan(compose_config(f"limit={count}")).problems


@pytest.mark.parametrize(
    "fault",
    [refusal(429, "slow down"), refusal(503, "overloaded"), html(502), hang_up],
    ids=["429", "503", "502", "gone"],
)
def test_what_passes_is_tried_again(fault: Fault, run: Run, servers: dict[str, TinyServer]) -> None:
    for server in servers.values():
        server.faults = [fault]
    (record,) = run("limit=1", *addresses(servers)).values()
    assert record.error is None


def test_a_refused_request_is_not_sent_again(run: Run, servers: dict[str, TinyServer]) -> None:
    servers["target"].faults = [refusal(400, "This model's maximum context length is 64 tokens. You asked for 99.")] * 2
    with pytest.raises(QuestionsFailedError, match=r"refused a request to /v1/completions \(400: This model's maximum"):
        run("limit=1", "method=single", "method.role=target", *addresses(servers))
    assert len(servers["target"].asked) == 1


def test_waits_between_retries_grow_and_end() -> None:
    async def failed() -> float:
        began = time.monotonic()
        with pytest.raises(ServerError, match=r"engine\.draft\.urls: http://127\.0\.0\.1:9 is not there"):
            await Server("http://127.0.0.1:9", key="engine.draft.urls", patience=Patience(retries=2)).ask(
                "/classify", {}
            )
        return time.monotonic() - began

    assert 0.5 + 1 <= asyncio.run(failed()) < 0.5 + 1 + 2 + 2, "each wait, up to a second more, and the attempts"


def test_a_server_that_dies_fails_the_questions_in_flight_and_the_next_invocation_answers_them(
    tmp_path: Path, servers: dict[str, TinyServer]
) -> None:
    with TinyServer("target", dies_after=5) as target:
        overrides = [f"results_dir={tmp_path}", "limit=6", *addresses(servers | {"target": target})]
        overrides += ["engine.retries=1", "concurrency=2"]
        plan = make_plan(compose_config(*overrides))
        with pytest.raises(QuestionsFailedError, match=r"solutions failed .* is not there"):
            invoke(compose_config(*overrides))
        before = read_records(plan.folder)
        assert len(before) == 6
        assert 0 < sum(record.error is None for record in before.values()) < 6
    with target:
        invoke(compose_config(*overrides))
    invoke(compose_config(f"results_dir={tmp_path}", "limit=6", "tag=embedded"))
    (expected,) = (tmp_path / "runs" / "tiny_chain").glob("*embedded*")
    assert outline(read_records(plan.folder)) == outline(read_records(expected))


def test_new_questions_go_to_the_servers_that_are_left(run: Run, servers: dict[str, TinyServer]) -> None:
    """And those that the lost one had are not waited for at length again."""
    with TinyServer("draft", dies_after=1) as dying:
        urls = f"engine.draft.urls=[{dying.url},{servers['draft'].url}]"
        with pytest.raises(QuestionsFailedError, match=r"^1 of 4 solutions failed"):
            run("limit=4", *addresses(servers), urls, "concurrency=1", "engine.retries=1")


PROBLEMS = {
    "absent": r"is not there .*; start it, or name another",
    "html": r"answered an HTML page where JSON is expected; name a server that",
    "other model": r"serves Qwen/other, where model\.draft\.path says .*; name the right server, or set engine\.",
    "short": r"reads at most 100 tokens, and this run may take 512; start it with --max-model-len 513, or lower limits",
    "no key": r"asks for an API key \(401\); set the environment variable VLLM_API_KEY to the server's key",
    "wrong key": r"refuses the API key in VLLM_API_KEY \(401\); set the environment variable",
    "no ids": r"does not give the token ids and log-probabilities of what was written; name one that",
    "cut": r"ended a text after \d+ of 100 tokens; start it with --generation-config vllm",
}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_server_that_will_not_do_is_told_in_one_sentence(
    problem: str, servers: dict[str, TinyServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = servers["draft"]
    monkeypatch.delenv("VLLM_API_KEY", raising=False)
    if problem.endswith("key"):
        server.api_key = "s3cret"
    if problem == "wrong key":
        monkeypatch.setenv("VLLM_API_KEY", "mistaken")
    if problem == "html":
        server.page = "<html>Welcome to nginx!</html>"
    server.card |= {"other model": {"id": "Qwen/other"}, "short": {"max_model_len": 100}}.get(problem, {})
    server.changes = {"no ids": {"token_ids": None}, "cut": {"finish_reason": "length"}}.get(problem, {})
    with pytest.raises(ServerError, match=rf"engine\.draft.*{PROBLEMS[problem]}") as told:
        generate(engine(draft="http://127.0.0.1:9" if problem == "absent" else server.url))
    assert not any(secret in str(told.value) for secret in ("\n", "s3cret", "mistaken"))


def engine(**urls: str) -> OpenAIEngine:
    config = compose_config("engine=openai", *(f"engine.{role}.urls={url}" for role, url in urls.items()))
    made: OpenAIEngine = build(config.engine, "engine")
    return made


def generate(engine: OpenAIEngine) -> None:
    """One step of the draft's."""

    async def step() -> None:
        policy = engine.load_policy("draft", source("draft"))
        try:
            await policy.generate(Context(prompt=policy.prompt("1+1?")), STEP)
        finally:
            await engine.close()

    engine.prepare({"draft": source("draft")}, logs=Path())
    asyncio.run(step())


def test_what_a_drafter_did_is_counted_and_must_be_as_the_method_has_it(
    run: Run, servers: dict[str, TinyServer]
) -> None:
    """Here two rounds: one accepted nothing, the other two of its tokens."""
    settings = ("method=speculative", "limit=1", *addresses(servers), "retry_failed=true")
    with pytest.raises(QuestionsFailedError, match=r"engine\.target: the server tells of no drafter; start it as"):
        run(*settings)
    told = {"num_draft_tokens": 6, "acceptance_histogram": [1, 0, 1]}
    servers["target"].besides = {"metrics": {"speculative_decoding": told}}
    (record,) = run(*settings).values()
    usage = record.proposals[0].usage
    assert (usage["target"].drafted, usage["target"].accepted, usage["draft"].generated) == (6, 2, 6)
    assert usage["target"].passes == usage["target"].generated - 2
    with pytest.raises(QuestionsFailedError, match=r"the server speaks of a drafter, which this method has none of"):
        run("method=single", "method.role=target", "limit=1", *addresses(servers))


def test_a_quantised_server_makes_another_run() -> None:
    plain, quantised = (
        make_plan(compose_config("engine=openai", *args)).folder
        for args in ([], ["engine.target.args={quantization: fp8, max_num_seqs: 8}"])
    )
    assert plain != quantised
    assert plain == make_plan(compose_config("engine=openai", "engine.target.args={max_num_seqs: 8}")).folder


def test_a_reward_model_with_another_head_is_told(servers: dict[str, TinyServer]) -> None:
    servers["prm"].changes = {"probs": [0.5, 0.5]}
    remote = engine(prm=servers["prm"].url)
    remote.prepare({"prm": source("prm")}, logs=Path())
    classifier = remote.load_classifier(source("prm"))

    async def classify() -> None:
        try:
            await classifier.classify(Context(prompt=(1, 2, 3)))
        finally:
            await remote.close()

    with pytest.raises(
        ServerError, match=r"engine\.prm: the server gives 2 outputs where the model has 1; start it as"
    ):
        asyncio.run(classify())


def test_the_key_reaches_the_servers_and_no_file(
    run: Run, servers: dict[str, TinyServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers["draft"].api_key = "s3cret-value"
    monkeypatch.setenv("MY_KEY", "s3cret-value")
    settings = ["method=single", "method.role=draft", *addresses(servers), "engine.api_key_variable=MY_KEY"]
    assert all(record.error is None for record in run(*settings, "limit=2").values())
    assert "MY_KEY" in manifest_text(tmp_path)
    assert "s3cret-value" not in manifest_text(tmp_path)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("localhost:8000", r"engine\.draft\.urls='localhost:8000' is wrong: it must be like http://127"),
        ("http://[::1", r"engine\.draft\.urls='http://\[::1' is wrong: it must be like http://127"),
        ("http://gpu1:99999", r"is wrong: it must be like .*, its port a number up to 65535\."),
        ("http://gpu1:port", r"is wrong: it must be like .*, its port a number up to 65535\."),
        ("null", r"^engine\.draft\.urls is not set \(null\); give it a value\.$"),
        ("http://me:s3cret@host:8000", r"engine\.draft\.urls: a URL must hold no password"),
        ("[]", r"engine\.draft\.urls must name one server, or several that differ"),
        ("[http://a:1,http://a:1/v1]", r"engine\.draft\.urls must name one server, or several that differ"),
    ],
)
def test_a_wrong_address_is_told_before_anything_is_asked(url: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told) as error:
        engine(draft=f"'{url}'" if url.startswith("http") or url.startswith("local") else url)
    assert "s3cret" not in str(error.value)


def test_each_run_begins_with_nothing_in_the_servers_caches(servers: dict[str, TinyServer]) -> None:
    """A server outlives runs; what it read in an earlier one would make a later one seem cheaper."""
    remote = engine(draft=servers["draft"].url)
    remote.prepare({"draft": source("draft")}, logs=Path())
    policy = remote.load_policy("draft", source("draft"))

    async def twice() -> None:
        for _ in range(2):
            await policy.generate(Context(prompt=policy.prompt("1+1?")), STEP)
            await policy.generate(Context(prompt=policy.prompt("1+2?")), STEP)
            await remote.forget()
        await remote.close()

    asyncio.run(twice())
    salts = [body["cache_salt"] for _, body in servers["draft"].asked]
    assert salts[0] == salts[1] != salts[2] == salts[3]
    assert (remote.reused("draft", "generate", 30), remote.reused("draft", "logprobs", 30)) == (24, 0)
