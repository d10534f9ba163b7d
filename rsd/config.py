"""The validated configuration: what Hydra composed, turned into checked values or one sentence.

    config = check(OmegaConf.to_container(cfg, resolve=True))
    config.model.target.path

An unknown key, a value out of range or of the wrong type raises ConfigError before anything heavy
is imported. Groups that name a class in ``_target_`` (weighting, method, benchmark, engine, logger)
are checked against that class's own signature by `build`.
"""

import inspect
import pkgutil
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, TypeVar, get_type_hints

from annotated_types import Ge, Gt, Le, Lt, MinLen
from pydantic import BaseModel, ConfigDict, FiniteFloat, ValidationError, create_model, model_validator

from rsd.errors import ConfigError
from rsd.faults import first_fault, no_flag_is_a_number
from rsd.methods.decoding import Decoding, Limits, StepRule
from rsd.records import FolderName, PolicyRole

PROGRESS_EVERY = 30  # seconds
SMALLEST_CONTEXT = 256  # tokens; a model that holds fewer answers no benchmark question


class Section(BaseModel):
    """A part of the configuration; keys that it does not name are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class MergedConfig(Section):
    """Which models `rsd.merge` makes a checkpoint of, and the policy's share in it."""

    policy: str
    prm: str
    weight: Annotated[float, Ge(0), Le(1)]

    def command(self, out: str) -> str:
        """What makes it in the folder `out`."""
        told = f"policy={self.policy} prm={self.prm} weight={self.weight:g} out={out}"
        return f"python -m rsd.merge {told}"


class MergeConfig(MergedConfig):
    """What the command that merges is told."""

    weight: Annotated[float, Ge(0), Le(1)] = 0.6
    merge: Annotated[tuple[Literal["blocks", "norm", "embeddings"], ...], MinLen(1)] = ("blocks",)
    out: str


class PolicyConfig(Section):
    """One policy: a hub id or a local folder; `context` is the most tokens it can read, `parameters` how
    many it should have (null: unknown). `merged`: what its folder is made of, where `rsd.merge` makes it."""

    path: str
    revision: str | None = None
    dtype: Literal["float32", "bfloat16", "float16"]
    context: Annotated[int, Ge(1)]
    parameters: Annotated[int, Ge(1)] | None = None
    merged: MergedConfig | None = None


class ModelConfig(Section):
    """A family: the draft, the target, and the prompt that both are asked with.

    `prompt` is ``reference`` for the text in `reference_prompt` (with ``{question}`` in it) or
    ``chat_template`` for each tokenizer's own template, with the message `system`.
    """

    name: str
    draft: PolicyConfig | None = None
    target: PolicyConfig | None = None
    prompt: Literal["reference", "chat_template"]
    reference_prompt: str
    system: str | None = None

    @property
    def policies(self) -> dict[PolicyRole, PolicyConfig]:
        """The policies that the family has."""
        both: dict[PolicyRole, PolicyConfig | None] = {"draft": self.draft, "target": self.target}
        return {role: policy for role, policy in both.items() if policy is not None}

    @model_validator(mode="after")
    def _asks_the_question(self) -> Self:
        if self.prompt == "reference" and "{question}" not in self.reference_prompt:
            raise ValueError("must hold {question} in reference_prompt")
        return self

    @property
    def prompt_text(self) -> str | None:
        """The prompt with ``{question}`` in it; None for the tokenizer's own template."""
        return self.reference_prompt if self.prompt == "reference" else None


class PRMConfig(Section):
    """A process reward model; `adapter` is the class in ``rsd/rewards`` that knows its format.

    `max_length` is the most tokens of question and steps together, `context` how many it was trained on,
    `parameters` how many it should have, head included (null: unknown), `merged` as of a policy.
    """

    name: FolderName
    adapter: str | None = None
    path: str
    revision: str | None = None
    dtype: Literal["float32", "bfloat16", "float16"]
    max_length: Annotated[int, Ge(1)]
    context: Annotated[int, Ge(1)] | None = None
    parameters: Annotated[int, Ge(1)] | None = None
    merged: MergedConfig | None = None


class SamplingConfig(Section):
    """Temperature 0 is greedy decoding."""

    temperature: Annotated[FiniteFloat, Ge(0)]
    top_p: Annotated[float, Gt(0), Le(1)]


class SubsetConfig(Section):
    """Only the questions whose row has one of these values (null: any)."""

    level: int | str | tuple[int | str, ...] | None = None
    subject: str | tuple[str, ...] | None = None


class RunConfig(Section):
    """Everything one run is told. `docs` of each key stand in ``conf/config.yaml``."""

    preset: dict[str, Any]
    model: ModelConfig
    prm: PRMConfig
    weighting: dict[str, Any]
    method: dict[str, Any]
    benchmark: dict[str, Any]
    engine: dict[str, Any]
    logger: dict[str, Any]
    delta: float
    seed: Annotated[int, Ge(0), Lt(2**63)]
    samples: Annotated[int, Ge(1)]
    sampling: SamplingConfig
    limits: Limits
    step: StepRule
    limit: Annotated[int, Ge(1)] | None
    offset: Annotated[int, Ge(0)]
    ids: Annotated[tuple[str, ...], MinLen(1)] | None
    shards: Annotated[int, Ge(1)]
    shard: Annotated[int, Ge(0)] | None
    subset: SubsetConfig
    shuffle_seed: Annotated[int, Ge(0)] | None
    grader: Literal["default", "math_verify", "reference"]
    concurrency: Annotated[int, Ge(1)] | Literal["auto"]
    scheduling: Literal["auto", "free", "gated"]
    results_dir: str
    progress: Literal["auto", "on", "off"] | bool | Annotated[int, Ge(1)]
    memo: bool
    retry_failed: bool
    check: bool
    reward_transform: Literal["sigmoid"] | None
    merge_weight: Annotated[float, Ge(0), Le(1)]
    score_target: Literal["rejected", "all"] | Literal[False]
    tag: FolderName | None
    dry_run: bool
    detach: bool

    @model_validator(mode="after")
    def _shards_fit(self) -> Self:
        if self.shard is not None and not self.shard < self.shards:
            raise ConfigError(f"shard={self.shard}: the shards of shards={self.shards} are 0 to {self.shards - 1}.")
        if self.shards > 1 and self.grader != "default":
            raise ConfigError(
                f"shards={self.shards} grader={self.grader}: a shard is no whole run; leave grader out, and run "
                f"python -m rsd.grade --grader {self.grader} on the run's folder when all shards are done."
            )
        return self

    @property
    def progress_every(self) -> int | None:
        """Seconds between two lines about progress where no terminal shows a bar; None for neither."""
        if isinstance(self.progress, int) and not isinstance(self.progress, bool):
            return self.progress
        return None if self.progress in ("off", False) else PROGRESS_EVERY

    @property
    def decoding(self) -> Decoding:
        """The settings that every method decodes under."""
        return Decoding(
            temperature=self.sampling.temperature,
            top_p=self.sampling.top_p,
            limits=self.limits,
            step=self.step,
            seed=self.seed,
        )


class ServeConfig(RunConfig):
    """What the command that starts servers is told besides."""

    run: bool
    host: str
    port: Annotated[int, Ge(1), Le(65535)]


Kind = TypeVar("Kind", bound=Section)


def check(values: Any) -> RunConfig:
    """Validate the composed configuration. Raises ConfigError with one sentence."""
    return check_as(RunConfig, values)


def check_as(kind: type[Kind], values: Any) -> Kind:
    """Validate what a command was told, by the `kind` that it takes. Raises ConfigError."""
    try:
        checked = kind.model_validate(values)
    except ValidationError as error:
        raise ConfigError(first_fault(error, "", kind.model_fields)) from error
    no_flag_is_a_number(values, checked, "")
    return checked


def build(node: Mapping[str, Any], key: str, **extra: Any) -> Any:
    """Make the object that ``_target_`` names, from the other keys of `node` and those of `extra`
    that its signature asks for.

    Raises ConfigError when there is no such object, or a key is unknown, missing or wrong; `key` is
    the name of the group in that sentence.
    """
    target = locate(node.get("_target_"), f"{key}._target_")
    parameters = inspect.signature(target).parameters
    hints = get_type_hints(target.__init__ if inspect.isclass(target) else target, include_extras=True)
    own = {name: parameter for name, parameter in parameters.items() if name not in extra}
    fields: dict[str, Any] = {
        name: (hints[name], ... if parameter.default is parameter.empty else parameter.default)
        for name, parameter in own.items()
    }
    values = {name: value for name, value in node.items() if name != "_target_"}
    try:
        checked = create_model(key, __config__=ConfigDict(extra="forbid"), **fields).model_validate(values)
    except ValidationError as error:
        raise ConfigError(first_fault(error, f"{key}.", fields)) from error
    no_flag_is_a_number(values, checked, f"{key}.")
    given = {name: value for name, value in extra.items() if name in parameters}
    return target(**{name: getattr(checked, name) for name in own}, **given)


def locate(path: Any, key: str) -> Any:
    """Import the object with the dotted name `path`. Raises ConfigError that names `key`."""
    try:
        return pkgutil.resolve_name(path)
    except Exception as error:  # ImportError, AttributeError, or whatever the import itself raised
        raise ConfigError(f"{key}: there is no class '{path}' ({' '.join(str(error).split())[:200]}).") from error


def lowered(limits: Limits, contexts: Mapping[str, int]) -> tuple[Limits, list[str]]:
    """`limits.total_tokens` and `limits.step_tokens` lowered to the least of `contexts`
    {key of the setting: tokens}, and a line for each limit that was.

    Raises ConfigError when a model can hold fewer than 256 tokens.
    """
    key, context = min(contexts.items(), key=lambda item: item[1])
    if context < SMALLEST_CONTEXT:
        raise ConfigError(f"{key}={context} leaves less than {SMALLEST_CONTEXT} tokens for prompt and response.")
    lines = []
    values = {name: getattr(limits, name) for name in limits.__dataclass_fields__}
    for name in ("total_tokens", "step_tokens"):
        if values[name] > context:
            lines.append(f"limits.{name} lowered from {values[name]} to {context}, the model's {key}.")
            values[name] = context
    return Limits(**values), lines
