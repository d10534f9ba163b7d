"""What a method did: problems, proposals, usage and records, as they stand in ``records.jsonl``.

Everything reported later is a pure function of these. A record survives JSON unchanged::

    line = dump(record)
    assert load(line) == record
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import orjson
from pydantic import Field

SCHEMA = 1  # shape of a record line
RECORD_VERSION = 1  # behaviour of the decoder; part of a run's identity

FolderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]*$")]  # safe as a part of a path

Role = Literal["draft", "target", "prm"]
PolicyRole = Literal["draft", "target"]
Kind = Literal["math", "choice", "text"]  # how an answer is graded; text is not
Finish = Literal["step", "eos", "length"]
EndReason = Literal["eos", "max_steps", "response_limit", "context_limit", "prm_context", "repetition", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A question as asked, its gold answer, and the rest of its source row.

    `choices`: the options of a `choice`, in the order of their letters, where they are known.
    """

    question_id: str
    question: str
    answer: str
    kind: Kind = "math"
    choices: tuple[str, ...] | None = None
    row: Mapping[str, Any] = field(default_factory=dict)


def question_ids(questions: Iterable[str]) -> list[str]:
    """Name each question: 12 hex digits of its SHA-256, with ``-k`` for its k-th repetition (k >= 2)."""
    seen: Counter[str] = Counter()
    names = []
    for question in questions:
        name = hashlib.sha256(question.encode()).hexdigest()[:12]
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return names


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Logical work of one model for one proposal, in tokens of that model.

    `generated`: tokens written, delimiter and EOS included. `prompt`: tokens of input given to its
    calls; `cached`: those of them served from a cache, None where the engine does not tell.
    `verified`: positions judged rather than written (for a PRM, the tokens of the scored step).
    `drafted`, `accepted`: of speculative decoding. `passes`: sequential forward passes (one per
    generated token, one per PRM call, one per verification round).
    """

    generated: int = 0
    prompt: int = 0
    cached: int | None = 0
    drafted: int = 0
    verified: int = 0
    accepted: int = 0
    passes: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        cached = None if self.cached is None or other.cached is None else self.cached + other.cached
        return Usage(
            generated=self.generated + other.generated,
            prompt=self.prompt + other.prompt,
            cached=cached,
            drafted=self.drafted + other.drafted,
            verified=self.verified + other.verified,
            accepted=self.accepted + other.accepted,
            passes=self.passes + other.passes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One piece of text that a policy proposed, and what became of it.

    `accepted` is the acceptance criterion's verdict on a draft proposal and None where none was
    asked (target, single model). `kept` says whether the piece stands in the response. `reward` is
    the PRM's value, `omega` the weight, `u` the uniform number drawn where 0 < omega < 1.
    `t0`, `t1`: seconds since the start of the invocation.
    """

    step: int
    origin: PolicyRole
    candidate: int = 0
    parent: int | None = None
    accepted: bool | None = None
    kept: bool
    token_ids: tuple[int, ...]
    text: str
    reward: float | None = None
    omega: float | None = None
    u: float | None = None
    finish: Finish
    logprob_draft: float | None = None
    logprob_target: float | None = None
    usage: Mapping[Role, Usage]
    t0: float
    t1: float
    diagnostic: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """What a method returns for one question."""

    prompt_tokens: int
    end_reason: EndReason
    response: str
    proposals: tuple[Proposal, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One sample of one question: a line of ``records.jsonl``."""

    schema: int = SCHEMA
    question_id: str
    sample: int
    seed: int
    invocation: int
    prompt_tokens: int
    end_reason: EndReason
    response: str
    proposals: tuple[Proposal, ...]
    error: str | None = None

    @property
    def key(self) -> tuple[str, int]:
        """What makes the record one of its kind within a run."""
        return self.question_id, self.sample


def dump(record: Record) -> bytes:
    """Write a record as one line of JSON, without the newline."""
    return orjson.dumps(record)


def load(line: bytes | str) -> Record:
    """Read a record from one line of JSON.

    Raises ValueError when the line is not JSON, not a record, or of another schema.
    """
    data = orjson.loads(line)
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise ValueError(f"not a record of schema {SCHEMA}")
    try:
        proposals = tuple(
            Proposal(
                **{
                    **proposal,
                    "token_ids": tuple(proposal["token_ids"]),
                    "usage": {role: Usage(**usage) for role, usage in proposal["usage"].items()},
                }
            )
            for proposal in data["proposals"]
        )
        return Record(**{**data, "proposals": proposals})
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"not a record of schema {SCHEMA}: {error}") from error


def same_outcome(a: Record, b: Record) -> bool:
    """Whether two records are equal but for `invocation`, `t0`, `t1` and what caches served."""

    def timeless(record: Record) -> tuple[Any, ...]:
        proposals = tuple(
            (
                (p.step, p.origin, p.candidate, p.parent, p.accepted, p.kept, p.token_ids, p.text, p.finish),
                (p.reward, p.omega, p.u, p.logprob_draft, p.logprob_target, p.diagnostic),
                {
                    role: (u.generated, u.prompt, u.drafted, u.verified, u.accepted, u.passes)
                    for role, u in p.usage.items()
                },
            )
            for p in record.proposals
        )
        return (
            *record.key,
            record.seed,
            record.prompt_tokens,
            record.end_reason,
            record.response,
            record.error,
            proposals,
        )

    return timeless(a) == timeless(b)
