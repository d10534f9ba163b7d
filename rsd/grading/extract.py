r"""Find the final answer in a response::

    extract_answer(r"so \boxed{\frac{1}{2}}")  # '\\frac{1}{2}'
    extract_answer("Hence the answer is 7.")  # '7'

The last balanced ``\boxed{...}`` counts; without one, what the response calls its answer, or all of it where it is
nothing but an answer. A number in the middle of a calculation is never one. All rules take linear time.
"""

import re
import unicodedata

# `\{`, `\}` and every other escaped character are passed over in pairs, so that `\\}` is a line break and a closing
# brace. The exception is `\\boxed{`: models that write JSON double the backslash, and mean a box.
_TOKEN = re.compile(
    r"(?P<box>\\f?box(?:ed)?\s*\{)|\\f?box(?:ed)?\s+(?P<bare>\$?-?\d[\d.,/]*\d|-?\d)(?![A-Za-z])|\\(?!\\f?box(?:ed)?\b)."
    r"|(?P<open>\{)|(?P<close>\})",
    re.DOTALL,
)
_MARK = re.compile(
    r"(?:\b(?:(?:final|correct|right)\s+)?(?:answer|choice|option)s?(?:\s+(?:choice|option))?"
    r"(?:\s+(?:to|of|for)\s+(?:the|this)\s+(?:question|problem))?"
    r"(?:[*_\s]{0,4}(?:\b(?:is|are|will\s+be|would\s+be|must\s+be)\b\s*(?:therefore|thus|simply|given\s+by)?|[:=])){1,2}"
    r"|\bfinal\s+answer\b[*_]{0,3}(?=\s*\n)|^\#{4}"
    r"|(?:最终)?答案\s*(?:选|是|为|[:：=])+|故选|应选)[:：*_\s]{0,6}",
    re.IGNORECASE | re.MULTILINE,
)
_END = re.compile(r"\n|[.!?](?=\s|\*|$)|[。！？；]|\s\(?I hope\b|,\s+(?:because|since|so|which|as)\b")
_DELIMITED = re.compile(r"\s*(?:\$\$(.+?)\$\$|\$([^$]+)\$|\\\((.+?)\\\)|\\\[(.+?)\\\])", re.DOTALL)
_PROSE = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}")
_LONGEST = 300  # characters of an answer outside a box


def extract_boxed(response: str) -> str | None:
    r"""Return the content of the balanced ``\boxed{...}`` or ``\fbox{...}`` that opens last, or None without one.

    Braces inside the box nest to any depth; ``\{`` and ``\}`` are characters of the answer and nest nothing. A box
    that is never closed, or is blank where another is not, is passed over; ``\boxed 5`` is a box of one number.
    """
    open_braces: list[int | None] = []  # where the content of a box begins, None for any other brace
    last: tuple[int, int] | None = None
    blank: str | None = None
    for token in _TOKEN.finditer(response):
        match token.lastgroup:
            case "box":
                open_braces.append(token.end())
            case "bare":
                last = token.span("bare")
            case "open":
                open_braces.append(None)
            case "close" if open_braces:
                start = open_braces.pop()
                if start is None:
                    continue
                if response[start : start + 50].isspace() or start == token.start():
                    blank = response[start : token.start()]
                elif last is None or start > last[0]:
                    last = (start, token.start())
    return blank if last is None else response[slice(*last)]


def extract_answer(response: str) -> str | None:
    """The final answer of a response to a question of mathematics; None where it gives none."""
    boxed = extract_boxed(response)
    if boxed is not None and boxed.strip():
        return boxed
    stated = stated_answer(response)
    if stated is not None:
        return stated
    whole = response.strip()
    if len(whole) <= 100 and "\n" not in whole and "box" not in whole and not _PROSE.search(_maths(whole)):
        return _trimmed(whole) or boxed
    return boxed


def stated_answer(response: str) -> str | None:
    """What follows the last "answer is", "答案是" or the like, to the end of its sentence."""
    for mark in reversed(list(_MARK.finditer(response))):
        text = response[mark.end() : mark.end() + 4 * _LONGEST].lstrip(" \t\n*_:：")
        delimited = _DELIMITED.match(text)
        if delimited:
            answer = next(group for group in delimited.groups() if group is not None)
            rest = text[delimited.end() :]
            unit = re.match(r"\s*((?:%|\\%|°|[a-z]+))\s*(?:[.。*]|$)", rest)  # "$28$ percent."
            return _trimmed(f"{answer} {unit[1]}" if unit else answer)
        end = _END.search(text)
        answer = _trimmed(text[: end.start()] if end else text)
        if answer and len(answer) <= _LONGEST:
            return answer
    return None


def _maths(text: str) -> str:
    return re.sub(r"\\[A-Za-z]+", " ", text)


def _trimmed(text: str) -> str:
    """Without markdown, delimiters and what ends a sentence."""
    text = unicodedata.normalize("NFC", text).strip().strip("*_` ")
    for opening, closing in (("$$", "$$"), (r"\(", r"\)"), (r"\[", r"\]"), ("$", "$")):
        if text.startswith(opening) and text.endswith(closing) and len(text) > len(opening) + len(closing):
            text = text[len(opening) : -len(closing)]
    return text.strip().rstrip(".,;。").strip("*_` ")
