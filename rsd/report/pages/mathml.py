"""Formulas in texts of models: found by their delimiters, and converted from LaTeX to MathML, which browsers draw
without a network.

    formulas = Formulas()
    formulas.text("Let $x^2$ be")     # ["Let ", 0, " be"]
    formulas.trees[0]                 # ["math", {}, ["msup", {}, ["mi", {}, "x"], ["mn", {}, "2"]]]

The texts are untrusted: a tree holds only elements and attributes that are named here, and its texts are set as texts,
never read as markup. What cannot be converted stays as it was written.
"""

import re
from functools import lru_cache
from html import unescape
from typing import Any

Tree = list[Any]  # [element, {attribute: value}, child, …], a child being a tree or a text
Text = str | list[str | int]  # a plain text, or its parts: texts, and indices of formulas

ELEMENTS = {
    *("math", "menclose", "mfrac", "mi", "mn", "mo", "mover", "mpadded", "mphantom", "mroot", "mrow", "mspace"),
    *("msqrt", "mstyle", "msub", "msubsup", "msup", "mtable", "mtd", "mtext", "mtr", "munder", "munderover"),
}
ATTRIBUTES = {
    *("accent", "columnalign", "display", "displaystyle", "fence", "linethickness", "mathvariant", "maxsize"),
    *("minsize", "movablelimits", "notation", "separator", "stretchy", "width"),
}
LONGEST = 1000  # characters of a formula
BLOCKS = {"block", "bracket", "environment"}  # formulas in lines of their own
FORMULA = re.compile(
    rf"(?<!\\)\$\$(?P<block>[^$]{{1,{LONGEST}}})\$\$|\\\[(?P<bracket>.{{1,{LONGEST}}}?)\\\]"
    rf"|\\\((?P<round>.{{1,{LONGEST}}}?)\\\)"
    rf"|(?<![\\$])\$(?![\s$])(?P<dollar>[^$\n]{{1,{LONGEST}}})(?<![\s\\])\$(?!\d)"  # not the price of something
    rf"|(?P<environment>\\begin\{{(?P<kind>(?:align|equation|gather)\*?)\}}.{{1,{LONGEST}}}?\\end\{{(?P=kind)\}})"
    rf"|(?P<box>\\boxed\{{(?:[^{{}}]|\{{(?:[^{{}}]|\{{[^{{}}]{{0,200}}\}}){{0,200}}\}}){{0,200}}\}})",
    re.DOTALL,
)


class Formulas:
    """The formulas of some texts, each of them once."""

    def __init__(self) -> None:
        self.trees: list[Tree] = []
        self._places: dict[tuple[str, bool], int] = {}

    def text(self, text: str) -> Text:
        """A text in its parts."""
        parts: list[str | int] = []
        end = 0
        for found in FORMULA.finditer(text):
            source = found[found.lastgroup or 0]
            place = self._place(source, found.lastgroup in BLOCKS)
            if place is not None:
                parts += [text[end : found.start()], place]
                end = found.end()
        return [part for part in (*parts, text[end:]) if part != ""] if parts else text

    def answer(self, answer: str) -> Text:
        """An answer, which is a formula as a whole where it holds LaTeX."""
        place = self._place(answer, block=False) if re.search(r"[\\^_]", answer) else None
        return self.text(answer) if place is None else [place]

    def _place(self, source: str, block: bool) -> int | None:
        key = source, block
        if key not in self._places:
            tree = converted(source, block) if len(source) <= LONGEST else None
            if tree is None:
                return None
            self._places[key] = len(self.trees)
            self.trees.append(tree)
        return self._places[key]


@lru_cache(maxsize=100_000)
def converted(source: str, block: bool) -> Tree | None:
    """The formula as a tree; None where the converter does not understand it, or makes of it what is not named here."""
    from latex2mathml.converter import convert_to_element

    try:
        return _tree(convert_to_element(source, display="block" if block else "inline"))
    except Exception:  # whatever it stumbles over in a text that a model wrote, the text is shown as it stands
        return None


def _tree(element: Any) -> Tree:
    if element.tag not in ELEMENTS:
        raise ValueError(f"{element.tag} is no element of formulas")
    attributes = {name: value for name, value in element.attrib.items() if name in ATTRIBUTES}
    texts = [unescape(element.text)] if element.text else []
    return [element.tag, attributes, *texts, *map(_tree, element)]
