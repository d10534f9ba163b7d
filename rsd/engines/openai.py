"""Models behind servers: every role asks its own, such as ``vllm serve`` starts it.

    engine = OpenAIEngine(draft=Remote(urls="http://10.0.0.1:8000"), target=Remote(urls=("http://10.0.0.2:8000", …)))
    engine.prepare(sources, logs=Path("logs"))
    draft = engine.load_policy("draft", sources["draft"])

Tokenizer and configuration of every model are read here, its weights are not. ``python -m rsd.serve`` prints the
commands of servers that match a run.
"""

import asyncio
import re
import resource
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from annotated_types import Ge, Gt

from rsd.cost import Shape
from rsd.engines.base import Call, ModelSource, Totals
from rsd.engines.classifiers import skeleton, width
from rsd.engines.http import CONNECTIONS, Patience, Server, checked_url
from rsd.engines.loading import eos_ids, load_tokenizer, shape_of
from rsd.engines.placement import limit_of
from rsd.engines.remote import RemoteClassifier, RemoteCopies, RemotePolicy
from rsd.errors import ConfigError, ServerError
from rsd.records import PolicyRole, Role

BLOCK = 16  # tokens of a block of vLLM's prefix cache, where a server does not tell


@dataclass(frozen=True, kw_only=True)
class Remote:
    """Where a role is served. `urls`: of one server, or of several with the same model, among which questions are
    spread. `model`: what the servers call it, null for its path. `args`: what the servers were told, as ``engine=vllm``
    would have been; what of it changes the model's output belongs to the run's identity (see ``rsd.identity``)."""

    urls: str | tuple[str, ...]
    model: str | None = None
    args: dict[str, Any] | None = None


class OpenAIEngine:
    """Ask models over vLLM's OpenAI-compatible interface.

    `draft`, `target`, `prm`: `Remote` of each role; those that a method does not need are not asked. `timeout`: seconds
    for one answer. `retries`: of a request that got none, or 429, or a server's error. `api_key_variable`: the
    environment variable that holds the servers' key; the key itself is written nowhere.
    """

    def __init__(
        self,
        *,
        draft: Remote,
        target: Remote,
        prm: Remote,
        timeout: Annotated[float, Gt(0)] = 600,
        retries: Annotated[int, Ge(0)] = 6,
        api_key_variable: str = "VLLM_API_KEY",
    ) -> None:
        remotes: dict[Role, Remote] = {"draft": draft, "target": target, "prm": prm}
        patience = Patience(timeout=timeout, retries=retries, api_key_variable=api_key_variable)
        self._names = {role: remote.model for role, remote in remotes.items()}
        self._servers = {role: _servers(role, remote.urls, patience) for role, remote in remotes.items()}
        self._copies: dict[Role, RemoteCopies] = {}
        self._shapes: dict[Role, Shape] = {}

    def prepare(self, sources: Mapping[Role, ModelSource], logs: Path) -> None:
        """Ask every server what it serves, before the first text is sent.

        Raises ServerError where one does not answer, serves another model or reads too little; ModelError when a
        configuration cannot be read.
        """
        _allow_connections(sum(len(self._servers[role]) for role in sources))
        for role, source in sources.items():
            model = skeleton(role, source)
            self._shapes[role] = shape_of(model)
            if source.drafter is not None:
                self._shapes["draft"] = shape_of(skeleton("draft", source.drafter))
            name = self._names[role] or source.path
            block = asyncio.run(self._checked(role, source, name))
            self._copies[role] = RemoteCopies(self._servers[role], f"engine.{role}", name, block)

    def load_policy(self, role: PolicyRole, source: ModelSource) -> RemotePolicy:
        """The policy of `role`. Raises ModelError."""
        tokenizer = load_tokenizer(source)
        return RemotePolicy(role, tokenizer, eos_ids(source, tokenizer), source, self._copies[role])

    def load_classifier(self, source: ModelSource) -> RemoteClassifier:
        """The PRM's classifier. Raises ModelError."""
        return RemoteClassifier(load_tokenizer(source), width(skeleton("prm", source)), self._copies["prm"])

    def shapes(self) -> Mapping[Role, Shape]:
        """Shape of each model that is asked."""
        return dict(self._shapes)

    def weights(self) -> Mapping[Role, int]:
        """Nothing: servers do not tell."""
        return {}

    def totals(self) -> Mapping[Role, Totals]:
        """Tokens that the models ran so far, of those whose servers tell what came from their caches (they do not of a
        PRM)."""
        return {role: copies.totals for role, copies in self._copies.items() if copies.totals.forwards}

    async def forget(self) -> None:
        """Let the next calls share nothing with earlier ones in the servers' caches."""
        for copies in self._copies.values():
            copies.forget()

    def reused(self, role: Role, call: Call, shared: int) -> int:
        """Whole blocks of the cache; none for the log-probabilities of a text, which vLLM reads past it."""
        block = self._copies[role].block
        return 0 if call == "logprobs" else shared // block * block

    def devices(self) -> Mapping[Role, Sequence[int]]:
        """None that anybody tells of."""
        return {}

    def sharing(self) -> Sequence[frozenset[Role]]:
        """None: on which devices the servers run nobody tells (``scheduling=gated`` says that it is one)."""
        return []

    async def close(self) -> None:
        """End all connections; the servers stay."""
        await asyncio.gather(*(server.close() for servers in self._servers.values() for server in servers))

    async def _checked(self, role: Role, source: ModelSource, name: str) -> int:
        """Ask the servers of `role` for what `source` needs; tokens of a block of their cache."""
        servers = self._servers[role]
        try:
            await asyncio.gather(*(_check(role, server, source, name) for server in servers))
            told = re.search(r'\bblock_size="(\d+)"', await servers[0].text("/metrics"))
        finally:
            await self.close()
        return int(told[1]) if told else BLOCK


def _servers(role: Role, urls: str | tuple[str, ...], patience: Patience) -> list[Server]:
    key = f"engine.{role}.urls"
    named = [checked_url(url, key) for url in ((urls,) if isinstance(urls, str) else urls)]
    if not named or len(set(named)) < len(named):
        raise ConfigError(f"{key} must name one server, or several that differ.")
    return [Server(url, key=key, patience=patience) for url in named]


async def _check(role: Role, server: Server, source: ModelSource, name: str) -> None:
    """Raises ServerError where `server` has no model `name`, or one that reads less than `source` may take."""
    cards = (await server.ask_once("/v1/models")).get("data", [])
    card = next((card for card in cards if card.get("id") == name), None)
    if card is None:
        served = ", ".join(str(card.get("id")) for card in cards) or "nothing"
        raise ServerError(
            f"engine.{role}.urls: {server.url} serves {served}, where {source.key} says {source.path}; name the right "
            f"server, or set engine.{role}.model to the name that it gives this very model."
        )
    longest = card.get("max_model_len")
    if longest is not None and longest < source.context:
        raise ServerError(
            f"engine.{role}.urls: {server.url} reads at most {longest} tokens, and this run may take {source.context}; "
            f"start it with --max-model-len {source.context + 1}, or lower {limit_of(role)}."
        )


def _allow_connections(servers: int) -> None:
    """Let this process hold open as many files as it may need, where the system lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = servers * CONNECTIONS + 1024
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
