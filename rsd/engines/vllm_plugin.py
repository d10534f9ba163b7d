"""Makes this project's reward models known to vLLM, in every process that vLLM starts.

vLLM calls `register` through the entry point ``vllm.general_plugins`` (pyproject.toml).
"""

# Architecture of a checkpoint -> class in `rsd.engines.vllm_models` that serves it.
SERVED_AS = {
    "Qwen2ForPrmModel": "LastTokenQwen2ForPrmModel",
    "Qwen2ForProcessRewardModel": "LastTokenQwen2ForProcessRewardModel",
}


def register() -> None:
    """Register the classes by name, under names of their own: vLLM imports one when a model needs it."""
    from vllm import ModelRegistry

    for name in SERVED_AS.values():
        ModelRegistry.register_model(name, f"rsd.engines.vllm_models:{name}")
