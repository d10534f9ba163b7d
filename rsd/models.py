"""Load the models of a run: those that its method needs, and no others::

models = load_models(plan)
"""

from typing import TYPE_CHECKING

from rsd.engines.base import Models, ModelSource
from rsd.plan import Plan
from rsd.records import Role
from rsd.rewards.base import ProcessReward

if TYPE_CHECKING:  # heavy, and only named here
    from transformers import PreTrainedTokenizerBase


def load_models(plan: Plan) -> Models:
    """Load every role of the plan's method into its engine. Raises ModelError, ConfigError where they do not fit."""
    sources = {role: source_of(plan, role) for role in plan.method.roles}
    plan.engine.prepare(sources)
    draft = plan.engine.load_policy("draft", sources["draft"]) if "draft" in sources else None
    target = plan.engine.load_policy("target", sources["target"]) if "target" in sources else None
    return Models(
        draft=draft,
        target=target,
        prm=_load_prm(plan, sources["prm"]) if "prm" in sources else None,
        one_tokenizer=draft is None or target is None or share_tokens(draft.tokenizer, target.tokenizer),
    )


def share_tokens(one: "PreTrainedTokenizerBase", other: "PreTrainedTokenizerBase") -> bool:
    """Whether two models read each other's tokens: padding widens a model's vocab_size, not the vocabulary."""
    return one.get_vocab() == other.get_vocab()


def _load_prm(plan: Plan, source: ModelSource) -> ProcessReward:
    assert plan.adapter is not None, "the plan has an adapter where the method needs a PRM"
    return ProcessReward(plan.adapter, plan.engine.load_classifier(source), max_length=source.context)


def source_of(plan: Plan, role: Role) -> ModelSource:
    """Where the plan's model of `role` comes from, and how it is loaded."""
    if role == "prm":
        prm = plan.config.prm
        return ModelSource(
            key="prm.path", path=prm.path, revision=prm.revision, dtype=prm.dtype, context=prm.max_length
        )
    model = plan.config.model
    policy = model.policies[role]
    return ModelSource(
        key=f"model.{role}.path",
        path=policy.path,
        revision=policy.revision,
        dtype=policy.dtype,
        context=plan.decoding.limits.total_tokens,
        prompt=model.prompt_text,
    )
