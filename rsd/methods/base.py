"""What a method is: a class with the roles it needs, the settings it reads, and `solve`.

A new method is one file here and one YAML in ``conf/method/``.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from rsd.methods.trajectory import Trajectory
from rsd.records import Role


class Method(Protocol):
    """A way to answer a question with a draft, a target and a PRM, or some of them."""

    @property
    def name(self) -> str:
        """The method in a few words, for tables (``rsd δ=0.7``)."""
        ...

    @property
    def roles(self) -> tuple[Role, ...]:
        """The models it needs; no others are loaded."""
        ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """Every setting that its output depends on: part of the run's identity."""
        ...

    async def solve(self, trajectory: Trajectory) -> None:
        """Extend `trajectory` until it has ended."""
        ...
