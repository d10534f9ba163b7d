r"""When two expressions are the same, without computing anything that an answer could make huge::

    same_value(parse_expression(tokenize("(x+1)^2")), parse_expression(tokenize("x^2+2x+1")))  # True

Rational constants are compared exactly; anything else at fixed points, to more digits than the largest and smallest
numbers met on the way need. So neither `1/2004!` and `1/2006!` nor `x` and `x + 10^{-80}` are taken for equal. An
identity of functions is decided by 160-bit values at up to 12 points of both signs (two analytic expressions that
agree there differ with negligible probability), wherever both are real; both complex values count where never both
are real.
"""

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from mpmath import MPContext

from rsd.grading.expressions import INFINITY, Apply, Expression, Number, Symbol, exact, symbols

MAX_EXPONENT = 22  # binary magnitude of an exponent beyond which a power is not evaluated
PRECISION = 160  # bits
MAX_PRECISION = 2**18
POINTS = 12
ENOUGH = 4  # points where both are real


class TooLargeError(ArithmeticError):
    """An expression that is not evaluated, since its value would not fit into memory."""


_context = MPContext()

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    name: getattr(_context, name)
    for name in (
        *("sin", "cos", "tan", "sec", "csc", "cot", "sinh", "cosh", "tanh", "coth", "sech", "csch"),
        *("asin", "acos", "atan", "asinh", "acosh", "atanh", "asec", "acsc", "acot", "floor", "ceil"),
        *("re", "im", "arg"),
    )
} | {"abs": abs, "conj": _context.conj, "exp": _context.exp, "ln": _context.ln, "sgn": _context.sign}
GROWING = ("exp", "sinh", "cosh", "tanh", "coth", "sech", "csch")


class _Evaluation:
    """Values of expressions at one point; `spread` is the largest binary magnitude met, of great and small alike."""

    def __init__(self, point: Mapping[str, float], log_base: int | None) -> None:
        self.point, self.log_base, self.spread, self.largest = point, log_base, 0, 0

    def __call__(self, a: Expression) -> Any:
        value = self._value(a)
        if value:
            magnitude = _context.mag(value)
            if not isinstance(magnitude, int):  # infinite, or no number
                raise ArithmeticError
            self.spread, self.largest = max(self.spread, abs(magnitude)), max(self.largest, magnitude)
        return value

    def _value(self, a: Expression) -> Any:
        if isinstance(a, Number):
            return _context.mpf(a.value.numerator) / a.value.denominator
        if isinstance(a, Symbol):
            match a.name:
                case "pi":
                    return +_context.pi
                case "e":
                    return +_context.e
                case "i":
                    return _context.mpc(0, 1)
            return _context.mpf(self.point[a.name])
        return self._applied(a.function, [self(argument) for argument in a.arguments])

    def _applied(self, function: str, values: list[Any]) -> Any:
        match function, values:
            case "+", _:
                return sum(values)
            case "*", _:
                return math.prod(values)
            case "/", [a, b]:
                return a / b
            case "neg", [a]:
                return -a
            case "^", [a, b]:
                return _numeric_power(a, b)
            case "root", [a, n]:
                odd = _context.isint(n) and int(n) % 2 and _is_real(a) and a.real < 0
                return -_numeric_power(-a.real, 1 / n) if odd else _numeric_power(a, 1 / n)
            case "!", [a]:
                return _context.gamma(_bounded(a) + 1)
            case "binomial", [n, k]:
                return _context.binomial(_bounded(n), _bounded(k))
            case "log", [a]:  # of no base: natural, or common
                return _context.ln(a) / (_context.ln(self.log_base) if self.log_base else 1)
            case "log", [a, base]:
                return _context.ln(a) / _context.ln(base)
            case name, [a] if name in FUNCTIONS:
                return FUNCTIONS[name](_bounded(a) if name in GROWING else a)
        raise ArithmeticError(function)


def _bounded(a: Any) -> Any:
    if a and _context.mag(a) > MAX_EXPONENT:
        raise TooLargeError
    return a


def _numeric_power(a: Any, b: Any) -> Any:
    if a == 1 or not b:
        return _context.mpf(1)
    if a:
        _bounded(b)
        if _context.mag(b) + math.log2(1 + abs(_context.mag(a))) > MAX_EXPONENT:
            raise TooLargeError
    return a**b


def _is_real(a: Any) -> bool:
    return bool(abs(a.imag) <= abs(a.real) * _context.ldexp(1, 30 - _context.prec) or not a.imag)


def _points(names: frozenset[str]) -> Iterator[dict[str, float]]:
    """Fixed points of moderate size, every other one with positive coordinates only."""
    for number in range(POINTS):
        point = {}
        for name in names:
            digest = hashlib.blake2b(f"{number} {name}".encode(), digest_size=8).digest()
            share = int.from_bytes(digest) / 2**64
            point[name] = 0.2 + 2.6 * share if number % 2 else 5.6 * share - 2.8
        yield point


def evaluate(
    expressions: tuple[Expression, ...], point: Mapping[str, float], log_base: int | None = None
) -> tuple[list[Any], Any]:
    """The values of `expressions` at one point, and the rounding error that each may carry.

    Raises ArithmeticError where one is undefined, and TooLargeError where it is too large to be computed.
    """
    _context.prec = PRECISION
    try:
        evaluation = _Evaluation(point, log_base)
        values = [evaluation(a) for a in expressions]
        if evaluation.spread > PRECISION // 4:
            _context.prec = PRECISION + 2 * evaluation.spread
            if _context.prec > MAX_PRECISION:
                raise TooLargeError
            values = [evaluation(a) for a in expressions]
        return values, _context.ldexp(1, evaluation.largest - _context.prec + 40)
    except (ValueError, TypeError, _context.NoConvergence) as error:  # mpmath's own words for what has no value
        raise ArithmeticError from error


def same_value(a: Expression, b: Expression) -> bool:
    """Whether two expressions are equal wherever both have a value; symmetric. An expression too large to be
    computed equals only itself."""
    if a == b:
        return True
    if INFINITY.name in symbols(a) | symbols(b):
        return _signed_infinity(a) == _signed_infinity(b) != 0
    left, right = exact(a), exact(b)
    if left is not None and right is not None:
        return left == right or _rounded(a, right) or _rounded(b, left)
    bare_logarithm = any(_has_bare_logarithm(x) for x in (a, b))
    return any(_agree(a, b, base) for base in ((None, 10) if bare_logarithm else (None,)))


def _rounded(a: Expression, value: Fraction) -> bool:
    """Whether `a` is a decimal of 12 digits or more, as machines print, and `value`, which is none, rounds to it."""
    number = a.arguments[0] if isinstance(a, Apply) and a.function == "neg" else a
    if not isinstance(number, Number) or number.digits < 12 or _is_decimal(value):
        return False
    written = abs(number.value)
    unit = Fraction(10) ** (math.floor(math.log10(written)) + 1 - number.digits) if written else Fraction(0)
    return abs(written - abs(value)) <= unit and (exact(a) or 0) * value > 0


def _is_decimal(a: Fraction) -> bool:
    rest = a.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    return rest == 1


def _has_bare_logarithm(a: Expression) -> bool:
    return isinstance(a, Apply) and (
        (a.function == "log" and len(a.arguments) == 1) or any(map(_has_bare_logarithm, a.arguments))
    )


def _signed_infinity(a: Expression) -> int:
    if isinstance(a, Apply) and a.function == "neg":
        return -_signed_infinity(a.arguments[0])
    return int(a == INFINITY)


def _agree(a: Expression, b: Expression, log_base: int | None) -> bool:
    names = symbols(a) | symbols(b)
    real, other = 0, []
    for point in _points(names):
        try:
            (x, y), error = evaluate((a, b), point, log_base)
        except TooLargeError:
            return False
        except ArithmeticError:
            continue
        close = bool(abs(x - y) <= error)
        if not names:
            return close or any(_rounded_to(c, v) for c, v in ((a, y), (b, x)))
        if _is_real(x) and _is_real(y):
            if not close:
                return False
            real += 1
            if real == ENOUGH:
                return True
        else:
            other.append(close)
    return real >= 2 or (real == 0 and len(other) >= 2 and all(other))


def _rounded_to(a: Expression, value: Any) -> bool:
    """Whether `a` is a decimal of at least 12 digits that the irrational `value` rounds to."""
    if not _is_real(value) or _context.mag(value) > 200:
        return False
    return _rounded(a, Fraction(int(_context.floor(value.real * 2**400)), 2**400) + Fraction(1, 3**300))


def proportion(a: Expression, b: Expression) -> int:
    """The sign of the constant c where a = c·b for all values of the variables, 0 where there is none."""
    names, ratios = symbols(a) | symbols(b), []
    for point in _points(names):
        try:
            (x, y, ratio), _ = evaluate((a, b, Apply("/", (a, b))), point)
        except ArithmeticError:
            continue
        if not (_is_real(x) and _is_real(y)) or not x:
            continue
        ratios.append(ratio.real)
        if abs(ratio.real - ratios[0]) > abs(ratio.real) * _context.ldexp(1, 60 - PRECISION):
            return 0
        if len(ratios) == ENOUGH:
            break
    return 0 if len(ratios) < 2 else 1 if ratios[0] > 0 else -1
