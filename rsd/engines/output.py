"""Keep what a library prints, and the processes that it starts, out of the terminal::

with printed_to(folder / "vllm-draft.log"):
    start_engine()
"""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

_ERROR = re.compile(r"^(?!.*\b(?:DEBUG|INFO|WARNING) ).*?\b(\w*(?:Error|Exception): .+)", re.MULTILINE)


@contextmanager
def printed_to(path: Path) -> Iterator[None]:
    """Send standard output and error to a new file `path`; for processes that are started in here, for good."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _flush()
    kept = {number: os.dup(number) for number in (1, 2)}
    try:
        with path.open("wb") as file:
            for number in kept:
                os.dup2(file.fileno(), number)
        yield
    finally:
        _flush()
        for number, copy in kept.items():
            os.dup2(copy, number)
            os.close(copy)


def last_error(path: Path, *, besides: Sequence[str]) -> str | None:
    """The last error that `path` tells of, in a line of its own that is no warning, among those with none of `besides`
    in them."""
    found = _ERROR.findall(path.read_text(encoding="utf-8", errors="replace"))
    return next((error for error in reversed(found) if not any(text in error for text in besides)), None)


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
