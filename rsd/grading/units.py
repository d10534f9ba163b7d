"""Units of measurement: which are the same, and how many of one make another::

same_unit("cm^2", "square centimeters"), ratio("km", "m")  # True, Fraction(1000)
"""

import re
from fractions import Fraction
from functools import lru_cache

_F = Fraction

# name: (dimension, size); the names of a row are the same unit
_TABLE: dict[str, tuple[str, Fraction]] = {
    "mm millimeter millimetre": ("length", _F(1, 1000)),
    "cm centimeter centimetre": ("length", _F(1, 100)),
    "m meter metre": ("length", _F(1)),
    "km kilometer kilometre": ("length", _F(1000)),
    "in inch inches": ("inch", _F(1)),
    "ft foot feet": ("inch", _F(12)),
    "yd yard": ("inch", _F(36)),
    "mi mile": ("inch", _F(63360)),
    "mg milligram": ("mass", _F(1, 1000)),
    "g gram": ("mass", _F(1)),
    "kg kilogram": ("mass", _F(1000)),
    "lb pound-mass": ("ounce", _F(16)),
    "oz ounce": ("ounce", _F(1)),
    "ms millisecond": ("time", _F(1, 1000)),
    "s sec second": ("time", _F(1)),
    "min minute": ("time", _F(60)),
    "h hr hour": ("time", _F(3600)),
    "day": ("time", _F(86400)),
    "week": ("time", _F(604800)),
    "yr year": ("year", _F(1)),
    "ml milliliter millilitre": ("volume", _F(1, 1000)),
    "l liter litre": ("volume", _F(1)),
    "cent": ("dollar", _F(1, 100)),
    "usd dollar": ("dollar", _F(1)),
    "° deg degree": ("degree", _F(1)),
    "% pct percent percentage": ("percent", _F(1)),
}
_UNITS = {name: row for names, row in _TABLE.items() for name in names.split()}
_FILLERS = {"of", "a", "the", "each", "about", "approximately", "exactly"}


@lru_cache(maxsize=4096)
def _parsed(unit: str) -> tuple[Fraction, tuple[tuple[str, int], ...]]:
    """The size of a unit, and its dimensions with their powers."""
    size, powers, sign = Fraction(1), dict[str, int](), 1
    power, words = 1, re.findall(r"[A-Za-z°%-]+|\^-?\d+|/|\d+", unit)
    for index, word in enumerate(words):
        if word in ("/", "per"):
            sign = -1
        elif word in ("square", "sq", "cubic", "cu"):
            power = 2 if word.startswith("sq") else 3
        elif word.lower() not in _FILLERS and not word.startswith("^"):
            following = words[index + 1] if index + 1 < len(words) else ""
            if following.startswith("^"):
                power = max(-9, min(9, int(following[1:3])))
            elif following in ("squared", "cubed"):
                power = 2 if following == "squared" else 3
            if word not in ("squared", "cubed"):
                dimension, factor = _known(word)
                size *= factor ** (sign * power)
                powers[dimension] = powers.get(dimension, 0) + sign * power
                power = 1
    return size, tuple(sorted((name, p) for name, p in powers.items() if p))


def _known(word: str) -> tuple[str, Fraction]:
    lower = word.lower()
    for name in (word, lower, lower.removesuffix("s"), lower.removesuffix("es")):
        if name in _UNITS:
            return _UNITS[name]
    return (lower.removesuffix("s") if len(lower) > 3 else lower), Fraction(1)


def ratio(unit: str, other: str) -> Fraction | None:
    """How many of `other` one `unit` is; None where they do not measure the same."""
    (size, dimensions), (other_size, other_dimensions) = _parsed(unit), _parsed(other)
    return size / other_size if dimensions == other_dimensions else None


def is_unit(unit: str) -> bool:
    """Whether the text names nothing but units of the table."""
    names = {row[0] for row in _TABLE.values()}
    return bool(unit) and all(name in names for name, _ in _parsed(unit)[1])
