"""One server that speaks vLLM's HTTP interface: what may pass is tried again, all else is one sentence.

server = Server("http://127.0.0.1:8000", key="engine.draft.urls", patience=Patience())
answer = await server.ask("/v1/completions", {"model": "m", "prompt": [1, 2, 3]})
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import orjson
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_exponential, wait_random

from rsd.errors import ConfigError, ServerError

CONNECTIONS = 1024  # to one server at a time: as many requests as it takes in a step
PASSING = (429, 500, 502, 503, 504)  # answers of a server that may have another one later


@dataclass(frozen=True, kw_only=True)
class Patience:
    """`timeout`: seconds that an answer may take. `retries`: how often a request is sent again that got none; waits
    between them double from half a second up to 30 seconds, with up to one more by chance. `api_key_variable`:
    environment variable with the key."""

    timeout: float = 600
    retries: int = 6
    api_key_variable: str = "VLLM_API_KEY"


class PassingError(ServerError):
    """A server gave no answer, or none that will stay."""


class AbsentError(PassingError):
    """Nothing answers at the address."""


class Server:
    """The server at `url`. `key` is the setting that named it. `lost`: whether it gave the last request up for good;
    the next ones are sent once only, until it answers again."""

    def __init__(self, url: str, *, key: str, patience: Patience) -> None:
        self.url = url
        self.lost = False
        self._key = key
        self._patience = patience
        self._session: aiohttp.ClientSession | None = None

    async def ask(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """POST `body` as JSON, or GET without one; the answer's JSON.

        Raises ServerError: at once where the server refuses the request, else when all retries were in vain.
        """
        retrying = AsyncRetrying(
            stop=stop_after_attempt(1 if self.lost else 1 + self._patience.retries),
            wait=wait_exponential(multiplier=0.5, max=30) + wait_random(0, 1),
            retry=retry_if_exception_type(PassingError),
            reraise=True,
        )
        try:
            answer: dict[str, Any] = await retrying(self.ask_once, path, body)
        except AbsentError:
            self.lost = True
            raise
        self.lost = False
        return answer

    async def ask_once(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """As `ask`, without retries."""
        content, status = await self._send(path, body)
        if status in PASSING:
            raise PassingError(f"{self._key}: {self.url} answered {status} ({_told(content)}).")
        if status in (401, 403):
            raise ServerError(self._about_the_key(status))
        if status >= 400:
            mend = "; python -m rsd.serve says how to start one that takes it" if status == 404 else ""
            raise ServerError(
                f"{self._key}: {self.url} refused a request to {path} ({status}: {_told(content)}){mend}."
            )
        try:
            answer = orjson.loads(content)
        except orjson.JSONDecodeError:
            answer = None
        if not isinstance(answer, dict):
            raise ServerError(
                f"{self._key}: {self.url} answered {_told(content)} where JSON is expected; name a server that "
                "python -m rsd.serve starts."
            )
        return answer

    async def text(self, path: str) -> str:
        """What `path` holds, as text. Raises ServerError where there is no answer."""
        return (await self._send(path, None))[0].decode(errors="replace")

    async def close(self) -> None:
        """End all connections; the next request opens new ones."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _send(self, path: str, body: Mapping[str, Any] | None) -> tuple[bytes, int]:
        """The answer's content and status."""
        if self._session is None:  # it belongs to the event loop that it is first used in
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=CONNECTIONS),
                timeout=aiohttp.ClientTimeout(total=self._patience.timeout, sock_connect=10),
                headers={"Content-Type": "application/json", **self._authorization()},
            )
        try:
            data = None if body is None else orjson.dumps(body)
            method = "GET" if body is None else "POST"
            async with self._session.request(method, self.url + path, data=data) as response:
                return await response.read(), response.status
        except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError) as error:
            raise AbsentError(f"{self._key}: {self.url} is not there ({error}); start it, or name another.") from error
        except TimeoutError as error:
            raise PassingError(
                f"{self._key}: {self.url} gave no answer within engine.timeout={self._patience.timeout:g} seconds."
            ) from error
        except aiohttp.ClientError as error:
            raise ServerError(f"{self._key}: what answers at {self.url} is no HTTP server ({error}).") from error

    def _authorization(self) -> dict[str, str]:
        api_key = os.environ.get(self._patience.api_key_variable)
        return {"Authorization": f"Bearer {api_key}"} if api_key else {}

    def _about_the_key(self, status: int) -> str:
        name = self._patience.api_key_variable
        what = f"refuses the API key in {name}" if self._authorization() else "asks for an API key"
        return f"{self._key}: {self.url} {what} ({status}); set the environment variable {name} to the server's key."


def checked_url(url: str, key: str) -> str:
    """`url` without a trailing ``/v1``. Raises ConfigError where it is none, or holds a password: it is written into
    manifests."""
    if "@" in url:
        raise ConfigError(f"{key}: a URL must hold no password; put the key into engine.api_key_variable's variable.")
    try:
        parts = urlsplit(url)
        whole = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # of brackets, or of a port
        whole = False
    if not whole:
        raise ConfigError(
            f"{key}={url!r} is wrong: it must be like http://127.0.0.1:8000 or http://[::1]:8000, its port a number up "
            "to 65535."
        )
    return url.rstrip("/").removesuffix("/v1")


def _told(content: bytes) -> str:
    """What an answer says, in a line."""
    try:
        told = orjson.loads(content)
    except orjson.JSONDecodeError:
        text = " ".join(content.decode(errors="replace").split())
        return "an HTML page" if text.startswith("<") else repr(text[:200])
    while isinstance(told, dict):
        told = next((told[name] for name in ("error", "message", "detail") if name in told), None) or str(told)
    return " ".join(str(told).split()).rstrip(".")[:300]
