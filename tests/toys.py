"""Policies and reward models with a script instead of a network, for the rules of decoding."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rsd.engines.base import Completion, Context, Models, Reward, Sampling
from rsd.methods.decoding import Decoding, Limits, StepRule
from rsd.methods.trajectory import Trajectory
from rsd.records import Finish, Problem, Usage

EOS = 0
QUESTION = Problem(question_id="q", question="How many?", answer="1")


@dataclass
class ScriptedPolicy:
    """Writes the next text of `script` at every call, one token per character, EOS where a text
    ends in ``$``; cuts it at `max_tokens`. Remembers what it was asked."""

    script: Sequence[str]
    prompt_tokens: int = 10
    asked: list[tuple[Context, Sampling]] = field(default_factory=list)
    tokenizer: None = None

    def prompt(self, question: str) -> tuple[int, ...]:
        return (1,) * self.prompt_tokens

    async def generate(self, context: Context, sampling: Sampling) -> Completion:
        text = self.script[len(self.asked)]
        self.asked.append((context, sampling))
        ids = [EOS if letter == "$" else ord(letter) for letter in text]
        finish: Finish = "eos" if text.endswith("$") else "step"
        if len(ids) > sampling.max_tokens:
            ids, finish = ids[: sampling.max_tokens], "length"
        written = "".join(chr(i) for i in ids if i != EOS)
        usage = Usage(generated=len(ids), prompt=len(context.prompt) + len(context.response), passes=len(ids))
        return Completion(text=written, token_ids=tuple(ids), logprob=-1.0, finish=finish, usage=usage)


@dataclass
class ScriptedPRM:
    """Gives `reward` of the newest step, and remembers what it was shown."""

    reward: Callable[[str], float]
    shown: list[tuple[str, ...]] = field(default_factory=list)

    def context(self, question: str, steps: Sequence[str]) -> Context:
        return Context(prompt=tuple(question.encode()), response=tuple("".join(steps).encode()))

    async def score(self, question: str, steps: Sequence[str]) -> Reward:
        self.shown.append(tuple(steps))
        return Reward(value=self.reward(steps[-1]), usage=Usage(prompt=1, verified=1, passes=1))


def trajectory(models: Models, *, step: StepRule | None = None, **limits: int) -> Trajectory:
    """A trajectory of the toy question under `limits`, greedy."""
    decoding = Decoding(temperature=0.0, top_p=1.0, limits=Limits(**limits), step=step or StepRule(), seed=0)
    return Trajectory(QUESTION, 0, models=models, decoding=decoding, clock=lambda: 0.0)


def solved(method: object, started: Trajectory) -> Trajectory:
    """Run `method` on `started` to its end."""
    asyncio.run(method.solve(started))
    return started
