"""What README.md and docs/ say, in parts that can be checked: code blocks, spans of code, links, and their commands.

page = Page(ROOT / "README.md")
page.blocks, page.spans, page.links, page.anchors
told(script_of(page), folder)     # every command of the page's blocks, as a shell would start it
"""

import re
import shlex
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.conftest import ROOT

PROGRAMS = ("python", "make", "rsd-run", "alpaca_eval")
SETTINGS = "settings"  # stands before lines of key=value that are no command
COMMAND = re.compile(rf"(?:[A-Z_]+=\S+\s+)*(?:{'|'.join(PROGRAMS)}|\.ci/run|eval)(?:\s|$)")
STUB = """\
#!/bin/bash
name=$0; case $name in "$PROGRAMS"/*) name=${name##*/} ;; esac
{ printf '%s\\0' "$PLACE" "$name" "$@"; printf '\\n'; } >> "$TOLD"
"""


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code: where it stands, the language that a fence names (None where it is indented), and its lines."""

    place: str
    language: str | None
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    @property
    def is_settings(self) -> bool:
        """Whether it holds words of the command line and no command."""
        words = shlex.split(self.text, comments=True)
        return bool(words) and all("=" in word for word in words)

    @property
    def commands(self) -> int:
        """Lines that begin with a command."""
        return sum(COMMAND.match(line.strip()) is not None for line in self.lines)


@dataclass(frozen=True, slots=True)
class Command:
    """A command as the shell starts it, with every variable, pattern and quote behind it."""

    place: str
    program: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class Page:
    """A page in Markdown."""

    path: Path

    @property
    def name(self) -> str:
        return str(self.path.relative_to(ROOT))

    @cached_property
    def _tokens(self) -> list[Token]:
        return MarkdownIt("commonmark").enable("table").parse(self.path.read_text())

    @cached_property
    def blocks(self) -> list[Block]:
        """Every block of code."""
        return [
            Block(self._place(t), t.info or "nothing" if t.type == "fence" else None, tuple(t.content.splitlines()))
            for t in self._tokens
            if t.type in ("fence", "code_block")
        ]

    @cached_property
    def spans(self) -> list[tuple[str, str]]:
        """Every span of code in the text, in one line, with the place of its paragraph."""
        return [(place, " ".join(c.content.split())) for place, c in self._inline if c.type == "code_inline"]

    @cached_property
    def links(self) -> list[tuple[str, str]]:
        """Where links and pictures lead."""
        found = [(place, c.attrGet("href") or c.attrGet("src")) for place, c in self._inline]
        return [(place, str(target)) for place, target in found if target]

    @cached_property
    def anchors(self) -> set[str]:
        """What a link may name of the page, by GitHub's rule: headings in small letters, without punctuation."""
        headings = [after.content for t, after in zip(self._tokens, self._tokens[1:], strict=False)
                    if t.type == "heading_open"]  # fmt: skip
        return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}

    @property
    def _inline(self) -> Iterable[tuple[str, Token]]:
        return ((self._place(t), child) for t in self._tokens for child in t.children or ())

    def _place(self, token: Token) -> str:
        return f"{self.name}:{token.map[0] + 1 if token.map else '?'}"


EXTENDING = [line for block in Page(ROOT / "README.md").blocks for line in block.lines if "--config-dir" in line]
"""Commands on files that the page itself shows, which tests/test_extending.py writes and runs."""


def script_of(page: Page) -> str:
    """The page's blocks of commands as one script, since later ones may use what earlier ones have set."""
    lines = []
    for block in page.blocks:
        if block.language is None:
            prefix = f"{SETTINGS} " if block.is_settings else ""
            lines += [f"export PLACE={block.place}", *(f"{prefix}{line}" for line in block.lines)]
    return "\n".join(lines)


def script_of_spans(page: Page) -> str:
    """The commands within the page's text as one script."""
    return "\n".join(f"export PLACE={place}\n{span}" for place, span in page.spans if COMMAND.match(f"{span} "))


def told(script: str, folder: Path) -> list[Command]:
    """Every command that bash comes to in `script`, called in `folder`, where programs only tell what they are given.

    Raises AssertionError where it comes to something that is none of `PROGRAMS`.
    """
    programs, log = folder / ".programs", folder / ".told"
    for path in (*(programs / name for name in (*PROGRAMS, SETTINGS)), folder / ".ci" / "run"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(STUB)
        path.chmod(0o755)
    activate = folder / ".venv" / "bin" / "activate"
    activate.parent.mkdir(parents=True, exist_ok=True)
    activate.touch()
    log.write_text("")
    environment = {"PATH": str(programs), "PROGRAMS": str(programs), "TOLD": str(log), "PLACE": ""}
    ended = subprocess.run(
        ["/bin/bash", "--norc", "-eu"], input=script, cwd=folder, env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    commands = [Command(f[0], f[1], tuple(f[2:])) for f in _fields(log.read_text().splitlines())]
    last = commands[-1].place if commands else "the beginning"
    assert ended.returncode == 0, f"after {last} something is no command that tests know: {ended.stderr.strip()}"
    return commands


def _fields(lines: Iterable[str]) -> Iterable[Sequence[str]]:
    return (line.split("\0")[:-1] for line in lines)
