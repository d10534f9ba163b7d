"""What a step is, is configuration: a string, a pattern, a number of tokens, with every method and engine that can."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from transformers import AutoTokenizer

from rsd.engines.base import Completion, Context, Models, Sampling
from rsd.errors import ConfigError
from rsd.methods.decoding import StepRule
from rsd.methods.single import Single
from rsd.methods.steps import split_steps
from rsd.plan import make_plan
from rsd.records import Record, Usage
from tests.conftest import Run, compose_config
from tests.toys import trajectory

RULES = {
    "a string": ["step.delimiter='.'"],
    "a pattern": ["step.delimiter=null", r"step.pattern='=\d+ '"],
    "a number": ["step.delimiter=null", "step.tokens=7"],
}


def steps(record: Record) -> list[str]:
    return [proposal.text for proposal in record.proposals if proposal.kept and proposal.text]


@pytest.mark.parametrize("rule", RULES)
def test_steps_end_by_the_rule_and_samples_are_split_by_it(rule: str, run: Run) -> None:
    overrides = RULES[rule]
    shared = [*overrides, "limit=6", "method=single", "method.role=draft"]
    stepwise, whole = run(*shared, "method.stepwise=true"), run(*shared)
    settings = make_plan(compose_config(*overrides)).decoding.step
    tokenizer = AutoTokenizer.from_pretrained(compose_config().model.draft.path)
    for key, record in stepwise.items():
        assert record.response == whole[key].response, "greedy decoding does not depend on where it pauses"
        found = steps(record)
        assert len(found) > 2
        assert found == split_steps(tokenizer, whole[key].proposals[0].token_ids[:-1], settings)
        for proposal in record.proposals[:-1]:
            assert proposal.finish == "step"
            match settings:
                case StepRule(tokens=int(count)):
                    assert len(proposal.token_ids) == count
                case StepRule(pattern=str()):
                    assert settings.stop.search(proposal.text)  # type: ignore[union-attr]
                    before = tokenizer.decode(proposal.token_ids[:-1])
                    assert not settings.stop.search(before), "the first token at which it matches"  # type: ignore[union-attr]
                case _:
                    assert proposal.text.count(".") == 1


@pytest.mark.parametrize("rule", RULES)
def test_rsd_and_its_prm_work_by_any_rule(rule: str, run: Run) -> None:
    overrides = RULES[rule]
    records = run(*overrides, "limit=4")
    assert {record.end_reason for record in records.values()} == {"eos"}
    drafted = [p for record in records.values() for p in record.proposals if p.origin == "draft" and p.text.strip()]
    assert all(proposal.reward is not None for proposal in drafted)


def test_the_rule_is_part_of_a_runs_identity_and_the_usual_one_is_as_it_was() -> None:
    usual = make_plan(compose_config())
    assert usual.identity["step"] == {"delimiter": "\n\n", "blank_pieces": 3}
    others = [make_plan(compose_config(*overrides)).folder for overrides in RULES.values()]
    assert len({usual.folder, *others}) == 4


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (
            ["step.tokens=7"],
            r"by one of step\.delimiter, step\.pattern, step\.tokens, not by .* and step\.tokens=7; set",
        ),
        (["step.delimiter=null"], r"not by none of them"),
        (["step.delimiter=null", "step.tokens=0"], r"step\.tokens=0 is wrong"),
        (["step.delimiter=null", "step.pattern='(a'"], r"step\.pattern='\(a' is no regular expression"),
        (["step.delimiter=null", "step.pattern='a*'"], r"step\.pattern='a\*' matches where there is no text"),
        (["step.delimiter=null", "step.pattern=a", "engine=vllm"], r"VLLMEngine ends a step at a string or after a"),
        (["step.delimiter=null", "step.pattern=a", "engine=openai"], r"OpenAIEngine ends a step at a string or after"),
    ],
)
def test_a_wrong_rule_is_told_before_a_model_is_loaded(overrides: list[str], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        make_plan(compose_config(*overrides))


class Bytes:
    """A tokenizer of bytes."""

    def decode(self, ids: Sequence[int], **_: object) -> str:
        return bytes(ids).decode(errors="replace")

    def batch_decode(self, batch: Sequence[Sequence[int]], **_: object) -> list[str]:
        return [self.decode(ids) for ids in batch]


@dataclass
class ByteWriter:
    """Writes `text` byte by byte; the byte 0 ends it."""

    text: bytes
    tokenizer: Bytes = field(default_factory=Bytes)

    def prompt(self, question: str) -> tuple[int, ...]:
        return (1,)

    async def generate(self, context: Context, sampling: Sampling) -> Completion:
        ids = tuple(self.text[len(context.response) :][: sampling.max_tokens])
        ended = ids[-1] == 0
        text = self.tokenizer.decode(ids[:-1] if ended else ids)
        return Completion(
            text=text, token_ids=ids, logprob=0.0, finish="eos" if ended else "length", usage=Usage(passes=len(ids))
        )


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_no_character_is_torn_between_steps(count: int) -> None:
    """Of one to four bytes each."""
    text = "aé漢🙂z 🙂🙂漢"
    written, rule = text.encode() + b"\0", StepRule(delimiter=None, tokens=count)
    started = trajectory(Models(draft=ByteWriter(written)), step=rule)
    asyncio.run(Single(role="draft", stepwise=True).solve(started))
    solution = started.solution()
    assert solution.response == text
    found = [proposal.text for proposal in solution.proposals if proposal.text]
    assert all(len(step.encode()) >= count > len(step.strip().encode()) - 4 for step in found[:-1])
    assert split_steps(Bytes(), written[:-1], rule) == found  # type: ignore[arg-type]


def test_the_other_engines_take_a_number_of_tokens() -> None:
    for engine in ("vllm", "openai"):
        rule = make_plan(compose_config("step.delimiter=null", "step.tokens=7", f"engine={engine}")).decoding.step
        assert (rule.tokens, rule.stop) == (7, None)
