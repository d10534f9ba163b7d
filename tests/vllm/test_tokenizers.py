"""Steps, prompts and reward models' inputs under the real tokenizers of Qwen2.5 and Llama 3."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from rsd.engines.base import Completion, Context, Models, Sampling
from rsd.engines.prompts import prompt_ids
from rsd.errors import ModelError
from rsd.methods.rsd import RSD
from rsd.methods.single import Single
from rsd.models import share_tokens, source_of
from rsd.plan import make_plan
from rsd.records import Usage
from rsd.rewards.base import Adapter
from rsd.rewards.qwen import SYSTEM, QwenPRM
from rsd.rewards.rlhflow import RLHFlowPRM
from rsd.rewards.shepherd import ShepherdPRM
from rsd.rewards.skywork import SkyworkPRM
from rsd.weighting import Binary
from tests.conftest import compose_config
from tests.toys import ScriptedPRM, solved, trajectory
from tests.vllm.conftest import MARK_ID, MATH

pytestmark = pytest.mark.vllm

STEPS = ["Let $x=1$.\n\n", "\n\n", "So (x+1)\n\n\n\n", "Then:\n\n\n", "The answer is \\boxed{2}."]
BOS = {"qwen_math_7b": 0, "llama_8b": 1}


@pytest.mark.parametrize("family", BOS)
def test_the_documented_prompt_is_the_templates_own(family: str, request: pytest.FixtureRequest) -> None:
    tokenizer = request.getfixturevalue(family.partition("_")[0])
    sources = [
        source_of(make_plan(compose_config(f"model={family}", f"model.prompt={prompt}", *MATH)), "target")
        for prompt in ("reference", "chat_template")
    ]
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "1+1?"}]
    own = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    ids, same = (prompt_ids(tokenizer, source, "1+1?") for source in sources)
    assert ids == same
    assert ids.count(tokenizer.convert_tokens_to_ids("<|begin_of_text|>")) == BOS[family]
    assert tokenizer.decode(list(ids)) == own


@pytest.mark.parametrize("name", ["qwen", "llama"])
def test_steps_survive_their_tokens_byte_for_byte(name: str, request: pytest.FixtureRequest) -> None:
    tokenizer = request.getfixturevalue(name)
    for step in STEPS:
        assert tokenizer.decode(tokenizer(step, add_special_tokens=False).input_ids) == step


def test_skyworks_input_is_the_documented_one(skywork: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(skywork)
    assert SkyworkPRM().prompt(tokenizer, "1+1?") == (151644, *tokenizer("1+1?\n").input_ids)
    pieces = [SkyworkPRM().step(tokenizer, step, False) for step in STEPS]
    texts = ["Let $x=1$.", "", "So (x+1)", "Then:", "The answer is \\boxed{2}."]
    assert pieces == [(*tokenizer(text).input_ids, 271) for text in texts]
    assert pieces[1] == (271,)


def test_qwens_input_is_the_documented_one(qwen_prm: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(qwen_prm)
    adapter = QwenPRM()
    ids = list(adapter.prompt(tokenizer, "1+1?"))
    for step in STEPS:
        ids += adapter.step(tokenizer, step, False)
    texts = ["Let $x=1$.", "", "So (x+1)", "Then:", "The answer is \\boxed{2}."]
    messages = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": "1+1?"},
        {"role": "assistant", "content": "<extra_0>".join(texts) + "<extra_0>"},
    ]
    whole = tokenizer.apply_chat_template(messages, tokenize=False)
    whole = whole[: whole.rindex("<extra_0>") + len("<extra_0>")]  # what follows does not bear on the score
    assert ids == tokenizer(whole, add_special_tokens=False).input_ids
    assert [ids.index(MARK_ID), ids.count(MARK_ID), ids[-1]] == [ids.index(MARK_ID), len(STEPS), MARK_ID]


def whole_input(adapter: Adapter, tokenizer: PreTrainedTokenizerBase, question: str, steps: list[str]) -> list[int]:
    pieces = [adapter.step(tokenizer, step, n == 0) for n, step in enumerate(steps)]
    return [token for piece in (adapter.prompt(tokenizer, question), *pieces) for token in piece]


def test_math_shepherds_input_is_the_documented_one(shepherd: Path) -> None:
    """The tokens of the whole text, a question and steps divided by line breaks, each with its mark."""
    tokenizer = AutoTokenizer.from_pretrained(shepherd)
    ids = whole_input(ShepherdPRM(), tokenizer, "1+1?", STEPS)
    texts = ["Let $x=1$.", "", "So (x+1)", "Then:", "The answer is \\boxed{2}."]
    assert ids == tokenizer("1+1? " + "\n".join(f"{text} ки" for text in texts)).input_ids
    assert [ids.count(12902), ids[-1], ids[0]] == [len(STEPS), 12902, tokenizer.bos_token_id]
    assert tokenizer.convert_tokens_to_ids(list(ShepherdPRM.label_tokens)) == [387, 648]


def test_rlhflows_input_is_the_documented_one(llama: PreTrainedTokenizerBase) -> None:
    """A turn for each step, the first of them with the question, and + as the answer to all but the last."""
    texts = ["Let $x=1$.", "", "So (x+1)", "Then:", "The answer is \\boxed{2}."]
    turns = [{"role": "user", "content": f"1+1? {texts[0]}"}]
    for text in texts[1:]:
        turns += [{"role": "assistant", "content": "+"}, {"role": "user", "content": text}]
    text = llama.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    ids = whole_input(RLHFlowPRM(), llama, "1+1?", STEPS)
    assert ids == llama(text, add_special_tokens=False).input_ids
    assert ids.count(llama.bos_token_id) == 1
    assert llama.convert_tokens_to_ids(list(RLHFlowPRM.label_tokens)) == [12, 10]


def test_a_tokenizer_without_the_mark_is_refused(qwen: PreTrainedTokenizerBase) -> None:
    with pytest.raises(ModelError, match="no token <extra_0>"):
        QwenPRM().step(qwen, "a", True)
    with pytest.raises(ModelError, match="no token ▁ки"):
        ShepherdPRM().step(qwen, "a", True)
    for adapter in (SkyworkPRM(), ShepherdPRM()):
        with pytest.raises(ModelError, match="names no bos_token"):
            adapter.prompt(qwen, "a")
    with pytest.raises(ModelError, match="template is not Llama 3's"):
        RLHFlowPRM().prompt(qwen, "a")


@dataclass
class Speaker:
    """Writes `steps` in turn, in its own tokens, and remembers what it was given to continue."""

    tokenizer: PreTrainedTokenizerBase
    steps: list[str]
    given: list[Context] = field(default_factory=list)

    def prompt(self, question: str) -> tuple[int, ...]:
        return tuple(self.tokenizer(f"Q: {question}\n", add_special_tokens=False).input_ids)

    async def generate(self, context: Context, sampling: Sampling) -> Completion:
        self.given.append(context)
        text = self.steps.pop(0)
        ids = tuple(self.tokenizer(text, add_special_tokens=False).input_ids)
        return Completion(text=text, token_ids=ids, logprob=0.0, finish="step", usage=Usage(generated=len(ids)))


def test_two_tokenizers_read_one_response_in_two_lists(
    qwen: PreTrainedTokenizerBase, llama: PreTrainedTokenizerBase
) -> None:
    draft = Speaker(qwen, ["Number 1234567.\n\n", "unused\n\n", "End.\n\n"])
    target = Speaker(llama, ["Number 7654321, “ß”.\n\n"])
    rewards = iter([0.9, 0.1, 0.9])
    models = Models(draft=draft, target=target, prm=ScriptedPRM(lambda _: next(rewards)), one_tokenizer=False)
    ended = solved(RSD(weighting=Binary(delta=0.7)), trajectory(models, steps=3)).solution()
    assert ended.end_reason == "max_steps", ended
    assert ended.response == "Number 1234567.\n\nNumber 7654321, “ß”.\n\nEnd.\n\n"
    # own tokens as they were written; the other's text encoded step by step
    (given,) = target.given
    assert given.response == tuple(llama("Number 1234567.\n\n", add_special_tokens=False).input_ids)
    last = draft.given[-1].response
    assert qwen.decode(list(last)) == "Number 1234567.\n\nNumber 7654321, “ß”.\n\n"
    assert last[: len(draft.given[1].response)] == draft.given[1].response


def test_a_text_that_a_tokenizer_does_not_give_back_is_an_error(
    qwen: PreTrainedTokenizerBase, llama: PreTrainedTokenizerBase
) -> None:
    draft, target = Speaker(qwen, []), Speaker(llama, ["e\u0301.\n\n"])  # Qwen's tokenizer composes the accent
    models = Models(draft=draft, target=target, one_tokenizer=False)
    with pytest.raises(ModelError, match=r"model\.draft\.path: its tokenizer does not give back"):
        solved(Single(role="target", stepwise=True), trajectory(models))


def test_padding_does_not_make_another_tokenizer(qwen: PreTrainedTokenizerBase, llama: PreTrainedTokenizerBase) -> None:
    same = AutoTokenizer.from_pretrained(qwen.name_or_path)
    assert share_tokens(qwen, same)  # 1.5B has 151,936 rows and 7B 152,064, of one vocabulary
    assert not share_tokens(qwen, llama)
