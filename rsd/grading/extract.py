r"""Find the final answer in a response::

    extract_boxed(r"so \boxed{\frac{1}{2}}")  # '\\frac{1}{2}'

The answer is the content of the last balanced ``\boxed{...}``; nothing outside a box is read as one.
"""

import re

# `\{`, `\}` and every other escaped character are passed over in pairs, so that `\\}` is a line break and a closing
# brace. The exception is `\\boxed{`: models that write JSON double the backslash, and mean a box.
_TOKEN = re.compile(r"(?P<box>\\boxed\s*\{)|\\(?!\\boxed).|(?P<open>\{)|(?P<close>\})", re.DOTALL)


def extract_boxed(response: str) -> str | None:
    r"""Return the content of the balanced ``\boxed{...}`` that opens last, or None where there is none.

    Braces inside the box nest to any depth; ``\{`` and ``\}`` are characters of the answer and nest nothing. A box
    that is never closed is passed over. Time and memory are linear in the length of the response.
    """
    open_braces: list[int | None] = []  # where the content of a box begins, None for any other brace
    last: tuple[int, int] | None = None
    for token in _TOKEN.finditer(response):
        match token.lastgroup:
            case "box":
                open_braces.append(token.end())
            case "open":
                open_braces.append(None)
            case "close" if open_braces:
                start = open_braces.pop()
                if start is not None and (last is None or start > last[0]):
                    last = (start, token.start())
    return None if last is None else response[slice(*last)]
