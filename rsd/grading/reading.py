r"""Read a final answer, in LaTeX or as plain text::

    read(r"x \in [-2, 7]")  # (Relation(("in",), (Value(Symbol("x")), Tuple("[", "]", (…)))),)

An answer may allow more than one reading (`1,234` is a number or two), so `read` gives all of them, likeliest first.
"""

import re
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from rsd.grading.answers import (
    EMPTY,
    REALS,
    Answer,
    Builder,
    Collection,
    Matrix,
    Ratio,
    Relation,
    Tuple,
    Union,
    Value,
    Words,
)  # fmt: skip
from rsd.grading.expressions import Apply, Number
from rsd.grading.parser import parse_expression
from rsd.grading.tokens import MAX_LENGTH, THOUSANDS, Token, UnreadableError, clean, tokenize

_CURRENCIES = {"dollars", "rs", "rm", "usd", "us", "hk", "euro", "pound", "yuan", "rupee"}
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_HEDGES = {"approximately", "about", "roughly", "around", "exactly", "only", "is"}
_NOTHING = re.compile(
    r"(there (is|are) )?no( real| such| integer| possible)?( solutions?| values?| numbers?)?|none", re.I
)
_ALL_REALS = re.compile(r"(all|any|every|the set of all)?\s*(real numbers?|reals)", re.I)


@lru_cache(maxsize=4096)
def read(text: str) -> tuple[Answer, ...]:
    """Every reading of an answer; empty when it makes no sense as mathematics."""
    if len(text) > MAX_LENGTH:
        return ()
    cleaned = clean(text)
    variants = [THOUSANDS.sub(lambda m: m[0].replace(",", ""), cleaned), cleaned]
    readings = []
    for variant in dict.fromkeys(variants):
        try:
            readings.append(_list(_stripped(tokenize(variant))))
        except (UnreadableError, RecursionError):
            continue
    return tuple(readings)


def words_of(text: str) -> str:
    """An answer as bare words, in lower case; '' where it has anything else in it."""
    if len(text) > MAX_LENGTH:
        return ""
    bare = re.sub(r"\\(?:text\w*|mathrm|mbox|operatorname)\s*\{([^{}]*)\}", r" \1 ", clean(text))
    bare = " ".join(re.sub(r"\\[,;!: ]|[.,!~]", " ", bare).split())
    bare = re.sub("^(the|an?) (?=..)", "", bare, flags=re.IGNORECASE)
    return bare.lower() if re.fullmatch(r"[^\W\d_]{2,}(?:[ '-][^\W\d_]+)*", bare) else ""


def _stripped(tokens: list[Token]) -> list[Token]:
    """Without separators at the ends and braces around the whole that only group."""
    while tokens and tokens[-1].kind == "comma":
        tokens = tokens[:-1]
    while tokens and tokens[0].kind == "comma":
        tokens = tokens[1:]
    while len(tokens) > 1 and tokens[0].text == "{" and _closing(tokens, 0) == len(tokens) - 1:
        if any(token.kind == "comma" for token in _top(tokens[1:-1])):
            break
        tokens = tokens[1:-1]
    return tokens


def _closing(tokens: Sequence[Token], start: int) -> int:
    depth = 0
    for index in range(start, len(tokens)):
        depth += (tokens[index].kind == "open") - (tokens[index].kind == "close")
        if depth == 0:
            return index
    raise UnreadableError("an open bracket")


def _top(tokens: Sequence[Token]) -> list[Token]:
    """The tokens outside all brackets."""
    found, depth = [], 0
    for token in tokens:
        depth -= token.kind == "close"
        if depth == 0 and token.kind not in ("open", "close"):
            found.append(token)
        depth += token.kind == "open"
    return found


def _split(tokens: Sequence[Token], kind: str, texts: str | tuple[str, ...] | None = None) -> list[list[Token]]:
    """Cut at every token of `kind` (and one of `texts`) outside brackets."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.kind == "open") - (token.kind == "close")
        if depth < 0:
            raise UnreadableError("a bracket too many")
        if depth == 0 and token.kind == kind and (texts is None or token.text in texts):
            parts.append([])
        else:
            parts[-1].append(token)
    if depth:
        raise UnreadableError("an open bracket")
    return parts


def _list(tokens: list[Token]) -> Answer:
    """Items between commas, `and` and `or`."""
    parts = [part for part in _split(tokens, "comma") if part]
    if not parts:
        raise UnreadableError("nothing")
    if len(parts) == 1 and not any(token.text in "±∓" for token in tokens):
        return _item(parts[0])
    connectives = [token.text for token in _top(tokens) if token.kind == "comma"]
    items: list[Answer] = []
    for part in parts:
        items += _signed(part)
    first = items[0]
    if isinstance(first, Relation) and first.operators == ("=",) and len(parts) > 1:  # n = 2, 3, 4
        items[1:] = [_labelled(first, item) for item in items[1:]]
    return Collection(next((text for text in connectives if text in ("or", "and")), ","), tuple(items))


def _labelled(first: Relation, item: Answer) -> Answer:
    return item if isinstance(item, Relation) else Relation(("=",), (first.sides[0], item))


def _signed(tokens: list[Token]) -> list[Answer]:
    """An item, or two where it holds ±."""
    if not any(token.text in "±∓" for token in tokens):
        return [_item(tokens)]
    signs = ({"±": "+", "∓": "-"}, {"±": "-", "∓": "+"})
    return [_item([t._replace(text=sign.get(t.text, t.text)) for t in tokens]) for sign in signs]


def _item(tokens: list[Token]) -> Answer:
    tokens = _stripped(tokens)
    if not tokens:
        raise UnreadableError("nothing")
    relations = [token.text for token in _top(tokens) if token.kind == "relation"]
    if (
        any(token.text == ":" for token in _top(tokens))
        and any(token.text in "([" for token in tokens[1:])
        and relations
    ):
        return _item(_split(tokens, "operator", ":")[-1])  # "x < 1 : (-\\infty, 1)" says it twice
    if relations:
        sides = [_item(part) if part else None for part in _split(tokens, "relation")]
        if sides[-1] is None or None in sides[1:]:
            raise UnreadableError("a relation without a side")
        known = tuple(side for side in sides if side is not None)
        if sides[0] is None:  # "= 5"
            return known[-1] if len(known) == 1 else Relation(tuple(relations[1:]), known)
        return Relation(tuple(relations), known)
    for texts, minus in ((("∪",), False), (("∖",), True)):
        parts = _split(tokens, "operator", texts)
        if len(parts) > 1:
            return Union(tuple(map(_item, parts)), minus)
    whole = _bracketed(tokens)
    if whole is None:
        whole = _multiple(tokens)
    return _single(tokens) if whole is None else whole


def _multiple(tokens: list[Token]) -> Answer | None:
    """A number times a matrix, worked out; None for anything else."""
    start = next((n for n, token in enumerate(tokens) if token.kind == "open" and token.text == "matrix"), 0)
    start -= start > 0 and tokens[start - 1].kind == "open"
    if start < 1 or _closing(tokens, start) != len(tokens) - 1:
        return None
    matrix = _bracketed(tokens[start:])
    factor = parse_expression(tokens[: start - (tokens[start - 1].text == "*")] or tokens[:start])
    if not isinstance(matrix, Matrix) or not all(isinstance(cell, Value) for row in matrix.rows for cell in row):
        return None
    return Matrix(
        tuple(
            tuple(Value(Apply("*", (factor, cell.expression))) for cell in row if isinstance(cell, Value))
            for row in matrix.rows
        )
    )


def _bracketed(tokens: list[Token]) -> Answer | None:
    """A tuple, interval, set or matrix; None where the brackets group, or do not span the whole."""
    first = tokens[0]
    if first.kind != "open":
        return None
    closing = _closing(tokens, 0)
    inside = tokens[1:closing]
    if first.text in "([" and inside and inside[0].text == "matrix" and closing == len(tokens) - 1:
        return _bracketed(inside)
    if closing != len(tokens) - 1:
        return None
    if first.text == "cases":
        return _list([t._replace(kind="comma") if t.text == "newline" else t for t in inside])
    if first.text == "matrix":
        rows = [row for row in _split(inside, "operator", "newline") if row]
        return Matrix(tuple(tuple(_item(cell) for cell in _split(row, "operator", "&")) for row in rows))
    top = _top(inside)
    if first.text == r"\{" or (first.text == "{" and any(token.kind == "comma" for token in top)):
        return _set(inside)
    if first.text in "([<" and any(token.kind == "comma" for token in top):
        parts = _split(inside, "comma")
        opening, close = ("(", ")") if first.text == "<" else (first.text, tokens[-1].text)
        return Tuple(opening, close, tuple(item for part in parts for item in _signed(part)))
    if first.text in "([" and any(token.kind == "relation" for token in top):
        return _item(inside)
    return None


def _set(inside: list[Token]) -> Answer:
    if not inside:
        return EMPTY
    for bar in ("|", ":"):
        parts = _split(inside, "operator", bar)
        if len(parts) == 2 and all(parts) and (bar == "|" or any(t.kind == "relation" for t in parts[1])):
            return Builder(_item(parts[0]), _list(parts[1]))
    items = _list(inside)
    return Collection("{", items.items if isinstance(items, Collection) else (items,))


def _single(tokens: list[Token]) -> Answer:
    """A ratio, words, or one value with its unit."""
    if len(tokens) == 1 and tokens[0].text == "emptyset":
        return EMPTY
    if all(token.kind == "word" or token.text in ("-", "'", "/") for token in tokens):
        text = " ".join(token.text for token in tokens)
        if _ALL_REALS.fullmatch(text):
            return Value(REALS)
        return EMPTY if _NOTHING.fullmatch(text) else Words(text.lower())
    while tokens[0].kind == "word" and tokens[0].text.lower() in _HEDGES:
        tokens = tokens[1:]
    unit = ""
    if tokens[0].kind == "word":
        if tokens[0].text.lower() not in _CURRENCIES:
            raise UnreadableError("words before a value")
        tokens, unit = tokens[1:], tokens[0].text
    tokens, behind = _unit(tokens)
    scale, _, behind = behind.partition(" ") if behind.split(" ")[0].lower() in _SCALES else ("", "", behind)
    unit = unit or behind
    ratio = _split(tokens, "operator", ":")
    if len(ratio) > 1:
        return Ratio(tuple(map(_single, ratio)), unit)
    if len(tokens) >= 3 and tokens[0].kind == "number" and tokens[1].text == "_":
        base = "".join(token.text for token in tokens[2:] if token.text not in "{}")
        tokens, unit = tokens[:1], f"base {base}"
    value = parse_expression(tokens)
    return Value(Apply("*", (value, Number(Fraction(_SCALES[scale.lower()])))) if scale else value, unit)


def _unit(tokens: list[Token]) -> tuple[list[Token], str]:
    """Split a value from the words, the percent or degree sign behind it."""
    depth = 0
    for index, token in enumerate(tokens):
        depth += (token.kind == "open") - (token.kind == "close")
        if index and depth == 0 and (token.kind == "word" or _last_sign(tokens, index)):
            value, rest = tokens[:index], tokens[index:]
            while value and value[-1].text in ("*",):
                value = value[:-1]
            if not value or not all(t.kind in ("word", "number", "symbol", "open", "close", "operator") for t in rest):
                raise UnreadableError("words within a value")
            return value, "".join(("" if t.text in "^-" or rest[i - 1].text == "^" else " ") + t.text
                                  for i, t in enumerate(rest) if t.text not in "{}()*").strip()  # fmt: skip
    return tokens, ""


def _last_sign(tokens: list[Token], index: int) -> bool:
    of_an_argument = tokens[index].text == "°" and any(t.kind == "function" for t in tokens[:index])
    return (
        tokens[index].text in ("%", "°")
        and not of_an_argument
        and all(t.kind in ("word", "symbol") for t in tokens[index + 1 :])
    )
