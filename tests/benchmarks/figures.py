"""A measured figure with the claim it has to meet, and measurements in alternation."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

REPETITIONS = 5


@dataclass(frozen=True, slots=True)
class Figure:
    """`value` in `unit`; the claim is `at_least` or `at_most`, a figure with neither is for information."""

    name: str
    value: float
    unit: str
    at_least: float | None = None
    at_most: float | None = None

    @property
    def holds(self) -> bool:
        """Whether the claim is met."""
        above = self.at_least is None or self.value >= self.at_least
        return above and (self.at_most is None or self.value <= self.at_most)

    def __str__(self) -> str:
        amount = f"{self.value:,.0f}" if self.value >= 1000 or isinstance(self.value, int) else f"{self.value:.2f}"
        claims = [("at least", self.at_least), ("at most", self.at_most)]
        claim = "".join(f" ({word} {bound:,g})" for word, bound in claims if bound is not None)
        return f"{self.name:<74}{amount:>9} {self.unit}{claim}{'' if self.holds else '  MISSED'}"


def alternate(*sides: Callable[[], float]) -> list[list[float]]:
    """The results of `REPETITIONS` calls of each of `sides`, which take turns so that all meet the same machine."""
    rounds = [[side() for side in sides] for _ in range(REPETITIONS)]
    return [list(results) for results in zip(*rounds, strict=True)]


def ratio(over: list[float], under: list[float]) -> float:
    """Median over the repetitions of the quotient of two sides' results."""
    return median(a / b for a, b in zip(over, under, strict=True))
