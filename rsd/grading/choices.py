r"""Multiple choice: the letter that a text commits to::

choice_of(r"\textbf{(A)} 5")  # 'A'
extract_choice("Vitamin C is … so the answer is (A).")  # 'A'
"""

import re
import unicodedata
from collections.abc import Callable, Sequence

from rsd.grading.extract import extract_boxed, stated_answer

LETTERS = "ABCDEFGHIJ"
_WRAPPED = re.compile(
    r"\\(?:text\w*|mathrm|mathbf|mbox|boxed|fbox|operatorname|bf|rm|left|right|quad|,|;|!| )\s*|[${}*_`]"
)
_LEAD = (
    r"(?:(?:the|final|correct|best|right|answer|option|choice|letter|statement|is|are|would|be|must|选项?|应|故)"
    r"\s*[:：]?\s*)*"
)
_LETTER = rf"[(\[（]?\s*([{LETTERS}])\s*[)\]）]"
_ONE = re.compile(rf"{_LEAD}(?:{_LETTER}|([{LETTERS}]))(?=$|[\s.,:;、。：）)])[.:、。：]?\s*(.*)", re.I | re.DOTALL)
_FURTHER = re.compile(
    rf"\s*(?:,|、|and|or|&|/|和|或)\s*(?:(?:option|choice)\s*)?[(\[]?([{LETTERS}])[)\]]?(?=$|[\s.,:;)])", re.DOTALL
)
_COMMITMENT = re.compile(
    r"(?:\b(?:choose|select|pick|go with|chose|selected|option|choice|therefore|thus|hence|so|is|it[’']s)\b[:,]?\s*"
    r"|选\s*|选项\s*)"
    rf"(?:option\s+|choice\s+|the\s+)?\**(?:{_LETTER}|([{LETTERS}])(?=[\s.,:;*。]|$))"
    rf"|\*\*(?:{_LETTER}|([{LETTERS}]))[.:]?"
    rf"|{_LETTER}|^\s*([{LETTERS}])[.)]?\s*$",
    re.IGNORECASE | re.MULTILINE,
)
_BARE = re.compile(rf"\**[(\[]?[{LETTERS}][)\]]?\**[.:]?|[{LETTERS}][.:)]\s.*")
_PRECEDED = re.compile(rf"[(\[]?\b[{LETTERS}]\b[)\]]?\**\s*(?:,|and|or|&|/)\s*[(\[*]*$")
_REJECTED = re.compile(
    r"(?:\bnot|n't(?:\s+be)?|\bnor|\bneither|\brather than|\bexclude|\beliminate|\brule\s+out|不选|不是)\s+"
    r"(?:the\s+)?(?:option\s+|choice\s+|answer\s+)?[(\[]?\s*$",
    re.IGNORECASE,
)
_REFUTED = re.compile(
    r"\s*[)\]]?\**\s*(?:is|are|was|can|does|seems|would)?\s*(?:be\s+)?(?:also\s+)?"
    r"(?:incorrect|wrong|false|not\b|eliminated|ruled out|n't|cannot)", re.I
)  # fmt: skip


def plain(text: str) -> str:
    """Text without LaTeX's wrappers and markdown."""
    return _WRAPPED.sub(" ", unicodedata.normalize("NFKC", text)).strip(" \n\t.,;")


def choice_of(text: str, count: int = len(LETTERS)) -> str | None:
    """The one letter among the first `count` that a short answer names; None for none, or for more than one."""
    match = _ONE.fullmatch(plain(text))
    if match is None:
        return None
    letter, rest = match[1] or match[2], match[3]
    if letter.islower() and match[1] is None and rest:  # the article of "a triangle"
        return None
    return letter.upper() if letter.upper() in LETTERS[:count] and not _FURTHER.match(rest) else None


def extract_choice(response: str, count: int = len(LETTERS)) -> str | None:
    r"""The answer to a multiple-choice question: a letter where the response commits to one, else the text that it
    boxes or calls its answer (perhaps an option's own words), else None."""
    for text in (extract_boxed(response), stated_answer(response)):
        if text and text.strip():
            return choice_of(text, count) or _after_lead(text, count) or text
    whole = choice_of(response, count) if _BARE.fullmatch(response.strip()) else None
    return whole or _last_commitment(response, count)


def _after_lead(text: str, count: int) -> str | None:
    """The letter of "Option (B)" within a longer statement; None when it names several, or rejects it."""
    text = re.sub(rf"\b(?:not|neither|nor)\s+[(\[]?[{LETTERS}]\b[)\]]?", " ", plain(text))
    found = {letter for letter in re.findall(rf"[(\[]([{LETTERS}])[)\]]", text) if letter in LETTERS[:count]}
    return found.pop() if len(found) == 1 else None


def _last_commitment(response: str, count: int) -> str | None:
    last = None
    for match in _COMMITMENT.finditer(response):
        letter = next(group for group in match.groups() if group)
        before = response[max(0, match.start() - 40) : match.start(match.lastindex or 0)]
        if letter not in LETTERS[:count] or _REJECTED.search(before):
            continue
        if _REFUTED.match(response, match.end()):
            continue
        several = _FURTHER.match(response, match.end()) or _PRECEDED.search(before)
        last = None if several else letter
    return last


def choice_by_value(text: str, choices: Sequence[str], equivalent: Callable[[str, str], bool]) -> str | None:
    """The letter of the one option whose text or value is `text`; None for none or several."""
    same = [LETTERS[i] for i, option in enumerate(choices[: len(LETTERS)]) if _folded(option) == _folded(text)]
    if not same:
        same = [LETTERS[i] for i, option in enumerate(choices[: len(LETTERS)]) if equivalent(option, text)]
    return same[0] if len(same) == 1 else None


def _folded(text: str) -> str:
    return " ".join(plain(text).casefold().split())
