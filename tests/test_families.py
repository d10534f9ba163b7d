"""The paper's model families: what their names stand for, and what they bring along."""

from pathlib import Path

import pytest

from tests.conftest import compose_config

PARAMETERS = {
    "Qwen/Qwen2.5-Math-1.5B-Instruct": 1_543_714_304,
    "Qwen/Qwen2.5-Math-7B-Instruct": 7_615_616_512,
    "Qwen/Qwen2.5-Math-72B-Instruct": 72_706_203_648,
    "Qwen/Qwen2.5-1.5B-Instruct": 1_543_714_304,
    "Qwen/Qwen2.5-7B-Instruct": 7_615_616_512,
    "meta-llama/Llama-3.2-1B-Instruct": 1_235_814_400,
    "meta-llama/Llama-3.1-8B-Instruct": 8_030_261_248,
}


@pytest.mark.parametrize(
    ("family", "draft", "target"),
    [
        ("model=qwen_math_7b", "Qwen/Qwen2.5-Math-1.5B-Instruct", "Qwen/Qwen2.5-Math-7B-Instruct"),
        ("model=qwen_math_72b", "Qwen/Qwen2.5-Math-7B-Instruct", "Qwen/Qwen2.5-Math-72B-Instruct"),
        ("model=qwen_math_72b_1p5b", "Qwen/Qwen2.5-Math-1.5B-Instruct", "Qwen/Qwen2.5-Math-72B-Instruct"),
        ("model=qwen_7b", "Qwen/Qwen2.5-1.5B-Instruct", "Qwen/Qwen2.5-7B-Instruct"),
        ("model=llama_8b", "meta-llama/Llama-3.2-1B-Instruct", "meta-llama/Llama-3.1-8B-Instruct"),
    ],
)
def test_a_family_names_its_models_and_brings_engine_benchmark_and_prm(family: str, draft: str, target: str) -> None:
    config = compose_config(family)
    assert config.model.name == family.removeprefix("model=")
    assert {role: policy.path for role, policy in config.model.policies.items()} == {"draft": draft, "target": target}
    assert all(policy.parameters == PARAMETERS[policy.path] for policy in config.model.policies.values())
    assert all(policy.revision is None for policy in config.model.policies.values())
    assert (config.prm.name, config.benchmark["name"]) == ("skywork_7b", "math500")
    assert config.engine["_target_"] == "rsd.engines.vllm.VLLMEngine"
    assert (config.limits.total_tokens, config.limits.step_tokens, config.limits.steps) == (4096, 2048, 100)


@pytest.mark.parametrize(
    ("family", "role", "sources"),
    [
        (
            "model=qwen_math_7b_merged_draft",
            "draft",
            ("Qwen2.5-Math-1.5B-Instruct", "Skywork-o1-Open-PRM-Qwen-2.5-1.5B"),
        ),
        ("model=qwen_math_7b_merged_target", "target", ("Qwen2.5-Math-7B-Instruct", "Skywork-o1-Open-PRM-Qwen-2.5-7B")),
        ("model=tiny_merged_draft", "draft", ("s", "prm_s")),
        ("model=tiny_merged_target", "target", ("m", "prm_m")),
    ],
)
def test_a_family_of_a_merged_model_brings_the_reward_model_it_was_merged_with(
    family: str, role: str, sources: tuple[str, str]
) -> None:
    config = compose_config(family, "merge_weight=0.5", "results_dir=here")
    policy, prm = config.model.policies[role], config.prm
    assert policy.merged is not None
    assert prm.merged == policy.merged
    assert (Path(policy.merged.policy).name, Path(policy.merged.prm).name) == sources
    assert policy.merged.weight == 0.5
    assert prm.path == f"{policy.path}/prm"
    assert policy.path.startswith("here/merged/")
    assert policy.path.endswith("-0.5")
    plain = compose_config(family.removesuffix(f"_merged_{role}"))
    assert policy.parameters == plain.model.policies[role].parameters
    assert config.model.policies.keys() == plain.model.policies.keys()


def test_what_the_command_line_names_comes_first() -> None:
    config = compose_config("model=qwen_math_7b", "prm=qwen_prm_7b", "benchmark=gsm8k", "engine=transformers")
    assert (config.prm.name, config.benchmark["name"]) == ("qwen_prm_7b", "gsm8k")
    assert config.engine["_target_"] == "rsd.engines.transformers.TransformersEngine"


@pytest.mark.parametrize(
    ("prm", "path", "context"),
    [
        ("prm=skywork_1p5b", "Skywork/Skywork-o1-Open-PRM-Qwen-2.5-1.5B", 4096),
        ("prm=skywork_7b", "Skywork/Skywork-o1-Open-PRM-Qwen-2.5-7B", 4096),
        ("prm=qwen_prm_7b", "Qwen/Qwen2.5-Math-PRM-7B", 4096),
        ("prm=qwen_prm_72b", "Qwen/Qwen2.5-Math-PRM-72B", 4096),
        ("prm=shepherd_7b", "peiyi9979/math-shepherd-mistral-7b-prm", None),
        ("prm=rlhflow_8b", "RLHFlow/Llama3.1-8B-PRM-Deepseek-Data", None),
    ],
)
def test_a_prm_names_its_checkpoint_and_reads_beyond_its_trained_context(
    prm: str, path: str, context: int | None
) -> None:
    config = compose_config(prm).prm
    assert (config.path, config.revision, config.max_length, config.context) == (path, None, 8192, context)
