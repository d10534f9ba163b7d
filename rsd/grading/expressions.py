r"""Mathematical expressions, and the exact values of rational constants::

    exact(Apply("/", (Number(Fraction(1)), Number(Fraction(2)))))  # Fraction(1, 2)

Nothing is evaluated on construction, and no integer grows beyond `MAX_BITS`, whatever an answer asks for.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

MAX_BITS = 2**20  # of an integer computed exactly


@dataclass(frozen=True, slots=True)
class Number:
    """A rational constant; `digits` counts the significant digits of a decimal written out, 0 for anything else."""

    value: Fraction
    digits: int = 0


@dataclass(frozen=True, slots=True)
class Symbol:
    """A variable or one of the constants `pi`, `e`, `i`, `infinity`."""

    name: str


@dataclass(frozen=True, slots=True)
class Apply:
    """A function or operator applied to expressions."""

    function: str
    arguments: tuple["Expression", ...]


Expression = Number | Symbol | Apply
CONSTANTS = ("pi", "e", "i")
INFINITY = Symbol("infinity")


def negated(a: Expression) -> Expression:
    """-a."""
    return Number(-a.value) if isinstance(a, Number) else Apply("neg", (a,))


def difference(a: Expression, b: Expression) -> Expression:
    """a - b."""
    return Apply("+", (a, negated(b)))


@lru_cache(maxsize=4096)
def symbols(a: Expression) -> frozenset[str]:
    """The variables of an expression."""
    if isinstance(a, Symbol):
        return frozenset() if a.name in CONSTANTS else frozenset({a.name})
    return frozenset().union(*map(symbols, a.arguments)) if isinstance(a, Apply) else frozenset()


@lru_cache(maxsize=4096)
def exact(a: Expression) -> Fraction | None:
    """The value of a rational constant; None for anything else, or when it has more than `MAX_BITS` bits."""
    if isinstance(a, Number):
        return a.value
    if isinstance(a, Symbol):
        return None
    values = [exact(argument) for argument in a.arguments]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    try:
        return _exactly(a.function, known)
    except (ZeroDivisionError, OverflowError):
        return None


def _exactly(function: str, values: list[Fraction]) -> Fraction | None:
    if sum(_bits(value) for value in values) > MAX_BITS:
        return None
    match function, values:
        case "+", _:
            return sum(values, Fraction(0))
        case "*", _:
            return math.prod(values, start=Fraction(1))
        case "/", [a, b]:
            return a / b
        case "neg", [a]:
            return -a
        case "^", [a, b]:
            return _power(a, b)
        case "root", [a, n] if n.denominator == 1 and n > 0:
            return _power(a, 1 / n) if a >= 0 else _odd_root(a, int(n))
        case "abs", [a]:
            return abs(a)
        case "floor", [a]:
            return Fraction(math.floor(a))
        case "ceil", [a]:
            return Fraction(math.ceil(a))
        case "!", [a] if a.denominator == 1 and 0 <= a <= 20_000:
            return Fraction(math.factorial(int(a)))
        case "binomial", [n, k] if n.denominator == k.denominator == 1 and 0 <= k <= n <= 10_000:
            return Fraction(math.comb(int(n), int(k)))
    return None


def _bits(a: Fraction) -> int:
    return a.numerator.bit_length() + a.denominator.bit_length()


def _power(a: Fraction, b: Fraction) -> Fraction | None:
    if a == 0 and b <= 0:
        return None
    if b.denominator > 1:
        root = _root(a, b.denominator) if a >= 0 else None
        return None if root is None else _power(root, Fraction(b.numerator))
    if abs(a) == 1:
        return a if b.numerator % 2 else Fraction(1)
    if a and _bits(a) * abs(b) > MAX_BITS:
        return None
    return Fraction(a ** int(b))


def _odd_root(a: Fraction, n: int) -> Fraction | None:
    root = _root(-a, n) if n % 2 else None
    return None if root is None else -root


def _root(a: Fraction, n: int) -> Fraction | None:
    if n > 64 or _bits(a) > 4096:
        return None
    parts = [_integer_root(part, n) for part in (a.numerator, a.denominator)]
    return None if parts[0] is None or parts[1] is None else Fraction(parts[0], parts[1])


def _integer_root(a: int, n: int) -> int | None:
    if n == 2:
        root = math.isqrt(a)
    else:
        root = 1 << -(-a.bit_length() // n)  # not below the root, from where Newton's steps descend
        while root and (better := ((n - 1) * root + a // root ** (n - 1)) // n) < root:
            root = better
    return root if root**n == a else None
