r"""When two answers, read, say the same::

    matches(read("x = 5")[0], read("5")[0])  # True

Symmetric. What one side leaves out (the unknown's name, a unit, braces around solutions) the other may state; what
both state must agree.
"""

from collections.abc import Sequence
from fractions import Fraction

from rsd.grading.answers import (
    Answer,
    Builder,
    Collection,
    Matrix,
    Ratio,
    Relation,
    Tuple,
    Value,
    Words,
)  # fmt: skip
from rsd.grading.evaluation import proportion, same_value
from rsd.grading.expressions import Apply, Expression, Number, Symbol, difference, exact, symbols
from rsd.grading.intervals import intervals, same_intervals, variable
from rsd.grading.units import is_unit, ratio

_DEGREE = Apply("/", (Symbol("pi"), Number(Fraction(180))))
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}


def matches(a: Answer, b: Answer) -> bool:
    """Whether two answers are equal."""
    if a == b:
        return True
    return any(_one_way(x, y) or _one_way(y, x) for x in _approximations(a) for y in _approximations(b))


def _approximations(answer: Answer) -> list[Answer]:
    """A chain with ≈ states an exact value and a rounded one; either counts."""
    if not isinstance(answer, Relation) or "~" not in answer.operators:
        return [answer]
    cut = answer.operators.index("~")
    before = Relation(answer.operators[:cut], answer.sides[: cut + 1]) if cut else answer.sides[0]
    after = answer.sides[-1]
    label = answer.sides[0] if _is_label(answer.sides[0], after) else None
    return [after] if label is not None and not cut else [before, after]


def _one_way(a: Answer, b: Answer) -> bool:  # noqa: PLR0912 - one case per pair of kinds
    """Rules for `a` and `b` in this order; `matches` also tries the other."""
    if isinstance(a, Relation):
        if isinstance(b, Relation):
            return _relations(a, b) or _intervals(a, b)
        stated = _stated(a)
        if stated is not None and matches(stated, b):
            return True
    if _repeated(a, b) or _intervals(a, b):
        return True
    match a, b:
        case Value(), Value():
            return _values(a, b)
        case Ratio(), Ratio():
            return a.unit in (b.unit, "") and _ratios(a.items, b.items)
        case Ratio((Value(p), Value(q)), unit), Value(value, other):
            return not unit and not other and same_value(Apply("/", (p, q)), value)
        case Tuple(), Tuple():
            brackets = len(a.items) != 2 or (a.opening, a.closing) == (b.opening, b.closing)
            return brackets and _in_order(a.items, b.items)
        case Matrix(), Matrix():
            return len(a.rows) == len(b.rows) and all(map(_in_order, a.rows, b.rows))
        case Matrix(rows), Tuple("(", ")", items):  # a column is a vector
            return all(len(row) == 1 for row in rows) and _in_order([row[0] for row in rows], items)
        case Builder(), Builder():
            return matches(a.condition, b.condition)
        case Collection(), Collection():
            return _collections(a, b)
        case Collection(), Tuple("(", ")", items):  # x = 1, y = 2 is the point (1, 2)
            return len(_labels(a)) == len(items) > 1 and _in_order(_cores(a), items)
    return False


def _repeated(a: Answer, b: Answer) -> bool:
    """Whether a collection holds one value, `b`, perhaps in several forms."""
    if not isinstance(a, Collection) or isinstance(b, Collection) or not a.items:
        return False
    return all(matches(item, b) for item in a.items)


def _values(a: Value, b: Value) -> bool:
    if a.unit and b.unit:
        factor = ratio(a.unit, b.unit)
        return factor is not None and same_value(_times(a.expression, factor), b.expression)
    if same_value(a.expression, b.expression):
        return True
    if a.unit in ("%", "percent", "percentage", "pct"):
        return same_value(_times(a.expression, Fraction(1, 100)), b.expression)
    if a.unit == "°":
        return same_value(Apply("*", (a.expression, _DEGREE)), b.expression)
    if len(a.unit) == 1 and is_unit(a.unit):  # "5 m", where the other side writes the unit like a variable
        return same_value(Apply("*", (a.expression, Symbol(a.unit))), b.expression)
    return False


def _times(a: Expression, factor: Fraction) -> Expression:
    return a if factor == 1 else Apply("*", (a, Number(factor)))


def _ratios(a: Sequence[Answer], b: Sequence[Answer]) -> bool:
    """Whether a : b : … are in the same proportion, or the same time of day."""
    if _is_time(a) and _is_time(b):
        return _in_order(a, b)
    values, others = ([item.expression for item in side if isinstance(item, Value)] for side in (a, b))
    if not len(a) == len(b) == len(values) == len(others):
        return False
    return all(
        same_value(Apply("*", (values[0], other)), Apply("*", (value, others[0])))
        for value, other in zip(values[1:], others[1:], strict=True)
    )


def _is_time(items: Sequence[Answer]) -> bool:
    values = [exact(item.expression) for item in items if isinstance(item, Value)]
    hour, minute = values if len(values) == 2 else (None, None)
    return hour is not None and minute is not None and 0 <= hour <= 24 and (minute == 0 or 10 <= minute < 60)


def _in_order(a: Sequence[Answer], b: Sequence[Answer]) -> bool:
    return len(a) == len(b) and all(map(matches, a, b))


def _intervals(a: Answer, b: Answer) -> bool:
    if isinstance(a, Tuple) and isinstance(b, Tuple):
        return False  # two points, or two intervals with the same brackets: compared end by end
    left, right = intervals(a), intervals(b)
    if not left or not right:
        return False
    names = {name for name in (variable(a), variable(b)) if name is not None}
    return len(names) < 2 and same_intervals(left, right)


def _collections(a: Collection, b: Collection) -> bool:
    """The same items, in any order; but values without names follow the order of names."""
    if a.items == () or b.items == ():
        return a.items == b.items
    if bool(_labels(a)) != bool(_labels(b)) and (_is_assignment(a) or _is_assignment(b)):
        return _in_order(_cores(a), _cores(b))
    return all(any(matches(x, y) for y in b.items) for x in a.items) and all(
        any(matches(x, y) for x in a.items) for y in b.items
    )


def _is_assignment(a: Collection) -> bool:
    """Whether items have different names, more than the indices of x_1, x_2."""
    return len({label.partition("_")[0] for label in _labels(a)}) > 1


def _labels(a: Collection) -> dict[str, None]:
    """The names that items are given, each once."""
    labels = [_label(item) for item in a.items if isinstance(item, Relation)]
    return dict.fromkeys(label for label in labels if label is not None)


def _label(relation: Relation) -> str | None:
    side = relation.sides[0]
    if relation.operators[0] == "=" and isinstance(side, Value) and isinstance(side.expression, Symbol):
        return side.expression.name
    return None


def _cores(a: Collection) -> list[Answer]:
    return [(_stated(item) or item) if isinstance(item, Relation) else item for item in a.items]


def _stated(relation: Relation) -> Answer | None:
    """What ``name = … = value`` states; None for an equation or inequality."""
    if set(relation.operators) == {"in"} and _is_label(relation.sides[0], relation.sides[1]):
        return relation.sides[1]
    if set(relation.operators) != {"="}:
        return None
    sides = relation.sides
    if (_is_label(sides[0], sides[-1]) and not isinstance(sides[-1], Words)) or isinstance(sides[0], Words):
        sides = sides[1:]
    elif len(sides) == 2 and not (isinstance(sides[0], Value) and not symbols(sides[0].expression)):
        return None
    return sides[-1] if all(matches(sides[-1], side) for side in sides[:-1]) else None


def _is_label(side: Answer, value: Answer) -> bool:
    r"""Whether a left side only names what the right side states: a letter, ``f(x)``, ``(x, y)``, ``\sin A``,
    ``a + b`` where the value is a constant."""
    if isinstance(side, Words):
        return True
    if isinstance(side, Tuple):
        return all(isinstance(item, Value) and isinstance(item.expression, Symbol) for item in side.items)
    if not isinstance(side, Value) or side.unit or not symbols(side.expression):
        return False
    expression = side.expression
    if isinstance(expression, Symbol):
        return not (isinstance(value, Value) and expression.name in symbols(value.expression))
    if _applied_name(expression):
        return True
    constant = isinstance(value, Value) and not symbols(value.expression) and not same_value(value.expression, _ZERO)
    names = symbols(expression)
    return constant and not _holds_number(expression) and not (len(names) > 1 and names <= {"x", "y", "z"})


_ZERO = Number(Fraction(0))


def _applied_name(expression: Expression) -> bool:
    """``f(x)``, ``P(A)``, ``f^{-1}(x)``: read as a product of a name and its argument."""
    if not isinstance(expression, Apply) or expression.function != "*" or len(expression.arguments) != 2:
        return False
    name, argument = expression.arguments
    if isinstance(name, Apply) and name.function == "^":
        name = name.arguments[0]
    return isinstance(name, Symbol) and name.name[0] in "fghpqPQFGHTSRVE" and isinstance(argument, Symbol | Number)


def _holds_number(expression: Expression) -> bool:
    """Whether a number other than a small exponent stands in an expression."""
    if isinstance(expression, Apply):
        held = expression.arguments[:1] if expression.function in ("^", "root") else expression.arguments
        return any(map(_holds_number, held))
    return isinstance(expression, Number)


def _relations(a: Relation, b: Relation) -> bool:
    stated, other = _stated(a), _stated(b)
    if a.operators == b.operators and _in_order(a.sides, b.sides):
        return True
    if (
        stated is not None
        and other is not None
        and matches(stated, other)
        and _same_name(a.sides[0], b.sides[0], stated)
    ):
        return True
    if len(a.operators) == len(b.operators) == 1:
        return _proportional(a, b)
    return a.operators == tuple(_FLIPPED.get(o, o) for o in b.operators[::-1]) and _in_order(a.sides, b.sides[::-1])


def _same_name(a: Answer, b: Answer, value: Answer) -> bool:
    """Whether two left sides may name the same: equal names, words, or y and f(x) of a function."""
    if isinstance(a, Words) or isinstance(b, Words) or matches(a, b):
        return True
    if not (isinstance(a, Value) and isinstance(b, Value)):
        return False
    if not (symbols(a.expression) and symbols(b.expression)):
        return True  # 1 + 1 = 2 names nothing
    if not isinstance(value, Value) or not symbols(value.expression):
        return False
    return all(_applied_name(x.expression) or x.expression == Symbol("y") for x in (a, b))


def _proportional(a: Relation, b: Relation) -> bool:
    """Whether two equations, or inequalities, are multiples of each other."""
    sides = [side.expression for side in (*a.sides, *b.sides) if isinstance(side, Value)]
    operator, other = a.operators[0], b.operators[0]
    if len(sides) != 4 or {operator, other} - set(_FLIPPED):
        return False
    left, right = difference(sides[0], sides[1]), difference(sides[2], sides[3])
    if not symbols(left) or not symbols(right):
        return False
    sign = proportion(left, right)
    if operator in ("=", "!="):
        return operator == other and (sign != 0 or _solved(a, right) or _solved(b, left))
    return sign != 0 and operator == (other if sign > 0 else _FLIPPED[other])


def _solved(equation: Relation, other: Expression) -> bool:
    """Whether `equation`, solved for one variable, solves `other` = 0, which is linear in that variable."""
    side, value = equation.sides
    if not (isinstance(side, Value) and isinstance(value, Value) and isinstance(side.expression, Symbol)):
        return False
    name = side.expression
    if name.name in symbols(value.expression) or name.name not in symbols(other):
        return False
    at = [_substituted(other, name, Number(Fraction(k))) for k in range(3)]
    linear = same_value(Apply("+", (at[0], at[2])), Apply("*", (Number(Fraction(2)), at[1])))
    return linear and not same_value(at[0], at[1]) and same_value(_substituted(other, name, value.expression), _ZERO)


def _substituted(a: Expression, name: Symbol, value: Expression) -> Expression:
    if a == name:
        return value
    if isinstance(a, Apply):
        return Apply(a.function, tuple(_substituted(argument, name, value) for argument in a.arguments))
    return a
