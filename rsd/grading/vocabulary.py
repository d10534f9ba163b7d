"""The words of mathematics in LaTeX and in plain text, and what each stands for, for `rsd.grading.tokens`."""

# ruff: noqa: SIM905 - a list of words is easier to read without quotes

GREEK = tuple(
    (
        "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho sigma "
        "tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega ell "
        "hbar"
    ).split()
)
FUNCTIONS = {
    **{
        name: name
        for name in ["sin", "cos", "tan", "sec", "csc", "cot", "sinh", "cosh", "tanh", "coth", "ln", "log", "exp"]
    },
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "sec", "csc", "cot")},
    **{f"a{name}": f"a{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{f"ar{name}": f"a{name}" for name in ("sinh", "cosh", "tanh")},
    **{"lg": "lg", "cosec": "csc", "tg": "tan", "ctg": "cot", "sgn": "sgn", "Re": "re", "Im": "im", "arg": "arg"},
}
PLAIN_FUNCTIONS = set(FUNCTIONS) - {"Re", "Im", "arg", "tg", "lg"}
COMMANDS = {
    **{f"{prefix}frac": "frac" for prefix in ("", "d", "t", "c")},
    **{"sqrt": "sqrt", "cbrt": "cbrt", "binom": "binom", "dbinom": "binom", "tbinom": "binom"},
    **dict.fromkeys(
        ["overline", "bar", "vec", "hat", "widehat", "tilde", "overrightarrow", "dot", "ddot"], "decorated"
    ),
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
    **dict.fromkeys(("ldots", "dots", "cdots", "dotsc"), "..."),
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
IGNORED = frozenset(
    (
        "Big Bigg Bigl Bigr angle bf big bigg biggl biggr bigl bigr bm boldsymbol boxed displaystyle fbox hfill "
        "hspace it left limits mathbf mathcal mathit mathsf middle newline nolimits par qquad quad right rm "
        "scriptstyle space textstyle therefore thinspace triangle underline"
    ).split()
) | set(",;!:$& \\")
PLAIN = {"infinity": "infinity", "infty": "infinity", "inf": "infinity", "oo": "infinity", "pi": "pi", "Pi": "pi"}
SHORT_UNITS = frozenset(
    (
        "AU GHz GeV Hz MHz MeV Mpc Pa RMB USD am au cal cm cu dB deg eV ft gal hr hrs in kHz kJ kPa kW kcal keV "
        "kg km kmh kpc kph lb lbs ly mL mg mi min ml mm mol mph ms nm oz pc pct pm pt qt rad rpm sec sq um yd yr "
        "yrs"
    ).split()
)
SHORT_WORDS = {"yes", "no", "odd", "all", "the", "one", "two", "six", "ten", "per", "day", "not", "any", "rs", "rm"}
WORD_LENGTH = 4  # letters from which a run that names nothing else is a word, not a product

UNICODE = {
    **{"−": "-", "–": "-", "—": "-", "×": r"\times ", "·": r"\cdot ", "⋅": r"\cdot ", "∙": r"\cdot ", "÷": r"\div "},
    **{"≤": r"\le ", "⩽": r"\le ", "≥": r"\ge ", "⩾": r"\ge ", "≠": r"\ne ", "≈": r"\approx ", "∈": r"\in "},
    **{"∞": r"\infty ", "∪": r"\cup ", "∩": r"\cap ", "∅": r"\emptyset ", "π": r"\pi ", "√": r"\sqrt ", "∛": r"\cbrt "},
    **{"±": r"\pm ", "∓": r"\mp ", "°": r"\degree ", "º": r"\degree ", "℃": r"\degree C", "′": "'", "…": r"\ldots "},
    **{"⁄": "/", "∕": "/", "∶": ":", "：": ":"},
    **{"，": ", ", "、": ", ", "；": ";", "。": ".", "⟨": r"\langle ", "⟩": r"\rangle "},
    **{"ℝ": r"\mathbb{R}", "∖": r"\setminus ", "％": "%", "﹣": "-", "－": "-", "￥": "¥", "∣": "|"},
    **{letter: rf"\{name} " for name, letter in zip(
        "alpha beta gamma delta epsilon theta lambda mu rho sigma tau phi omega".split(),
        "αβγδεθλμρστφω",
        strict=True,
    )},
}  # fmt: skip
SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n", strict=True))
CURRENCY = {"€": "euro", "£": "pound", "¥": "yuan", "元": "yuan", "₹": "rupee"}
