"""Load the models of a run: those that its method needs, and no others::

models = load_models(plan)
"""

from rsd.engines.base import Models, ModelSource
from rsd.errors import ModelError
from rsd.plan import Plan
from rsd.records import PolicyRole
from rsd.rewards.base import ProcessReward


def load_models(plan: Plan) -> Models:
    """Load every role of the plan's method into its engine. Raises ModelError."""
    roles = plan.method.roles
    draft = plan.engine.load_policy("draft", _policy_source(plan, "draft")) if "draft" in roles else None
    target = plan.engine.load_policy("target", _policy_source(plan, "target")) if "target" in roles else None
    if draft is not None and target is not None and draft.tokenizer.get_vocab() != target.tokenizer.get_vocab():
        raise ModelError(
            "model.draft.path and model.target.path have different tokenizers, and this version lets them continue "
            "each other's tokens; choose two models of one family."
        )
    return Models(draft=draft, target=target, prm=_load_prm(plan) if "prm" in roles else None)


def _load_prm(plan: Plan) -> ProcessReward:
    assert plan.adapter is not None, "the plan has an adapter where the method needs a PRM"
    prm = plan.config.prm
    source = ModelSource(key="prm.path", path=prm.path, revision=prm.revision, dtype=prm.dtype, context=prm.max_length)
    return ProcessReward(plan.adapter, plan.engine.load_classifier(source), max_length=prm.max_length)


def _policy_source(plan: Plan, role: PolicyRole) -> ModelSource:
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
