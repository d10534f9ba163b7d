r"""Sets of real numbers: `(0, 1]`, `x > 2`, `\{x \mid x \ne 3\}` and unions of these in one form::

intervals(read("0 < x <= 1")[0]) == intervals(read("(0, 1]")[0])  # after `normal`
"""

from dataclasses import dataclass, replace

from rsd.grading.answers import REALS, Answer, Builder, Collection, Relation, Tuple, Union, Value
from rsd.grading.evaluation import evaluate, same_value
from rsd.grading.expressions import INFINITY, Expression, exact, negated, symbols

MINUS_INFINITY = negated(INFINITY)
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!="}


@dataclass(frozen=True, slots=True)
class Interval:
    """From `low` to `high`; whether each end belongs to it (of no meaning at infinity)."""

    low: Expression
    low_closed: bool
    high: Expression
    high_closed: bool


Intervals = tuple[Interval, ...]
LINE = Interval(MINUS_INFINITY, False, INFINITY, False)


def variable(answer: Answer) -> str | None:
    """The name of the unknown that an inequality, membership or set is about; None where it names none."""
    if isinstance(answer, Builder):
        return None
    if isinstance(answer, Relation):
        names = {name for side in answer.sides if (name := _name(side)) is not None}
        return min(names) if len(names) == 1 else None
    if isinstance(answer, Collection | Union):
        found = {variable(item) for item in answer.items}
        return found.pop() if len(found) == 1 else None
    return None


def intervals(answer: Answer) -> Intervals | None:
    """The set of real numbers that an answer describes, its intervals sorted and apart; None if it is no such set."""
    found = _read(answer)
    return None if found is None else _normal(found)


def same_intervals(a: Intervals, b: Intervals) -> bool:
    """Whether two sets are the same."""
    return len(a) == len(b) and all(
        same_value(x.low, y.low)
        and same_value(x.high, y.high)
        and (x.low_closed == y.low_closed or _infinite(x.low))
        and (x.high_closed == y.high_closed or _infinite(x.high))
        for x, y in zip(a, b, strict=True)
    )


def _name(side: Answer) -> str | None:
    """The name of a side that is a variable alone."""
    if isinstance(side, Value) and not side.unit and side.expression not in (INFINITY, REALS):
        names = symbols(side.expression)
        if names == {getattr(side.expression, "name", None)}:
            return next(iter(names))
    return None


def _infinite(a: Expression) -> bool:
    return INFINITY.name in symbols(a)


def _read(answer: Answer) -> Intervals | None:
    match answer:
        case Value(expression) if expression == REALS:
            return (LINE,)
        case Tuple(opening, closing, (Value(low), Value(high))) if opening in "([" and closing in ")]":
            if _size(low) is not None and _size(high) is not None and _order(low) >= _order(high):
                return None
            return (Interval(low, opening == "[", high, closing == "]"),)
        case Builder(_, condition):
            return _read(condition)
        case Union(items, minus=False):
            parts = [_points(item) or _read(item) for item in items]
            return None if any(part is None for part in parts) else tuple(i for part in parts for i in part or ())
        case Union((whole, removed), minus=True):
            base, points = _read(whole), _points(removed)
            return None if base is None or points is None else _without(base, [point.low for point in points])
        case Relation():
            return _relation(answer)
        case Collection(joined, items) if joined != "{" and len(items) > 1:
            return _conditions(joined, items)
    return None


def _points(answer: Answer) -> Intervals | None:
    """The single numbers of a set in braces."""
    if not isinstance(answer, Collection) or answer.joined != "{":
        return None
    values = [item.expression for item in answer.items if isinstance(item, Value)]
    if not values or len(values) < len(answer.items):
        return None
    return tuple(Interval(value, True, value, True) for value in values)


def _relation(relation: Relation) -> Intervals | None:
    """`x > a`, `a < x <= b`, `x in S`, `x != a`."""
    sides, operators = relation.sides, relation.operators
    if operators == ("in",) and _name(sides[0]) is not None:
        return _read(sides[1])
    if any(operator not in _MIRRORED for operator in operators) or not all(isinstance(s, Value) for s in sides):
        return None
    values = [side.expression for side in sides if isinstance(side, Value)]
    places = [index for index, side in enumerate(sides) if _name(side) is not None]
    if len(places) != 1 or len(values) > 3:
        return None
    place = places[0]
    if any(_name(sides[place]) in symbols(value) for index, value in enumerate(values) if index != place):
        return None
    found: Intervals = (LINE,)
    if place:
        found = _cut(found, _MIRRORED[operators[place - 1]], values[place - 1])
    if place + 1 < len(values):
        found = _cut(found, operators[place], values[place + 1])
    return found if len(values) == 2 or place == 1 else None


def _cut(base: Intervals, operator: str, bound: Expression) -> Intervals:
    """The part of one interval where the variable stands in relation `operator` to `bound`."""
    if operator == "!=":
        return _without(base, [bound])
    (whole,) = base
    if operator.startswith(">"):
        return (replace(whole, low=bound, low_closed=operator == ">="),)
    return (replace(whole, high=bound, high_closed=operator == "<="),)


def _conditions(joined: str, items: tuple[Answer, ...]) -> Intervals | None:
    """Several conditions on one variable: all hold (`and`), or any (`or`, and those that exclude each other)."""
    parts = [_read(item) for item in items]
    if any(part is None for part in parts) or len({variable(item) for item in items}) > 1:
        return None
    known = [part for part in parts if part is not None]
    if not all(isinstance(item, Relation) for item in items):
        return None if joined == "," else tuple(i for part in known for i in part)
    excluded = [
        side.expression
        for item in items
        if isinstance(item, Relation) and item.operators == ("!=",)
        for side in item.sides
        if isinstance(side, Value) and _name(side) is None
    ]
    rest = [part for item, part in zip(items, known, strict=True) if getattr(item, "operators", ()) != ("!=",)]
    common = rest[0] if rest else (LINE,)
    if joined != "or":
        for part in rest[1:]:
            common = _both(common, part)
        if common:
            return _without(common, excluded)
    return tuple(interval for part in known for interval in part)


def _both(a: Intervals, b: Intervals) -> Intervals:
    found = []
    for x in a:
        for y in b:
            low = x if (_order(x.low), not x.low_closed) >= (_order(y.low), not y.low_closed) else y
            high = x if (_order(x.high), x.high_closed) <= (_order(y.high), y.high_closed) else y
            if _order(low.low) < _order(high.high):
                found.append(Interval(low.low, low.low_closed, high.high, high.high_closed))
    return tuple(found)


def _without(base: Intervals, points: list[Expression]) -> Intervals:
    parts = list(_normal(base))
    for point in points:
        for index, whole in enumerate(parts):
            if _order(whole.low) < _order(point) < _order(whole.high):
                parts[index : index + 1] = [replace(whole, high=point, high_closed=False),
                                            replace(whole, low=point, low_closed=False)]  # fmt: skip
                break
            if whole.low_closed and same_value(whole.low, point):
                parts[index] = replace(whole, low_closed=False)
            if whole.high_closed and same_value(whole.high, point):
                parts[index] = replace(parts[index], high_closed=False)
    return tuple(parts)


def _size(a: Expression) -> float | None:
    if a == INFINITY:
        return float("inf")
    if a == MINUS_INFINITY:
        return float("-inf")
    if symbols(a):
        return None
    value = exact(a)
    try:
        return float(value) if value is not None else float(evaluate((a,), {})[0][0].real)
    except (ArithmeticError, OverflowError):
        return None


def _order(a: Expression) -> float:
    size = _size(a)
    return 0.0 if size is None else size


def _normal(parts: Intervals) -> Intervals:
    """Sorted by their ends, and joined where they touch or overlap (ends with variables stay as they are)."""
    if any(_size(end) is None for part in parts for end in (part.low, part.high)):
        return parts
    merged: list[Interval] = []
    for part in sorted(parts, key=lambda part: (_order(part.low), not part.low_closed)):
        last = merged[-1] if merged else None
        gap = -1.0 if last is None else _order(part.low) - _order(last.high)
        if last is not None and (gap < 0 or (gap == 0 and (part.low_closed or last.high_closed))):
            if (_order(part.high), part.high_closed) > (_order(last.high), last.high_closed):
                merged[-1] = replace(last, high=part.high, high_closed=part.high_closed)
        else:
            merged.append(part)
    return tuple(merged)
