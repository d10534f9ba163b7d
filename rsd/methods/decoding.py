"""The settings of decoding that every method shares: limits, what a step is, sampling::

Decoding(temperature=0.0, top_p=1.0, limits=Limits(total_tokens=4096), step=StepRule(), seed=0)
"""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Gt, Le, MinLen

Positive = Annotated[int, Ge(1)]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Where decoding stops, the same for every method.

    `total_tokens` bounds prompt and response together, `response_tokens` (null: no bound) the
    response, `step_tokens` one step, `steps` their number. `repeats` = k > 0 ends a question after
    k + 1 equal consecutive steps; 0 never does.
    """

    total_tokens: Positive = 4096
    step_tokens: Positive = 2048
    steps: Positive = 100
    response_tokens: Positive | None = None
    repeats: Annotated[int, Ge(0)] = 0


@dataclass(frozen=True, kw_only=True)
class StepRule:
    """What a step is: text up to and with `delimiter`. Whitespace alone is no step: the
    model goes on within the proposal, `blank_pieces` times at most, before the question ends."""

    delimiter: Annotated[str, MinLen(1)] = "\n\n"
    blank_pieces: Positive = 3


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """All settings of decoding that every method shares."""

    temperature: Annotated[float, Ge(0)]
    top_p: Annotated[float, Gt(0), Le(1)]
    limits: Limits
    step: StepRule
    seed: int
