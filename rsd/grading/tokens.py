r"""Cut a final answer, in LaTeX or as plain text, into tokens::

    [token.text for token in tokenize(r"\dfrac{\pi}{2}\text{ cm}")]  # ['frac', '{', 'pi', '}', '{', '2', '}', 'cm']

Layout (spacing, sizes, fonts, dollar signs) is dropped; full-width and Unicode mathematics becomes what it stands for.
"""

import re
import unicodedata
from typing import Literal, NamedTuple

from rsd.grading.vocabulary import (
    CLOSING,
    COMMANDS,
    CURRENCY,
    FUNCTIONS,
    GREEK,
    IGNORED,
    OPENING,
    OPERATORS,
    PLAIN,
    PLAIN_COMMANDS,
    PLAIN_FUNCTIONS,
    RELATIONS,
    SHORT_UNITS,
    SHORT_WORDS,
    SUPERSCRIPTS,
    SYMBOLS,
    TEXT,
    UNICODE,
    WORD_LENGTH,
)  # fmt: skip

Kind = Literal["number", "symbol", "function", "command", "word", "operator", "relation", "open", "close", "comma"]


class Token(NamedTuple):
    """`spaced`: whether white space, or layout, stands before it."""

    kind: Kind
    text: str
    spaced: bool = False


class UnreadableError(ValueError):
    """A text that is not an answer this grammar knows."""


MAX_LENGTH = 4000  # characters; an answer of more is compared as text only

_SUPERSCRIPT = re.compile(f"[{''.join(SUPERSCRIPTS)}]+")
_VULGAR = re.compile("[½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞]")
_DEGREE = re.compile(r"\^\s*(?:\{\s*(?:\\circ|\\degree|°)\s*\}|\\circ|\\degree)")
_PRIME = re.compile(r"\^\s*(?:\\prime|\{\s*(?:\\prime\s*)+\})")
_MODULE = re.compile(r"\b(?:np|numpy|math|sympy|sp)\.(?=[a-z])")
_LEAD = re.compile(r"^(?:the\s+)?(?:solutions?|answers?)(?:\s+set)?(?:\s+(?:is|are))?\s*:\s*", re.IGNORECASE)
_HALF_OF_DAY = re.compile(r"(?<![A-Za-z])([ap])\.\s?m\.?(?![A-Za-z])", re.IGNORECASE)
_GROUPED = re.compile(r"(?<![\d.])\d{1,3}(?:(?:\\[,!; ]|\{,\}|\{,\\!\}|,\\!|~| )\d{3})+(?![\d/])")
_REPEATING = re.compile(r"(\d*\.\d*)\\(?:overline|bar|dot)\s*\{(\d+)\}")
_ENDLESS = re.compile(r"(\d*\.\d{3,})\s*(?:\.{3}|\\l?dots|\\cdots)")
THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_DOLLAR = re.compile(r"^\s*(-?)\s*(?:\\\$|US\$|USD|\$(?![^$]*\$))\s*(?=[\d.])")
_LEXEME = re.compile(
    r"(?P<space>\s+|~)"
    r"|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+(?![\d.]*[A-Za-z]))?)"
    r"|(?P<environment>\\(?:begin|end)\s*\{\s*(?P<name>[a-z]*matrix\*?|array|cases|aligned)\s*\}(?:\s*\{[lcr|\s]*\})?)"
    r"|\\(?P<command>[A-Za-z]+|.)"
    r"|(?P<letters>[A-Za-z]+)"
    r"|(?P<dots>\.{3})"
    r"|(?P<relation><=|>=|=<|=>|!=|==|[=<>])"
    r"|(?P<power>\*\*|\^)"
    r"|(?P<other>.)",
    re.DOTALL,
)


def clean(text: str) -> str:
    """The same answer in plain characters: Unicode, full-width forms and digit grouping resolved."""
    text = "".join(CURRENCY.get(c, UNICODE.get(c, c)) for c in text)
    text = _SUPERSCRIPT.sub(lambda m: "^{" + "".join(SUPERSCRIPTS[c] for c in m[0]) + "}", text)
    text = _VULGAR.sub(_vulgar, text)
    text = unicodedata.normalize("NFKC", text).strip()
    text = _DEGREE.sub(r"\\degree ", text)
    text = _PRIME.sub(lambda m: "'" * m[0].count("prime"), text)
    text = _MODULE.sub("", text)
    text = _LEAD.sub("", text)
    text = _HALF_OF_DAY.sub(lambda m: f" {m[1].lower()}m", text)
    text = _GROUPED.sub(lambda m: re.sub(r"\D", "", m[0]), text)
    text = _REPEATING.sub(lambda m: m[1] + m[2] * (60 // len(m[2]) + 1) + "…" if len(m[2]) < 30 else m[0], text)
    text = _ENDLESS.sub(_endless, text)
    text = _DOLLAR.sub(r"dollars \1", text)
    return text.replace("$", " ").strip("*_` \n\t").rstrip(".;,。 ")


def _vulgar(match: re.Match[str]) -> str:
    numerator, denominator = unicodedata.normalize("NFKC", match[0]).split("⁄")
    return rf" \frac{{{numerator}}}{{{denominator}}}"


def _endless(match: re.Match[str]) -> str:
    """A decimal that ends in dots, with its period written out often enough to be recognised."""
    whole, _, decimals = match[1].partition(".")
    for length in range(1, len(decimals) // 2 + 1):
        period = decimals[-length:]
        if decimals.endswith(period * (3 if length == 1 else 2)):
            return f"{whole}.{decimals}{period * (60 // length + 1)}…"
    return match[1]


def tokenize(text: str) -> list[Token]:
    """The tokens of a cleaned answer. Raises UnreadableError for a command that names no answer."""
    tokens: list[Token] = []
    position, spaced = 0, False
    while position < len(text):
        match = _LEXEME.match(text, position)
        assert match is not None
        position = match.end()
        found: list[Token] = []
        if match["space"]:
            spaced = True
            continue
        if match["number"]:
            number = match["number"]
            if text[position : position + 1] == "…":  # the mark of a repeating decimal
                position, number = position + 1, number + "…"
            elif number.endswith(".") and text[position : position + 2] == "..":
                position -= 1
                number = number[:-1]
            found = [Token("number", number)]
        elif match["environment"]:
            text_of = "cases" if match["name"] in ("cases", "aligned") else "matrix"
            found = [Token("open" if match[0].startswith(r"\begin") else "close", text_of)]
        elif match["command"]:
            position, found = _command(match["command"], text, position, tokens)
        elif match["letters"]:
            found = _letters(match["letters"], tokens)
        elif match["dots"]:
            found = [Token("symbol", "...")]
        elif match["relation"]:
            relation = {"=<": "<=", "=>": ">=", "==": "="}.get(match["relation"], match["relation"])
            found = [Token("relation", relation)]
        elif match["power"]:
            found = [Token("operator", "^")]
        else:
            found = [_other(match["other"])]
        tokens += [token._replace(spaced=spaced or number > 0) for number, token in enumerate(found)]
        spaced = not found
    return tokens


def _other(character: str) -> Token:
    if character in "([{":
        return Token("open", character)
    if character in ")]}":
        return Token("close", character)
    if character in ",;":
        return Token("comma", character)
    if character in "+-*/!|:_%'&":
        return Token("operator", character)
    raise UnreadableError(f"the character {character!r}")


def _command(name: str, text: str, position: int, before: list[Token]) -> tuple[int, list[Token]]:
    if name == "\\" and any(token.kind == "open" and token.text in ("matrix", "cases") for token in before):
        return position, [Token("operator", "newline")]
    if name in ("left", "right"):
        return position + (text[position : position + 1] == "."), []
    if name in TEXT:
        content, position = _group(text, position)
        return position, _text(content, before)
    if name == "mathbb":
        content, position = _group(text, position)
        return position, [Token("symbol", f"mathbb {content.strip()}")]
    if name == "stackrel" or name in ("Rightarrow", "to", "implies", "rightarrow"):
        raise UnreadableError(name)
    for table, kind in (
        (FUNCTIONS, "function"), (COMMANDS, "command"), (OPERATORS, "operator"), (RELATIONS, "relation"),
        (SYMBOLS, "symbol"), (OPENING, "open"), (CLOSING, "close"),
    ):  # fmt: skip
        if name in table:
            return position, [Token(kind, table[name])]  # type: ignore[arg-type]
    if name == "|":
        return position, [Token("operator", "|")]
    if name in ("land", "wedge", "lor", "vee"):
        return position, [Token("comma", "and" if name in ("land", "wedge") else "or")]
    if name in IGNORED or name.isspace():
        return position, []
    raise UnreadableError(f"the command {name!r}")


def _group(text: str, position: int) -> tuple[str, int]:
    """The argument that begins at `position`: a balanced group, or one character."""
    while text[position : position + 1].isspace():
        position += 1
    if text[position : position + 1] != "{":
        return text[position : position + 1], position + 1
    depth = 0
    for end in range(position, len(text)):
        depth += (text[end] == "{") - (text[end] == "}")
        if depth == 0:
            return text[position + 1 : end], end + 1
    raise UnreadableError("an open brace")


def _text(content: str, before: list[Token]) -> list[Token]:
    r"""What ``\text{content}`` holds: a connective, a function, mathematics, or words."""
    words = content.replace("~", " ").replace("\\", " ").strip(" ,;:.") if "{" not in content else content
    if not words:
        return [Token("comma", ",")] if "," in content else []
    follows = before and (before[-1].kind in ("number", "close", "word", "symbol") or before[-1].text in ("*", "/"))
    if words in PLAIN_FUNCTIONS and not (words == "sec" and follows):
        return [Token("function", FUNCTIONS[words])]
    if words.lower() in PLAIN:
        return [Token("symbol", PLAIN[words.lower()])]
    if re.fullmatch(r"[A-Za-z]+", words) and words.lower() not in ("and", "or"):
        if words in ("e", "i"):
            return [Token("symbol", words)]
        if len(words) < WORD_LENGTH and not follows and words.lower() not in SHORT_WORDS | SHORT_UNITS:
            return [Token("symbol", letter) for letter in words]
        return [Token("word", words)]
    return (
        [
            Token("word", token.text)
            if token.kind == "symbol" and token.text.isalpha() and token.text not in PLAIN
            else token
            for token in tokenize(words)
        ]
        if not words.startswith("(")
        else tokenize(words)
    )


def _letters(run: str, before: list[Token]) -> list[Token]:
    """Letters in a row: a name, a word, a unit, or a product of variables."""
    lower = run.lower()
    if lower in ("and", "or"):
        return [Token("comma", lower)]
    if run in PLAIN_FUNCTIONS:
        return [Token("function", FUNCTIONS[run])]
    if run in PLAIN_COMMANDS:
        return [Token("command", PLAIN_COMMANDS[run])]
    if run in PLAIN or lower == "infinity":
        return [Token("symbol", PLAIN.get(run, "infinity"))]
    if run in GREEK:
        return [Token("symbol", run)]
    follows = before and (before[-1].kind in ("number", "close", "word") or before[-1].text == "/")
    if run in SHORT_UNITS and follows:
        return [Token("word", run)]
    for name in ("sin", "cos", "tan", "ln", "log", "pi"):
        if run.startswith(name) and len(run) == len(name) + 1:
            return [*_letters(name, before), Token("symbol", run[-1])]
        if name == "pi" and run.endswith(name) and len(run) == len(name) + 1:
            return [Token("symbol", run[0]), Token("symbol", "pi")]
    if len(run) >= WORD_LENGTH or lower in SHORT_WORDS:
        return [Token("word", run)]
    return [Token("symbol", letter) for letter in run]
