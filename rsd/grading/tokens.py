r"""Cut a final answer, in LaTeX or as plain text, into tokens::

    [token.text for token in tokenize(r"\dfrac{\pi}{2}\text{ cm}")]  # ['frac', '{', 'pi', '}', '{', '2', '}', 'cm']

Layout (spacing, sizes, fonts, dollar signs) is dropped; full-width and Unicode mathematics becomes what it stands for.
"""

import re
import unicodedata
from typing import Literal, NamedTuple

Kind = Literal["number", "symbol", "function", "command", "word", "operator", "relation", "open", "close", "comma"]


class Token(NamedTuple):
    """`spaced`: whether white space, or layout, stands before it."""

    kind: Kind
    text: str
    spaced: bool = False


class UnreadableError(ValueError):
    """A text that is not an answer this grammar knows."""


MAX_LENGTH = 4000  # characters; an answer of more is compared as text only

GREEK = (
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho sigma tau upsilon "
    "phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega ell hbar"
).split()
FUNCTIONS = {
    **{name: name for name in "sin cos tan sec csc cot sinh cosh tanh coth ln log exp".split()},
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "sec", "csc", "cot")},
    **{f"a{name}": f"a{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{f"ar{name}": f"a{name}" for name in ("sinh", "cosh", "tanh")},
    **{"lg": "lg", "cosec": "csc", "tg": "tan", "ctg": "cot", "sgn": "sgn", "Re": "re", "Im": "im", "arg": "arg"},
}
PLAIN_FUNCTIONS = set(FUNCTIONS) - {"Re", "Im", "arg", "tg", "lg"}
COMMANDS = {
    **{f"{prefix}frac": "frac" for prefix in ("", "d", "t", "c")},
    **{"sqrt": "sqrt", "cbrt": "cbrt", "binom": "binom", "dbinom": "binom", "tbinom": "binom"},
    **{name: "decorated" for name in "overline bar vec hat widehat tilde overrightarrow dot ddot".split()},
    **{"abs": "abs", "pmod": "pmod", "bmod": "bmod", "mod": "bmod"},
}
PLAIN_COMMANDS = {"sqrt": "sqrt", "cbrt": "cbrt", "abs": "abs", "frac": "frac"}
OPERATORS = {
    **{"cdot": "*", "times": "*", "ast": "*", "div": "/", "pm": "±", "mp": "∓", "cup": "∪", "bigcup": "∪", "cap": "∩"},
    **{"setminus": "∖", "backslash": "∖", "degree": "°", "circ": "∘", "%": "%", "colon": ":", "ratio": ":"},
    **{"mid": "|", "vert": "|", "prime": "'", "sim": ":", "bullet": "*", "smallsetminus": "∖"},
}
RELATIONS = {
    **{"le": "<=", "leq": "<=", "leqslant": "<=", "ge": ">=", "geq": ">=", "geqslant": ">=", "lt": "<", "gt": ">"},
    **{"ne": "!=", "neq": "!=", "in": "in", "approx": "~", "approxeq": "~", "simeq": "~", "equiv": "="},
}
SYMBOLS = {
    **{
        "pi": "pi",
        "infty": "infinity",
        "infin": "infinity",
        "emptyset": "emptyset",
        "varnothing": "emptyset",
        "oslash": "emptyset",
    },
    **{name: "..." for name in ("ldots", "dots", "cdots", "dotsc")},
    **{name: name for name in (*GREEK, "max", "min", "gcd", "lcm", "odot", "oplus", "star")},
}
OPENING = {
    "lfloor": "floor",
    "lceil": "ceil",
    "langle": "<",
    "lvert": "abs",
    "lVert": "abs",
    "{": r"\{",
    "lbrace": r"\{",
}
CLOSING = {
    "rfloor": "floor",
    "rceil": "ceil",
    "rangle": ">",
    "rvert": "abs",
    "rVert": "abs",
    "}": r"\}",
    "rbrace": r"\}",
}
TEXT = {
    "text",
    "textbf",
    "textit",
    "textrm",
    "textnormal",
    "mbox",
    "mathrm",
    "operatorname",
    "hbox",
    "textsf",
    "texttt",
}
IGNORED = {
    *(
        "left right big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr middle quad qquad displaystyle textstyle limits"
    ).split(),
    *(
        ", ; ! : $ & hfill hspace space rm bf it mathbf mathit boldsymbol bm mathsf mathcal underline fbox boxed"
    ).split(),
    *"scriptstyle nolimits thinspace par newline angle triangle therefore \\".split(),
}
PLAIN = {"infinity": "infinity", "infty": "infinity", "inf": "infinity", "oo": "infinity", "pi": "pi", "Pi": "pi"}
SHORT_UNITS = set(
    "cm mm km nm um kg mg lb lbs ft in mi yd hr hrs min sec ms ml mL kW kJ Hz kHz MHz GHz Pa kPa eV keV MeV GeV mol kcal "
    "cal oz gal mph kmh kph rad deg am pm ly pc kpc Mpc AU au sq cu yr yrs pt qt USD RMB pct rpm dB".split()
)
SHORT_WORDS = {"yes", "no", "odd", "all", "the", "one", "two", "six", "ten", "per", "day", "not", "any", "rs", "rm"}
WORD_LENGTH = 4  # letters from which a run that names nothing else is a word, not a product

UNICODE = {
    **{"−": "-", "–": "-", "—": "-", "×": r"\times ", "·": r"\cdot ", "⋅": r"\cdot ", "∙": r"\cdot ", "÷": r"\div "},
    **{"≤": r"\le ", "⩽": r"\le ", "≥": r"\ge ", "⩾": r"\ge ", "≠": r"\ne ", "≈": r"\approx ", "∈": r"\in "},
    **{"∞": r"\infty ", "∪": r"\cup ", "∩": r"\cap ", "∅": r"\emptyset ", "π": r"\pi ", "√": r"\sqrt ", "∛": r"\cbrt "},
    **{"±": r"\pm ", "∓": r"\mp ", "°": r"\degree ", "º": r"\degree ", "℃": r"\degree C", "′": "'", "…": r"\ldots "},
    **{"⁄": "/", "∕": "/", "∶": ":", "：": ":", "，": ", ", "、": ", ", "；": ";", "。": ".", "⟨": r"\langle ", "⟩": r"\rangle "},
    **{"ℝ": r"\mathbb{R}", "∖": r"\setminus ", "％": "%", "﹣": "-", "－": "-", "￥": "¥", "∣": "|"},
    **{letter: rf"\{name} " for name, letter in zip(
        "alpha beta gamma delta epsilon theta lambda mu rho sigma tau phi omega".split(), "αβγδεθλμρστφω", strict=True
    )},
}  # fmt: skip
SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n", strict=True))
CURRENCY = {"€": "euro", "£": "pound", "¥": "yuan", "元": "yuan", "₹": "rupee"}

_SUPERSCRIPT = re.compile(f"[{''.join(SUPERSCRIPTS)}]+")
_VULGAR = re.compile("[½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞]")
_DEGREE = re.compile(r"\^\s*(?:\{\s*(?:\\circ|\\degree|°)\s*\}|\\circ|\\degree)")
_PRIME = re.compile(r"\^\s*(?:\\prime|\{\s*(?:\\prime\s*)+\})")
_MODULE = re.compile(r"\b(?:np|numpy|math|sympy|sp)\.(?=[a-z])")
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
    text = _VULGAR.sub(lambda m: r" \frac{%s}{%s}" % tuple(unicodedata.normalize("NFKC", m[0]).split("⁄")), text)
    text = unicodedata.normalize("NFKC", text).strip()
    text = _DEGREE.sub(r"\\degree ", text)
    text = _PRIME.sub(lambda m: "'" * m[0].count("prime"), text)
    text = _MODULE.sub("", text)
    text = _HALF_OF_DAY.sub(lambda m: f" {m[1].lower()}m", text)
    text = _GROUPED.sub(lambda m: re.sub(r"\D", "", m[0]), text)
    text = _REPEATING.sub(lambda m: m[1] + m[2] * (60 // len(m[2]) + 1) + "…" if len(m[2]) < 30 else m[0], text)
    text = _ENDLESS.sub(_endless, text)
    text = _DOLLAR.sub(r"dollars \1", text)
    return text.replace("$", " ").strip("*_` \n\t").rstrip(".;,。 ")


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


def _command(name: str, text: str, position: int, before: list[Token]) -> tuple[int, list[Token]]:  # noqa: PLR0912
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
