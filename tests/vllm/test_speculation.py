"""vLLM's own speculative decoding: the target's text, and what it took, by vLLM's counts."""

import asyncio
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from transformers import AutoModelForCausalLM

from rsd.errors import ConfigError
from rsd.models import load_models
from rsd.plan import make_plan
from rsd.records import Solution
from tests.conftest import compose_config
from tests.vllm.conftest import CACHE
from tests.vllm.test_engine import solve_all, solved_and_closed

pytestmark = pytest.mark.vllm


@pytest.fixture
def padded(tmp_path: Path) -> Path:
    """The tiny target with rows of padding in its vocabulary, as the paper's 7B has more of them than its draft."""
    folder = shutil.copytree(compose_config().model.policies["target"].path, tmp_path / "padded")
    model = AutoModelForCausalLM.from_pretrained(folder)
    model.resize_token_embeddings(model.config.vocab_size + 31)
    model.save_pretrained(folder)
    return folder


def test_greedy_text_is_the_targets_own_also_in_rejected_steps(padded: Path, tmp_path: Path) -> None:
    shared = (f"model.target.path={padded}", f"results_dir={tmp_path}", "limit=20")
    served = make_plan(compose_config("engine=vllm", CACHE, "method=speculative", *shared))
    alone = make_plan(compose_config("method=single", "method.role=target", *shared))
    rsd = make_plan(compose_config("method=rsd", "delta=0.9", *shared))

    async def drafted() -> tuple[list[Solution], list[Solution]]:
        target, others = load_models(served), load_models(rsd)
        try:
            pair = replace(others, target=target.target)  # the draft and the PRM of the embedded engine
            return await solve_all(served, target, 20), await solve_all(rsd, pair, 15)
        finally:
            await served.engine.close()
            await rsd.engine.close()

    whole, mixed = asyncio.run(drafted())
    for solution, own in zip(whole, asyncio.run(solved_and_closed(alone, 20)), strict=True):
        (proposal,), (expected,) = solution.proposals, own.proposals
        assert proposal.token_ids == expected.token_ids
        assert proposal.logprob_target == pytest.approx(expected.logprob_target, abs=1e-3)
        target, draft = proposal.usage["target"], proposal.usage["draft"]
        assert 0 < target.accepted <= target.drafted == draft.generated == draft.passes
        assert target.verified == target.drafted + target.passes - target.generated
        assert target.passes < target.generated
    rsd = make_plan(compose_config("method=rsd", "delta=0.9", *shared))
    expected_mixed = asyncio.run(solved_and_closed(rsd, 15))
    rewritten = [p.usage["target"] for solution in mixed for p in solution.proposals if p.origin == "target"]
    assert sum(usage.passes < usage.generated and usage.drafted > 0 for usage in rewritten) > 5
    for solution, own in zip(mixed, expected_mixed, strict=True):
        assert [p.token_ids for p in solution.proposals] == [p.token_ids for p in own.proposals]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (["method=speculative", "sampling.temperature=0.7"], r"set sampling\.temperature=0, or engine=transformers"),
        (["engine.target.tensor_parallel_size=2"], r"^engine\.target\.tensor_parallel_size=2: vLLM finds no GPU"),
        (["engine.prm.device=[0,1]"], r"^engine\.prm\.device=\(0, 1\): vLLM finds no GPU .*; leave it out\.$"),
        (
            ["engine.cpu_kv_cache_gib=1000"],
            r"^engine\.cpu_kv_cache_gib=1000 is too much: 3 such caches do not fit into",
        ),
        (["engine.prm.args={max_seqs: 9}"], r"^engine\.prm\.args: .* takes no max_seqs; did you mean max_num_seqs\?$"),
    ],
)
def test_what_a_cpu_cannot_do_is_told_before_anything_starts(settings: list[str], told: str, tmp_path: Path) -> None:
    plan = make_plan(compose_config("engine=vllm", *settings, f"results_dir={tmp_path}"))
    with pytest.raises(ConfigError, match=told):
        load_models(plan)
    assert not plan.engine.totals()  # nothing was started
