"""Speculative decoding: the target's own text, written in fewer of its passes."""

import asyncio
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
from scipy.stats import chisquare
from transformers import AutoModelForCausalLM

from rsd.engines.base import Context, Sampling
from rsd.errors import ConfigError
from rsd.models import load_models
from rsd.plan import make_plan
from rsd.records import PolicyRole
from tests.conftest import Run, compose_config

Floats = npt.NDArray[np.float64]


def test_greedy_text_is_the_targets_token_for_token(run: Run) -> None:
    shared = ("limit=50",)
    alone = run("method=single", "method.role=target", *shared)
    drafted = run("method=speculative", *shared)
    assert len(drafted) == 50
    for key, record in drafted.items():
        (proposal,), (own,) = record.proposals, alone[key].proposals
        assert proposal.token_ids == own.token_ids
        assert proposal.logprob_target == pytest.approx(own.logprob_target, abs=1e-4)
        target, draft = proposal.usage["target"], proposal.usage["draft"]
        # a round judges the drafted tokens and the one before them, and writes one more than it accepts of them
        assert target.verified == target.drafted + target.passes - target.generated
        assert 0 <= target.accepted <= target.drafted == draft.generated == draft.passes
        assert target.passes - 1 <= target.generated - target.accepted <= target.passes
    assert sum(r.proposals[0].usage["target"].passes for r in drafted.values()) < 0.5 * sum(
        len(r.proposals[0].token_ids) for r in drafted.values()
    )


def test_rejected_steps_are_written_by_speculative_decoding(run: Run) -> None:
    rsd, drafted = run("limit=15", "delta=0.9"), run("method=rsd_speculative", "limit=15", "delta=0.9")
    rewritten = 0
    for key, record in drafted.items():
        assert [p.token_ids for p in record.proposals] == [p.token_ids for p in rsd[key].proposals]
        for p in record.proposals:
            assert set(p.usage) == ({"draft", "prm"} if p.origin == "draft" else {"draft", "target"})
            rewritten += p.origin == "target" and p.usage["target"].passes < len(p.token_ids)
    assert rewritten > 5


def test_drawn_text_has_the_targets_distribution(run: Run) -> None:
    """One token at temperature 2 over 400 seeds, where draft and target differ most in a response: chi-square."""
    plan = make_plan(compose_config("method=speculative", "method.num_speculative_tokens=2"))
    (record,) = run("method=single", "method.role=target", "limit=1").values()
    prompt, response = load_models(plan).policy("target").prompt(plan.problems[0].question), record.proposals[0]
    draws, temperature = 400, 2.0
    target, draft = (probabilities(role, prompt, response.token_ids, temperature) for role in ("target", "draft"))
    place = int(abs(target - draft).sum(axis=1).argmax())
    context = Context(prompt=prompt, response=response.token_ids[:place])

    async def draw() -> Counter[int]:
        policy = load_models(plan).policy("target")
        drawn: Counter[int] = Counter()
        for seed in range(draws):
            sampling = Sampling(temperature=temperature, top_p=1.0, max_tokens=2, seed=seed, stop=None)
            drawn[(await policy.generate(context, sampling)).token_ids[0]] += 1
        await plan.engine.close()
        return drawn

    drawn = asyncio.run(draw())
    frequent = (draws * target[place] >= 5).nonzero()[0]

    def p_value(expected: Floats) -> float:
        counts, means = [drawn[i] for i in frequent], draws * expected[frequent]
        return float(chisquare([*counts, draws - sum(counts)], [*means, draws - means.sum()]).pvalue)

    assert p_value(target[place]) > 1e-3
    assert p_value(draft[place]) < 1e-6, "the test cannot tell draft and target apart"


def probabilities(role: PolicyRole, prompt: Sequence[int], response: Sequence[int], temperature: float) -> Floats:
    """Probabilities [tokens of the response, vocabulary] of each next token."""
    model = AutoModelForCausalLM.from_pretrained(compose_config().model.policies[role].path)
    with torch.inference_mode():
        logits = model(torch.tensor([[*prompt, *response]])).logits[0, len(prompt) - 1 : -1].double()
    return (logits / temperature).softmax(-1).numpy()


def test_rows_of_padding_in_one_vocabulary_are_no_obstacle(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The paper's main pair has vocabularies that are padded to different sizes."""
    target = compose_config().model.policies["target"].path
    padded = AutoModelForCausalLM.from_pretrained(target)
    padded.resize_token_embeddings(padded.config.vocab_size + 31)
    folder = shutil.copytree(target, tmp_path / "padded")
    padded.save_pretrained(folder)
    shared = ("limit=5", f"model.target.path={folder}")
    alone, drafted = run("method=single", "method.role=target", *shared), run("method=speculative", *shared)
    remark = "One tokenizer, with vocabularies padded to 481 (draft) and 512 (target) rows."
    assert capsys.readouterr().err.count(remark) == 1
    assert {k: r.response for k, r in drafted.items()} == {k: r.response for k, r in alone.items()}
    assert all(r.proposals[0].usage["target"].drafted for r in drafted.values())


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (["method=speculative", "method.num_speculative_tokens=-1"], r"method\.num_speculative_tokens=-1 is wrong"),
        (["method=speculative", "method.role=draft"], r"only the target has a drafter"),
        (["method=speculative", "model=tiny_l", "~model.draft"], r"needs a draft model"),
    ],
)
def test_bad_input_is_told_before_a_model_is_loaded(overrides: list[str], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        make_plan(compose_config(*overrides))
