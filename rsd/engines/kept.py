"""An engine that outlives a run, so that runs of one job load their weights once.

    with KeptEngine(config.engine, sources) as engine:
        for config in configs:
            invoke(config, engine)

A run finds the models of the ones before it, and nothing that they have read: its usage is what it would be alone.
"""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

from rsd.config import build
from rsd.cost import Shape
from rsd.engines.base import Call, Classifier, Engine, ModelSource, PolicyModel, Totals
from rsd.records import PolicyRole, Role

Result = TypeVar("Result")


class KeptEngine:
    """The engine that `settings` describe, made when the first model is asked for. `expected`: models of later runs,
    which get their place beside those of the first. A run that needs another model for a role ends the engine, and
    begins a new one."""

    def __init__(self, settings: Mapping[str, Any], expected: Mapping[Role, ModelSource]) -> None:
        self._settings = settings
        self._expected = expected
        self._engine: Engine | None = None
        self._sources: Mapping[Role, ModelSource] = {}
        self._policies: dict[Role, PolicyModel] = {}
        self._classifier: Classifier | None = None
        self._roles: set[Role] = set()  # of the present run
        self._before: Mapping[Role, Totals] = {}

    def __enter__(self) -> Self:
        self._runner = asyncio.Runner()  # an engine lives in one event loop
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()
        self._runner.close()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run the coroutine in the event loop that all runs share."""
        return self._runner.run(work)

    def end(self) -> None:
        """Stop serving and free the models; the next run begins anew."""
        if self._engine is not None:
            self.run(self._engine.close())
        self._engine, self._sources, self._policies, self._classifier = None, {}, {}, None

    def prepare(self, sources: Mapping[Role, ModelSource], logs: Path) -> None:
        """Hear what the next run needs: as `Engine.prepare`."""
        if not sources.items() <= self._sources.items():
            self.end()
            self._engine = build(self._settings, "engine")
            self._sources = {**self._expected, **sources}
            self._engine.prepare(self._sources, logs)
        drafters: set[Role] = {"draft" for source in sources.values() if source.drafter}
        self._roles = {*sources, *drafters}
        self._before = self._made.totals()

    def load_policy(self, role: PolicyRole, source: ModelSource) -> PolicyModel:
        """The policy of `role`, loaded now or by an earlier run."""
        if role not in self._policies:
            self._policies[role] = self._made.load_policy(role, source)
        return self._policies[role]

    def load_classifier(self, source: ModelSource) -> Classifier:
        """The PRM's classifier, loaded now or by an earlier run."""
        if self._classifier is None:
            self._classifier = self._made.load_classifier(source)
        return self._classifier

    def shapes(self) -> Mapping[Role, Shape]:
        """Shape of each model that the present run needs."""
        shapes = self._engine.shapes() if self._engine is not None else {}
        return {role: shape for role, shape in shapes.items() if role in self._roles}

    def weights(self) -> Mapping[Role, int]:
        """Bytes of weights of each model that the present run needs."""
        weights = self._engine.weights() if self._engine is not None else {}
        return {role: size for role, size in weights.items() if role in self._roles}

    def totals(self) -> Mapping[Role, Totals]:
        """What the present run's models have run since it began."""
        totals = self._engine.totals() if self._engine is not None else {}
        return {role: t - self._before.get(role, Totals()) for role, t in totals.items() if role in self._roles}

    def devices(self) -> Mapping[Role, Sequence[int]]:
        """The devices of each model that the present run needs."""
        devices = self._engine.devices() if self._engine is not None else {}
        return {role: numbers for role, numbers in devices.items() if role in self._roles}

    def sharing(self) -> Sequence[frozenset[Role]]:
        """Which of the loaded models share a device, each group once; none where the engine itself gives turns."""
        groups = self._engine.sharing() if self._engine is not None else []
        present = [group & self._roles for group in groups]
        return [group for group in present if len(group) > 1]

    def reused(self, role: Role, call: Call, shared: int) -> int:
        """As `Engine.reused`."""
        return self._made.reused(role, call, shared)

    async def forget(self) -> None:
        """Forget what the models have read."""
        if self._engine is not None:
            await self._engine.forget()

    async def close(self) -> None:
        """The run is over: its models stay."""
        await self.forget()
        self._roles = set()

    @property
    def _made(self) -> Engine:
        assert self._engine is not None, "an engine is prepared before a model is loaded"
        return self._engine
