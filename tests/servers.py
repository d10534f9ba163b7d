"""Small real HTTP servers for the tests: the tiny family behind the part of vLLM's interface that is used."""

import asyncio
import itertools
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from aiohttp import web

from rsd.engines.base import Context, ModelSource, Sampling
from rsd.engines.transformers import TransformersEngine
from rsd.models import source_of
from rsd.plan import make_plan
from rsd.records import Role
from tests.conftest import compose_config

Fault = Callable[[web.Request], web.StreamResponse]


def hang_up(request: web.Request) -> web.StreamResponse:
    """A fault: the connection is gone."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


class TinyServer:
    """Serves the tiny family's `role` from a thread. `asked`: path and body of each request about a text. `faults`:
    what the next requests get in place of an answer. `api_key`: what it asks for. `dies_after`: so many answers, and
    then it is gone, until it is entered again. `changes`: of what it answers."""

    def __init__(self, role: Role, *, api_key: str | None = None, dies_after: int | None = None) -> None:
        self.role = role
        self.api_key = api_key
        self.reset()
        self._left = itertools.count() if dies_after is None else iter(range(dies_after))
        self._port = 0

    def reset(self) -> None:
        """Forget what was asked; answer as a server should."""
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.faults: list[Fault] = []
        self.changes: dict[str, Any] = {}
        self.card: dict[str, Any] = {"id": source(self.role).path, "max_model_len": 1024}
        self.besides: dict[str, Any] = {}  # what a completion holds besides
        self.page: str | None = None  # in place of the list of models

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        started = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, args=(started,), daemon=True)
        self._thread.start()
        assert started.wait(30)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._ended.set)
            self._thread.join(30)
        self._left = itertools.count()

    def _serve(self, started: threading.Event) -> None:
        self._loop.run_until_complete(self._run(started))
        self._loop.close()

    async def _run(self, started: threading.Event) -> None:
        self._ended = asyncio.Event()
        engine = TransformersEngine(threads=1)
        if self.role == "prm":
            self._classifier = engine.load_classifier(source("prm"))
        else:
            self._policy = engine.load_policy(self.role, source(self.role))
        app = web.Application(middlewares=[self._gate])
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_post("/v1/completions", self._complete)
        app.router.add_post("/classify", self._classify)
        runner = web.AppRunner(app, shutdown_timeout=0.0, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", self._port, reuse_address=True)
        await site.start()
        self._port = runner.addresses[0][1]
        started.set()
        await self._ended.wait()
        await runner.cleanup()
        await engine.close()

    @web.middleware
    async def _gate(self, request: web.Request, handler: Any) -> web.StreamResponse:
        key = f"Bearer {self.api_key}"
        if self.api_key and request.path.startswith("/v1") and request.headers.get("Authorization") != key:
            return web.json_response({"error": "Unauthorized"}, status=401)
        if request.method == "POST":
            self.asked.append((request.path, await request.json()))
            if next(self._left, None) is None:
                self._ended.set()
                return hang_up(request)
            if self.faults:
                return self.faults.pop(0)(request)
        return await handler(request)

    async def _models(self, _: web.Request) -> web.StreamResponse:
        if self.page is not None:
            return web.Response(text=self.page, content_type="text/html")
        return web.json_response({"object": "list", "data": [self.card]})

    async def _metrics(self, _: web.Request) -> web.StreamResponse:
        return web.Response(text='vllm:cache_config_info{block_size="8",engine="0"} 1.0\n')

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        prompt = tuple(body["prompt"])
        if len(prompt) + body["max_tokens"] > self.card["max_model_len"]:
            message = f"This model's maximum context length is {self.card['max_model_len']} tokens."
            return web.json_response({"error": {"message": message, "code": 400}}, status=400)
        if "prompt_logprobs" in body:
            told = await self._policy.logprobs(Context(prompt=prompt[:1]), prompt[1:])
            at = [{str(token): {"logprob": value}} for token, value in zip(prompt[1:], told.values, strict=True)]
            return web.json_response({"choices": [{"prompt_logprobs": [None, *at]}]})
        sampling = Sampling(**{name: body[name] for name in ("temperature", "top_p", "max_tokens", "seed", "stop")})
        written = await self._policy.generate(Context(prompt=prompt), sampling)
        choice = {
            "text": written.text,
            "token_ids": written.token_ids,
            "finish_reason": "length" if written.finish == "length" else "stop",
            "stop_reason": body["stop"] if written.finish == "step" else None,
            "logprobs": {"token_logprobs": [written.logprob]},
            **self.changes,
        }
        usage = {"prompt_tokens": len(prompt), "prompt_tokens_details": {"cached_tokens": written.usage.cached}}
        return web.json_response({"choices": [choice], "usage": usage, **self.besides})

    async def _classify(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        assert body["use_activation"] is False
        found = await self._classifier.classify(Context(prompt=tuple(body["input"])))
        return web.json_response({"data": [{"probs": found.logits, **self.changes}]})


def source(role: Role) -> ModelSource:
    """The tiny family's model of `role`."""
    return source_of(make_plan(compose_config("limit=1")), role)


def manifest_text(folder: Path) -> str:
    """All that a run wrote."""
    return "".join(path.read_text() for path in folder.rglob("*.json*"))


def html(status: int) -> Fault:
    """A fault: a web page."""
    return lambda _: web.Response(text="<!doctype html><p>Bad gateway</p>", content_type="text/html", status=status)


def refusal(status: int, message: str) -> Fault:
    """A fault as vLLM tells of one."""
    return lambda _: web.Response(text=json.dumps({"error": {"message": message}}), status=status)
