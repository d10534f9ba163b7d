"""A process reward model: an adapter for its format over a classifier that reads the last token.

    prm = ProcessReward(adapter, classifier, max_length=8192)
    reward = await prm.score(question, ["First step.\\n\\n", "Second step.\\n\\n"])

A new format is one adapter class in a file here and one YAML in ``conf/prm/``.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, ClassVar, Protocol

from rsd.engines.base import Classifier, Context, Reward
from rsd.errors import ModelError, PRMContextError, RewardError
from rsd.sigmoid import sigmoid

if TYPE_CHECKING:  # heavy, and only named here
    from transformers import PreTrainedTokenizerBase


class Adapter(Protocol):
    """One reward model's input format and the meaning of its head. Every adapter derives from it."""

    labels: ClassVar[int]  # width of the head
    bounds: ClassVar[tuple[float, float]]  # least and greatest reward
    # of a reward model that is a language model: entries of its vocabulary, whose logits are the head's outputs
    label_tokens: ClassVar[tuple[str, ...]] = ()

    def prompt(self, tokenizer: "PreTrainedTokenizerBase", question: str) -> tuple[int, ...]:
        """Token ids of all that comes before the first step."""
        ...

    def step(self, tokenizer: "PreTrainedTokenizerBase", text: str, first: bool) -> tuple[int, ...]:
        """Token ids of one step, ending in the token where its score is read (but for `newest`). `first`: it follows
        the question, not another step."""
        ...

    def newest(self, tokenizer: "PreTrainedTokenizerBase", text: str, first: bool) -> tuple[int, ...]:
        """Token ids of the step that is scored, where a format closes it with something that does not stay once another
        step follows; they end where the score is read."""
        return self.step(tokenizer, text, first)

    def value(self, logits: Sequence[float]) -> float:
        """The reward, from the head's raw outputs [labels]."""
        ...

    def remarks(self, tokenizer: "PreTrainedTokenizerBase") -> list[str]:
        """Sentences on what `tokenizer` has otherwise than the documented model."""
        return []


def squashed(kind: type[Adapter]) -> type[Adapter]:
    """`kind` with the sigmoid of its reward, which lies in [0, 1] (``reward_transform=sigmoid``)."""

    class Squashed(kind):  # type: ignore[misc, valid-type]
        bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

        def value(self, logits: Sequence[float]) -> float:
            return sigmoid(super().value(logits))

    Squashed.__name__ = kind.__name__
    return Squashed


class ProcessReward:
    """Scores the newest step of a solution; earlier steps come from the engine's cache.

    `max_length`: most tokens of question and steps together. Raises ModelError when the
    classifier's head is not as wide as the adapter expects.
    """

    def __init__(self, adapter: Adapter, classifier: Classifier, *, max_length: int) -> None:
        if classifier.labels != adapter.labels:
            raise ModelError(
                f"prm.path: the model's head has {classifier.labels} outputs where {type(adapter).__name__} reads "
                f"{adapter.labels}; name the reward model that belongs to prm.adapter, or another adapter."
            )
        self._adapter = adapter
        self._classifier = classifier
        self._max_length = max_length
        # every call names the whole solution: encode each question and step once
        self._prompt = lru_cache(maxsize=4096)(partial(adapter.prompt, classifier.tokenizer))
        self._step = lru_cache(maxsize=65536)(partial(adapter.step, classifier.tokenizer))
        self._newest = lru_cache(maxsize=4096)(partial(adapter.newest, classifier.tokenizer))

    def context(self, question: str, steps: Sequence[str]) -> Context:
        """What the model reads: the question and `steps` in its own format.

        Raises PRMContextError beyond `max_length` (nothing is ever cut).
        """
        prompt = self._prompt(question)
        before = tuple(token for n, text in enumerate(steps[:-1]) for token in self._step(text, n == 0))
        response = before + self._newest(steps[-1], len(steps) == 1)
        if len(prompt) + len(response) > self._max_length:
            raise PRMContextError(f"{len(prompt) + len(response)} tokens exceed prm.max_length={self._max_length}")
        return Context(prompt=prompt, response=response)

    async def score(self, question: str, steps: Sequence[str]) -> Reward:
        """Reward of the newest of `steps`, given the others.

        Raises PRMContextError as `context`, RewardError when the value is not a finite number within the adapter's
        bounds.
        """
        answer = await self._classifier.classify(self.context(question, steps))
        value = self._adapter.value(answer.logits)
        low, high = self._adapter.bounds
        if not (math.isfinite(value) and low <= value <= high):
            raise RewardError(
                f"The reward model gave {value} for step {len(steps)}, which is no reward in [{low:g}, {high:g}]; "
                "its weights may be corrupt, or its dtype too narrow (prm.dtype)."
            )
        return Reward(value=value, usage=replace(answer.usage, verified=len(self._newest(steps[-1], len(steps) == 1))))
