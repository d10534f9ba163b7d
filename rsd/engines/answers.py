"""What vLLM's answers mean in this project's terms, whether they come from this process or over HTTP.

written = Written(token_ids=ids, finish_reason="stop", stop_reason="\\n\\n", logprob=-1.5, cached=96)
completion = completion_of(written, tokenizer, context, sampling)
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rsd.engines.base import Completion, Context, Sampling
from rsd.records import Finish, Usage

if TYPE_CHECKING:  # heavy, and only named here
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafted:
    """What a drafter did for one text: tokens that it wrote, and how many rounds accepted 0, 1, … of them."""

    tokens: int
    rounds: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One text as vLLM tells of it. `cached`: tokens of the prompt that its cache held, None where it does not say."""

    token_ids: Sequence[int]
    finish_reason: str
    stop_reason: str | int | None
    logprob: float
    cached: int | None
    drafted: Drafted | None = None


def completion_of(
    written: Written, tokenizer: "PreTrainedTokenizerBase", context: Context, sampling: Sampling
) -> Completion:
    """The answer to the request for a piece of text after `context`."""
    ids = tuple(written.token_ids)
    finish: Finish = "length"
    if written.finish_reason == "stop":
        finish = "step" if sampling.stop is not None and written.stop_reason == sampling.stop else "eos"
    length = len(context.prompt) + len(context.response)
    usage = Usage(generated=len(ids), prompt=length, cached=written.cached, passes=len(ids))
    drafter = None
    if written.drafted is not None:
        usage = _speculative(usage, written.drafted)
        drafter = Usage(generated=usage.drafted, prompt=length, cached=None, passes=usage.drafted)
    kept = list(ids[:-1] if finish == "eos" else ids)
    return Completion(
        # vLLM's own text ends with the stop string; ids are canonical, and may hold further newlines
        text=str(tokenizer.decode(kept, skip_special_tokens=False, clean_up_tokenization_spaces=False)),
        token_ids=ids,
        logprob=written.logprob,
        finish=finish,
        usage=usage,
        drafter=drafter,
    )


def _speculative(usage: Usage, drafted: Drafted) -> Usage:
    """`usage` of a target with a drafter. A round judges the drafted tokens and the one before them, and writes one
    more than it accepts; the prompt's own pass, and any without drafted tokens, write one each."""
    rounds = sum(drafted.rounds)
    accepted = sum(count * times for count, times in enumerate(drafted.rounds))
    passes = rounds + max(1, usage.generated - accepted - rounds)
    verified = max(0, drafted.tokens + passes - usage.generated)
    return replace(usage, drafted=drafted.tokens, accepted=accepted, verified=verified, passes=passes)
