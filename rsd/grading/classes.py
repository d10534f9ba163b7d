r"""Sort the answers of one question into classes of equal answers, as they come::

    classes = AnswerClasses(grader.first_equal)
    [await classes.place("q", answer) for answer in ("0.5", None, r"\frac{1}{2}", "0.6", "0.5")]  # [0, None, 0, 1, 0]

Majority voting counts classes, not strings.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence


class AnswerClasses:
    """The class of each answer: made once, when the answer is graded, and kept with its grade.

    Classes are numbered from 0 in the order of first appearance. Identical strings (but for surrounding white space)
    share a class; any other is compared, in order, with the first answer of each class, and joins the first that
    equals it. `first_equal` gives the index of the first of several answers that equals one (`Grader.first_equal`);
    `known` are (question_id, answer, class) of earlier grades.
    """

    def __init__(
        self,
        first_equal: Callable[[str, Sequence[str]], Awaitable[int | None]],
        known: Iterable[tuple[str, str | None, int | None]] = (),
    ) -> None:
        self._first_equal = first_equal
        self._known: defaultdict[str, dict[str, int]] = defaultdict(dict)
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        for question_id, answer, number in known:
            if answer is not None and number is not None:
                self._known[question_id].setdefault(answer.strip(), number)

    async def place(self, question_id: str, answer: str | None) -> int | None:
        """The class of one more answer to a question; None where there is no answer."""
        text = (answer or "").strip()
        if not text:
            return None
        async with self._locks[question_id]:
            known = self._known[question_id]
            if text not in known:
                representatives = {number: first for first, number in reversed(known.items())}
                numbers = sorted(representatives)
                found = None
                if numbers:
                    found = await self._first_equal(text, [representatives[number] for number in numbers])
                known[text] = numbers[found] if found is not None else max(numbers, default=-1) + 1
            return known[text]
