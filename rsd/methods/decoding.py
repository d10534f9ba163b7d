"""The settings of decoding that every method shares: limits, what a step is, sampling::

Decoding(temperature=0.0, top_p=1.0, limits=Limits(total_tokens=4096), step=StepRule(), seed=0)
"""

import re
from dataclasses import asdict, dataclass
from typing import Annotated

from annotated_types import Ge, Gt, Le, MinLen

from rsd.errors import ConfigError

RULES = ("delimiter", "pattern", "tokens")
TORN = "\ufffd"  # stands for a character that lacks tokens,
LACKING = 3  # of which there are at most so many: one for each byte of UTF-8 but the first

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
    """What a step is: text up to and with the token that completes `delimiter`; or that with which the regular
    expression `pattern` first matches within the step; or so many `tokens`, and those that its last character lacks.

    Whitespace alone is no step: the model goes on within the proposal, `blank_pieces` times at most, before the
    question ends. Raises ConfigError where there is not one rule, or a pattern that is none or matches nothing.
    """

    delimiter: Annotated[str, MinLen(1)] | None = "\n\n"
    pattern: Annotated[str, MinLen(1)] | None = None
    tokens: Positive | None = None
    blank_pieces: Positive = 3

    def __post_init__(self) -> None:
        given = {name: getattr(self, name) for name in RULES if getattr(self, name) is not None}
        if len(given) != 1:
            told = " and ".join(f"step.{name}={value!r}" for name, value in given.items()) or "none of them"
            rules = ", ".join(f"step.{name}" for name in RULES)
            raise ConfigError(f"A step ends by one of {rules}, not by {told}; set the others to null.")
        if self.pattern is not None:
            try:
                empty = re.search(self.pattern, "") is not None
            except re.error as error:
                raise ConfigError(f"step.pattern={self.pattern!r} is no regular expression: {error}.") from error
            if empty:
                raise ConfigError(f"step.pattern={self.pattern!r} matches where there is no text; let it ask for some.")

    @property
    def stop(self) -> str | re.Pattern[str] | None:
        """What ends a step in its text, if anything does."""
        return self.delimiter if self.pattern is None else re.compile(self.pattern)

    @property
    def told(self) -> dict[str, str | int]:
        """The settings that are in force."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """All settings of decoding that every method shares."""

    temperature: Annotated[float, Ge(0)]
    top_p: Annotated[float, Gt(0), Le(1)]
    limits: Limits
    step: StepRule
    seed: int
