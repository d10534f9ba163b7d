"""A response written in one go has the steps that a decoder would have written one by one."""

import pytest
from transformers import AutoTokenizer

from rsd.methods.decoding import StepRule
from rsd.methods.steps import split_steps
from tests.conftest import Run, compose_config


@pytest.mark.parametrize("role", ["draft", "target"])
def test_the_steps_are_those_of_the_decoder(run: Run, role: str) -> None:
    shared = ("limit=15", "method=single", f"method.role={role}", "benchmark=tiny_story")
    stepwise, whole = run("method.stepwise=true", *shared), run("method.stepwise=false", *shared)
    tokenizer = AutoTokenizer.from_pretrained(compose_config().model.draft.path)
    for key, record in whole.items():
        (proposal,) = record.proposals
        steps = split_steps(tokenizer, proposal.token_ids[:-1], StepRule())
        assert steps == [p.text for p in stepwise[key].proposals]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([], []),
        (["a", "\n\n", "b"], ["a\n\n", "b"]),
        (["a", "\n", "\n", "b"], ["a\n\n", "b"]),  # the delimiter may come in two tokens
        (["a", ".\n\n\n", "b"], ["a.\n\n\n", "b"]),  # further newlines of the same token belong to the step
        (["\n\n", "a", "\n\n", "\n\n"], ["\n\na\n\n", "\n\n"]),  # whitespace alone is part of the next step
        (["\n", "a\n", "\nb"], ["\na\n\nb"]),
    ],
)
def test_where_steps_end(texts: list[str], expected: list[str]) -> None:
    class Spelled:
        def decode(self, ids: list[int], **_: object) -> str:
            return "".join(texts[i] for i in ids)

        def batch_decode(self, batch: list[list[int]], **_: object) -> list[str]:
            return [self.decode(ids) for ids in batch]

    assert split_steps(Spelled(), range(len(texts)), StepRule()) == expected  # type: ignore[arg-type]
