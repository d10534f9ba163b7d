"""Which of a model's copies answers a question: all calls of a question go to one of them, where its prefix is cached.

copies = Copies()
with copies.chosen(context.prompt, among=range(2)) as number:
    answer = await engines[number].answer(context)
"""

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager


class Copies:
    """Spreads questions: each goes to the copy with the fewest calls in flight when the question's first one comes."""

    def __init__(self) -> None:
        self.of_prompt: dict[tuple[int, ...], int] = {}  # the copy of each question
        self._in_flight: Counter[int] = Counter()

    @contextmanager
    def chosen(self, prompt: tuple[int, ...], among: Sequence[int]) -> Iterator[int]:
        """The copy that answers the question with `prompt`, for the time of one call. `among`: those that may."""
        eligible: Container[int | None] = among
        if self.of_prompt.get(prompt) not in eligible:
            self.of_prompt[prompt] = min(among, key=lambda copy: self._in_flight[copy])
        number = self.of_prompt[prompt]
        self._in_flight[number] += 1
        try:
            yield number
        finally:
            self._in_flight[number] -= 1
