"""Load the models of a run: those that its method needs, and no others::

models = load_models(plan)
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import orjson

from rsd.engines.base import Models, ModelSource
from rsd.errors import ConfigError
from rsd.methods.base import Method
from rsd.plan import Plan, adapter_of
from rsd.records import Role
from rsd.rewards.base import ProcessReward

if TYPE_CHECKING:  # heavy, and only named here
    from transformers import PreTrainedTokenizerBase


def load_models(plan: Plan, roles: Sequence[Role] | None = None) -> Models:
    """Load `roles`, or all of the plan's method, into its engine.

    Raises ModelError, ConfigError where they do not fit or draft and target should share a tokenizer and do not.
    """
    sources = {role: source_of(plan, role) for role in (plan.method.roles if roles is None else roles)}
    remarks = []
    if isinstance(plan.method, Method) and (plan.method.num_speculative_tokens or plan.method.reads_likelihoods):
        remarks += _check_tokenizers(plan)
    plan.engine.prepare(sources, logs=plan.logs)
    draft = plan.engine.load_policy("draft", sources["draft"]) if "draft" in sources else None
    target = plan.engine.load_policy("target", sources["target"]) if "target" in sources else None
    prm = None
    if "prm" in sources:
        assert plan.adapter is not None, "the plan has an adapter where the method needs a PRM"
        classifier = plan.engine.load_classifier(sources["prm"])
        prm = ProcessReward(plan.adapter, classifier, max_length=sources["prm"].context)
        remarks += plan.adapter.remarks(classifier.tokenizer)
        if plan.config.prm.merged is not None:
            remarks += _of_merged(plan, sources)
    for role, shape in plan.engine.shapes().items():
        source = source_of(plan, role)
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


def _of_merged(plan: Plan, sources: Mapping[Role, ModelSource]) -> list[str]:
    """Whether a policy and the PRM that were merged are one set of weights in memory."""
    import torch

    from rsd.engines.checkpoint import in_common  # loads torch as well

    sizes = {role: size / 2**20 for role, size in plan.engine.weights().items()}
    merged = [role for role in sources if role != "prm" and in_common(sources["prm"], sources[role])]
    if not (merged and sizes):
        return []
    each = getattr(torch, plan.config.prm.dtype).itemsize
    one, whole = merged[0], plan.engine.shapes()["prm"].parameters * each / 2**20
    if sizes["prm"] < whole:
        return [f"{one} ({sizes[one]:,.1f} MiB) and prm are one set of weights, beside {sizes['prm']:,.1f} MiB of prm."]
    return [
        f"{one} ({sizes[one]:,.1f} MiB) and prm ({sizes['prm']:,.1f} MiB) are engines of their own, though they have "
        "weights in common: an engine of vLLM either writes or scores."
    ]


def share_tokens(one: "PreTrainedTokenizerBase", other: "PreTrainedTokenizerBase") -> bool:
    """Whether two models read each other's tokens: padding widens a model's vocab_size, not the vocabulary."""
    return one.get_vocab() == other.get_vocab()


def _check_tokenizers(plan: Plan) -> list[str]:
    """A remark where the vocabularies of draft and target are padded to different sizes, which the engines see to.

    Raises ConfigError where the two do not read each other's tokens.
    """
    from rsd.engines.loading import load_config, load_tokenizer  # loads torch

    draft, target = source_of(plan, "draft"), source_of(plan, "target")
    if not share_tokens(load_tokenizer(draft), load_tokenizer(target)):
        raise ConfigError(
            f"method '{plan.method.name}' lets one model judge the other's tokens, and {draft.path} and {target.path} "
            "have different tokenizers; set model.draft.path to a model of the target's family, or choose another "
            "method or weighting."
        )
    sizes = [load_config(source).vocab_size for source in (draft, target)]
    if sizes[0] == sizes[1]:
        return []
    return [f"One tokenizer, with vocabularies padded to {sizes[0]:,} (draft) and {sizes[1]:,} (target) rows."]


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
            label_tokens=adapter_of(plan.config).label_tokens,
        )
    model = plan.config.model
    policy = model.policies[role]
    tokens = plan.method.num_speculative_tokens if role == "target" and isinstance(plan.method, Method) else 0
    return ModelSource(
        key=f"model.{role}.path",
        path=policy.path,
        revision=policy.revision,
        dtype=policy.dtype,
        context=plan.decoding.limits.total_tokens,
        prompt=model.prompt_text,
        system=model.system,
        parameters=policy.parameters,
        drafter=source_of(plan, "draft") if tokens else None,
        drafted=tokens,
        greedy=not tokens or plan.decoding.temperature == 0,
    )


def name_of(plan: Plan, role: Role) -> str:
    """Names what the plan's model of `role` answers by: weights, their precision, what serves them, and the drafter
    whose work is a part of an answer's usage."""
    model = {**plan.identity["models"][role], "engine_class": plan.config.engine["_target_"]}
    if role == "target" and isinstance(plan.method, Method) and plan.method.num_speculative_tokens:
        model |= {"drafter": plan.identity["models"]["draft"], "drafted": plan.method.num_speculative_tokens}
    return orjson.dumps(model, option=orjson.OPT_SORT_KEYS).decode()
