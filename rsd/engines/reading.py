"""What one model has read of each question, and so what a cache of it can serve::

reading = Reading()
reading.add(prompt, ids)         # a whole text, prompt included
reading.shared(prompt, longer)   # tokens at its beginning that have been read before
"""

from collections import defaultdict
from collections.abc import Sequence


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """Tokens that `a` and `b` begin with alike."""
    shortest = min(len(a), len(b))
    if a[:shortest] == b[:shortest]:
        return shortest
    return next(i for i in range(shortest) if a[i] != b[i])


class Reading:
    """The texts that a model has read, by the prompt that they begin with; those that go on replace their beginning."""

    def __init__(self) -> None:
        self._texts: defaultdict[tuple[int, ...], list[tuple[int, ...]]] = defaultdict(list)

    def shared(self, prompt: tuple[int, ...], ids: tuple[int, ...]) -> int:
        """Tokens of `ids`, from the first, that stand alike in a text which was read."""
        return max((common_prefix(text, ids) for text in self._texts[prompt]), default=0)

    def add(self, prompt: tuple[int, ...], ids: tuple[int, ...]) -> None:
        """Note that `ids` were read, a text that begins with `prompt`."""
        apart = [text for text in self._texts[prompt] if common_prefix(text, ids) < len(text)]
        self._texts[prompt] = [*apart, ids]
