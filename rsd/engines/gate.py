"""The device gate: where several models share a device, whose calls go in.

Engines that run at the same time on one device fight with small batches. Behind a gate one of them runs while the
others' calls gather; it hands over when its share of the outstanding calls has fallen below `SHARE`, to the engine that
has most waiting::

    models = gated(models, [frozenset({"draft", "target", "prm"})])   # all on one device

Nothing waits for long: an engine without calls in flight hands over at once.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from rsd.engines.base import Completion, Context, Logprobs, Models, PolicyModel, Reward, RewardModel, Sampling
from rsd.records import Role

SHARE = 0.8  # of the outstanding calls, below which the running engine hands over


class DeviceGate:
    """Lets the calls of one role at a time into a device; those that are in already finish beside it."""

    def __init__(self, share: float = SHARE) -> None:
        self._share = share
        self._running: Role | None = None
        self._inside: Counter[Role] = Counter()
        self._waiting: defaultdict[Role, list[asyncio.Future[None]]] = defaultdict(list)

    @asynccontextmanager
    async def entered(self, role: Role) -> AsyncIterator[None]:
        """Hold a place in the device for one call of `role`, as soon as its turn comes."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[role].append(turn)
        self._give_turns()
        try:
            await turn
            yield
        finally:
            if turn in self._waiting[role]:  # called off before its turn came
                self._waiting[role].remove(turn)
            else:
                self._inside[role] -= 1
            self._give_turns()

    def _give_turns(self) -> None:
        """Let in what waits for the running engine; or first hand over, if that has too little left."""
        waiting = {role: len(turns) for role, turns in self._waiting.items()}
        longest: Role = max(waiting, key=waiting.__getitem__)
        before = self._running
        running = before if before is not None and self._keeps(before, waiting) else longest
        self._running = running
        turns, self._waiting[running] = self._waiting[running], []
        self._inside[running] += len(turns)
        for turn in turns:
            if not turn.done():  # else it was called off, and is about to leave
                turn.set_result(None)

    def _keeps(self, running: Role, waiting: Mapping[Role, int]) -> bool:
        """Whether the running engine has enough of the outstanding calls to go on."""
        own = self._inside[running] + waiting.get(running, 0)
        return own > 0 and own >= self._share * (self._inside[running] + sum(waiting.values()))


class _GatedPolicy:
    """A policy behind a gate."""

    def __init__(self, policy: PolicyModel, role: Role, gate: DeviceGate) -> None:
        self._policy, self._role, self._gate = policy, role, gate
        self.tokenizer = policy.tokenizer

    def prompt(self, question: str) -> tuple[int, ...]:
        """Token ids of the prompt."""
        return self._policy.prompt(question)

    async def generate(self, context: Context, sampling: Sampling) -> Completion:
        """Continue `context` by one piece, when its turn comes."""
        async with self._gate.entered(self._role):
            return await self._policy.generate(context, sampling)

    async def logprobs(self, context: Context, continuation: Sequence[int]) -> Logprobs:
        """What the model would have given each token of `continuation`, when its turn comes."""
        async with self._gate.entered(self._role):
            return await self._policy.logprobs(context, continuation)


class _GatedReward:
    """A reward model behind a gate."""

    def __init__(self, prm: RewardModel, gate: DeviceGate) -> None:
        self._prm, self._gate = prm, gate

    def context(self, question: str, steps: Sequence[str]) -> Context:
        """What the reward model reads. Raises PRMContextError."""
        return self._prm.context(question, steps)

    async def score(self, question: str, steps: Sequence[str]) -> Reward:
        """Reward of the newest of `steps`, when its turn comes."""
        async with self._gate.entered("prm"):
            return await self._prm.score(question, steps)


def gated(models: Models, sharing: Iterable[frozenset[Role]]) -> Models:
    """`models`, with those that share a device behind one gate; `sharing` names them, each role once at most."""
    gates: dict[Role, DeviceGate] = {}
    for roles in sharing:
        gates |= dict.fromkeys(roles, DeviceGate())
    draft, target, prm = models.draft, models.target, models.prm
    return replace(
        models,
        draft=_GatedPolicy(draft, "draft", gates["draft"]) if draft and "draft" in gates else draft,
        target=_GatedPolicy(target, "target", gates["target"]) if target and "target" in gates else target,
        prm=_GatedReward(prm, gates["prm"]) if prm and "prm" in gates else prm,
    )
