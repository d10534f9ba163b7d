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
    plan.engine.prepare(sources, logs=plan.folder)
    draft = plan.engine.load_policy("draft", sources["draft"]) if "draft" in sources else None
    target = plan.engine.load_policy("target", sources["target"]) if "target" in sources else None
    prm, remarks = None, []
    if "prm" in sources:
        assert plan.adapter is not None, "the plan has an adapter where the method needs a PRM"
        classifier = plan.engine.load_classifier(sources["prm"])
        prm = ProcessReward(plan.adapter, classifier, max_length=sources["prm"].context)
        remarks = plan.adapter.remarks(classifier.tokenizer)
    for role, shape in plan.engine.shapes().items():
        source = sources[role]
        if source.parameters not in (None, shape.parameters):
            key = source.key.removesuffix("path") + "parameters"
            remarks.append(
                f"{source.key}: {source.path} has {shape.parameters:,} parameters; {key} says {source.parameters:,}."
            )
    return Models(
        draft=draft,
        target=target,
        prm=prm,
        one_tokenizer=draft is None or target is None or share_tokens(draft.tokenizer, target.tokenizer),
        remarks=tuple(remarks),
    )


def share_tokens(one: "PreTrainedTokenizerBase", other: "PreTrainedTokenizerBase") -> bool:
    """Whether two models read each other's tokens: padding widens a model's vocab_size, not the vocabulary."""
    return one.get_vocab() == other.get_vocab()


def source_of(plan: Plan, role: Role) -> ModelSource:
    """Where the plan's model of `role` comes from, and how it is loaded."""
    if role == "prm":
        prm = plan.config.prm
        return ModelSource(
            key="prm.path",
            path=prm.path,
            revision=prm.revision,
            dtype=prm.dtype,
            context=prm.max_length,
            parameters=prm.parameters,
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
        system=model.system,
        parameters=policy.parameters,
    )
