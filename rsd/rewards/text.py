"""What formats of reward models share: a step's text without the delimiter that the decoder kept."""

import re

_DELIMITER = re.compile(r"\n\n+\Z")


def without_delimiter(step: str) -> str:
    """`step` without the blank lines that end it: these formats put a mark of their own there."""
    return _DELIMITER.sub("", step)
