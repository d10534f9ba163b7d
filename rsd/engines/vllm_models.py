"""Reward models in vLLM as classifiers of the last token, so that its prefix cache serves earlier steps.

vLLM's own class for Qwen2.5-Math-PRM reads the mark of every step, which switches prefix caching off; Skywork's
architecture it does not have. Both heads are applied inside `forward`, to the last token by the pooler.
"""

from collections.abc import Iterable

import torch
from vllm.config import VllmConfig
from vllm.model_executor.layers.linear import ReplicatedLinear
from vllm.model_executor.layers.pooler import DispatchPooler
from vllm.model_executor.models.interfaces_base import default_pooling_type
from vllm.model_executor.models.qwen2_rm import Qwen2RewardBaseModel


def _last_token_pooler(vllm_config: VllmConfig) -> DispatchPooler:
    pooler_config = vllm_config.model_config.pooler_config
    assert pooler_config is not None, "vLLM runs this model as a pooling model"
    return DispatchPooler.for_seq_cls(pooler_config)


@default_pooling_type(seq_pooling_type="LAST")
class LastTokenQwen2ForProcessRewardModel(Qwen2RewardBaseModel):
    """Qwen2.5-Math-PRM: two linear layers with a ReLU between them, two labels."""

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        vllm_config.model_config.hf_config.num_labels = 2
        super().__init__(vllm_config=vllm_config, prefix=prefix)
        self.pooler = _last_token_pooler(vllm_config)


@default_pooling_type(seq_pooling_type="LAST")
class LastTokenQwen2ForPrmModel(Qwen2RewardBaseModel):
    """Skywork-o1-Open-PRM: one linear layer with bias, ``v_head.summary`` in the checkpoint, one label."""

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        config = vllm_config.model_config.hf_config
        config.num_labels = 1
        super().__init__(vllm_config=vllm_config, prefix=prefix)
        self.score = ReplicatedLinear(config.hidden_size, 1, bias=True, params_dtype=self.head_dtype, return_bias=False)
        self.pooler = _last_token_pooler(vllm_config)

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]]) -> set[str]:
        """Load a checkpoint under the names it has on the hub."""
        return super().load_weights((name.replace("v_head.summary.", "score."), weight) for name, weight in weights)
