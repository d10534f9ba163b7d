r"""What a final answer says: a value, a quantity, a tuple, a collection, intervals, a relation, a matrix, or words::

Relation(("in",), (Value(Symbol("x")), Tuple("[", "]", (Value(…), Value(…)))))  # x \in [-2, 7]
"""

from dataclasses import dataclass

from rsd.grading.expressions import Expression, Symbol

REALS = Symbol("mathbb R")


@dataclass(frozen=True, slots=True)
class Value:
    """A value, with the unit it was given in ('' for none)."""

    expression: Expression
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Words:
    """Text."""

    text: str


@dataclass(frozen=True, slots=True)
class Tuple:
    """Ordered items in brackets; two of them may also be the ends of an interval."""

    opening: str
    closing: str
    items: tuple["Answer", ...]


@dataclass(frozen=True, slots=True)
class Collection:
    """Unordered items: a set, or a list of solutions; `joined` says how (``and``, ``or``, ``,`` or ``{``)."""

    joined: str
    items: tuple["Answer", ...]


@dataclass(frozen=True, slots=True)
class Union:
    """A union of sets of real numbers; or, with `minus`, a set without another."""

    items: tuple["Answer", ...]
    minus: bool = False


@dataclass(frozen=True, slots=True)
class Builder:
    r"""``\{variable | condition\}``."""

    variable: "Answer"
    condition: "Answer"


@dataclass(frozen=True, slots=True)
class Relation:
    """A chain of relations: n operators between n + 1 sides."""

    operators: tuple[str, ...]
    sides: tuple["Answer", ...]


@dataclass(frozen=True, slots=True)
class Matrix:
    """Rows of values."""

    rows: tuple[tuple["Answer", ...], ...]


@dataclass(frozen=True, slots=True)
class Ratio:
    """``1:2:3``, or a time of day."""

    items: tuple["Answer", ...]
    unit: str = ""


Answer = Value | Words | Tuple | Collection | Union | Builder | Relation | Matrix | Ratio
EMPTY = Collection("{", ())
