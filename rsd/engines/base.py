"""The interfaces between methods and models.

A method awaits ``policy.generate(context, sampling)`` and ``prm.score(question, steps)``; what is
batched, cached or placed where is the engine's own affair. Same call, same answer.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from rsd.cost import Shape
from rsd.records import Finish, PolicyRole, Role, Usage

if TYPE_CHECKING:  # heavy, and only named here
    from transformers import PreTrainedTokenizerBase

Call = Literal["generate", "logprobs", "score"]  # what a model is asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How one piece of text is drawn.

    `temperature` 0 is greedy. `max_tokens` >= 1. `stop`, a string or a pattern (where the engine `matches_patterns`),
    ends the piece with the token that completes it in the decoded output (kept); None lets the piece run to EOS.
    `seed` keys the draw.
    """

    temperature: float
    top_p: float
    max_tokens: int
    seed: int
    stop: str | re.Pattern[str] | None


def completes(stop: str | re.Pattern[str], text: str) -> bool:
    """Whether `stop` has come to stand in `text`."""
    return stop in text if isinstance(stop, str) else stop.search(text) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a policy continues: its own prompt's token ids and the response so far, in its own tokens."""

    prompt: tuple[int, ...]
    response: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """A piece of text: `text` decodes `token_ids` less EOS; `logprob` is its log-probability in nats
    at temperature 1 and top-p 1, summed over all its tokens, delimiter and EOS included. `drafter`: what the
    model's drafter did for it, where it has one."""

    text: str
    token_ids: tuple[int, ...]
    logprob: float
    finish: Finish
    usage: Usage
    drafter: Usage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Logprobs:
    """Log-probabilities in nats [tokens of a continuation], at temperature 1 and top-p 1."""

    values: tuple[float, ...]
    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Reward:
    """The newest step's reward."""

    value: float
    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Classification:
    """The raw outputs [labels] of a classifier's head at the last token."""

    logits: tuple[float, ...]
    usage: Usage


class PolicyModel(Protocol):
    """A language model that writes steps."""

    tokenizer: "PreTrainedTokenizerBase"

    def prompt(self, question: str) -> tuple[int, ...]:
        """Token ids of the rendered prompt for `question`."""
        ...

    async def generate(self, context: Context, sampling: Sampling) -> Completion:
        """Continue `context` by one piece."""
        ...

    async def logprobs(self, context: Context, continuation: Sequence[int]) -> Logprobs:
        """What the model would have given each token of `continuation` (one or more) after `context`."""
        ...


class Classifier(Protocol):
    """A model read at the last token of its input."""

    tokenizer: "PreTrainedTokenizerBase"
    labels: int  # width of the head

    async def classify(self, context: Context) -> Classification:
        """Read the head at the last token of `context`."""
        ...


class RewardModel(Protocol):
    """A process reward model."""

    def context(self, question: str, steps: Sequence[str]) -> Context:
        """What the model reads to score the newest of `steps`. Raises PRMContextError as `score`."""
        ...

    async def score(self, question: str, steps: Sequence[str]) -> Reward:
        """Reward of the newest of `steps` (each with its delimiter, none with EOS).

        Raises PRMContextError when the input exceeds the model's `max_length`, RewardError when
        the value is not a reward.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """The models of a run, by role; only those that the method needs are there.

    `one_tokenizer`: draft and target read each other's tokens as they are. `remarks`: sentences on
    what is not as the configuration or an adapter expects, and runs all the same.
    """

    draft: PolicyModel | None = None
    target: PolicyModel | None = None
    prm: RewardModel | None = None
    one_tokenizer: bool = True
    remarks: tuple[str, ...] = ()

    @property
    def policies(self) -> list[PolicyRole]:
        """The roles of the policies that are there."""
        roles: tuple[PolicyRole, ...] = ("draft", "target")
        return [role for role in roles if getattr(self, role) is not None]

    def policy(self, role: PolicyRole) -> PolicyModel:
        """The policy of `role`; a method asks only for roles that it declared."""
        model = self.draft if role == "draft" else self.target
        assert model is not None, f"the method did not declare the role {role}"
        return model


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSource:
    """Where a model comes from and how it is loaded.

    `key` names the setting to change when loading fails (``model.draft.path``). `path` is a hub id or a
    local folder. `context` is the most tokens one request of the run can hold. `prompt` is the
    prompt with ``{question}`` in it, or None for the tokenizer's own chat template, which then begins
    with `system`. `parameters` is how many the model should have, None where nobody says. `drafter` writes
    `drafted` tokens at a time ahead of the model, which verifies them; `greedy`: all of them at temperature 0
    (speculative decoding). `label_tokens`: entries of the vocabulary whose logits are a classifier's outputs, where
    the checkpoint is a language model.
    """

    key: str
    path: str
    revision: str | None
    dtype: str
    context: int
    prompt: str | None = None
    system: str | None = None
    parameters: int | None = None
    drafter: "ModelSource | None" = None
    drafted: int = 0
    greedy: bool = True
    label_tokens: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What a model really ran: tokens, padding beside them, forward passes and seconds in them."""

    tokens: int = 0
    padding: int = 0
    forwards: int = 0
    seconds: float = 0.0

    def __add__(self, other: "Totals") -> "Totals":
        return Totals(
            tokens=self.tokens + other.tokens,
            padding=self.padding + other.padding,
            forwards=self.forwards + other.forwards,
            seconds=self.seconds + other.seconds,
        )

    def __sub__(self, other: "Totals") -> "Totals":
        return Totals(
            tokens=self.tokens - other.tokens,
            padding=self.padding - other.padding,
            forwards=self.forwards - other.forwards,
            seconds=self.seconds - other.seconds,
        )


class Engine(Protocol):
    """Loads models and serves them until closed. An engine whose policies can end a piece of text where a regular
    expression matches has ``matches_patterns = True`` in its class."""

    def prepare(self, sources: Mapping[Role, ModelSource], logs: Path) -> None:
        """Hear of every model of the run before the first is loaded, and of the folder for what its own
        processes print. Raises ModelError, ConfigError."""
        ...

    def load_policy(self, role: PolicyRole, source: ModelSource) -> PolicyModel:
        """Load the policy of `role`. Raises ModelError."""
        ...

    def load_classifier(self, source: ModelSource) -> Classifier:
        """Load the PRM's classifier. Raises ModelError."""
        ...

    def shapes(self) -> Mapping[Role, Shape]:
        """Shape of each loaded model."""
        ...

    def weights(self) -> Mapping[Role, int]:
        """Bytes of weights that each model takes, all copies together; weights that two models have in common count
        for the first of them only, where they are loaded once. Nothing where the engine does not load them itself."""
        ...

    def totals(self) -> Mapping[Role, Totals]:
        """Physical totals of each loaded model so far."""
        ...

    def devices(self) -> Mapping[Role, Sequence[int]]:
        """The numbers of the devices that hold each loaded model; nothing where it runs elsewhere."""
        ...

    def sharing(self) -> Sequence[frozenset[Role]]:
        """Which of the loaded models share a device, each group once; none where the engine itself gives turns."""
        ...

    async def forget(self) -> None:
        """Forget what the loaded models have read: the next call finds nothing in a cache."""
        ...

    def reused(self, role: Role, call: Call, shared: int) -> int:
        """How many of the `shared` tokens at its beginning that a loaded model has read before a call finds in the
        cache, as long as nothing was evicted."""
        ...

    async def close(self) -> None:
        """Stop serving and free the models."""
        ...
