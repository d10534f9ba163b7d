"""One question's decoding in progress: context, kept steps, proposals, limits.

Methods are written over it::

    while not trajectory.ended:
        proposal = await trajectory.propose_step("draft")
        trajectory.keep(proposal)
    solution = trajectory.solution()
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated

from annotated_types import Ge, Gt, Le, MinLen

from rsd.engines.base import Completion, Context, Models, Sampling
from rsd.errors import ModelError
from rsd.keys import keyed_seed, uniform
from rsd.records import EndReason, PolicyRole, Problem, Proposal, Role, Solution, Usage
from rsd.weighting import Verdict

Positive = Annotated[int, Ge(1)]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Where decoding stops, the same for every method.

    `total_tokens` bounds prompt and response together, `response_tokens` (null: no bound) the
    response, `step_tokens` one step, `steps` their number. `repeats` = k > 0 ends a question after
    k + 1 equal consecutive steps; 0 never does.
    """

    total_tokens: Positive = 4096
    step_tokens: Positive = 2048
    steps: Positive = 100
    response_tokens: Positive | None = None
    repeats: Annotated[int, Ge(0)] = 0


@dataclass(frozen=True, kw_only=True)
class StepRule:
    """What a step is: text up to and with `delimiter`. Whitespace alone is no step: the
    model goes on within the proposal, `blank_pieces` times at most, before the question ends."""

    delimiter: Annotated[str, MinLen(1)] = "\n\n"
    blank_pieces: Positive = 3


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """All settings of decoding that every method shares."""

    temperature: Annotated[float, Ge(0)]
    top_p: Annotated[float, Gt(0), Le(1)]
    limits: Limits
    step: StepRule
    seed: int


class Trajectory:
    """The state of one sample of one question. `clock` gives seconds since the invocation began."""

    def __init__(
        self, problem: Problem, sample: int, *, models: Models, decoding: Decoding, clock: Callable[[], float]
    ) -> None:
        self.problem = problem
        self.sample = sample
        self.ended: EndReason | None = None
        self.steps: list[str] = []
        self._models = models
        self._decoding = decoding
        self._clock = clock
        self._proposals: list[Proposal] = []
        self._open: Proposal | None = None  # proposed, and neither kept nor left out yet
        self._responses: dict[PolicyRole, tuple[int, ...]] = dict.fromkeys(models.policies, ())
        self._prompts: dict[PolicyRole, tuple[int, ...]] = {
            role: models.policy(role).prompt(problem.question) for role in models.policies
        }
        self._prompt_tokens = max(map(len, self._prompts.values()))
        if self._room() < 1:
            self.ended = "context_limit"

    def uniform(self) -> float:
        """The number in [0, 1) that decides this step's acceptance."""
        return uniform(self._seed("accept"))

    async def propose_step(self, role: PolicyRole) -> Proposal:
        """Let `role` write one step: text up to the delimiter, EOS or a limit.

        Whitespace alone is no step, so the model goes on within the same proposal; a proposal that
        is still blank after `step.blank_pieces` ends the question with ``repetition`` once kept.
        """
        began = self._clock()
        room = min(self._room(), self._decoding.limits.step_tokens)
        pieces: list[Completion] = []
        written = 0
        while True:
            piece = await self._generate(role, room - written, self._decoding.step.delimiter, pieces)
            pieces.append(piece)
            written += len(piece.token_ids)
            blank = not piece.text.strip() and piece.finish == "step"
            if not blank or written >= room or len(pieces) > self._decoding.step.blank_pieces:
                return self._proposal(role, pieces, began)

    async def propose_rest(self, role: PolicyRole) -> Proposal:
        """Let `role` write the rest of the response in one go."""
        began = self._clock()
        return self._proposal(role, [await self._generate(role, self._room(), None, [])], began)

    async def score(self, proposal: Proposal) -> Proposal:
        """The proposal with its reward; EOS alone is not scored (``reward: null``).

        Raises PRMContextError when the PRM cannot read that far.
        """
        if not proposal.text.strip():
            return proposal
        assert self._models.prm is not None, "the method did not declare the role prm"
        reward = await self._models.prm.score(self.problem.question, [*self.steps, proposal.text])
        usage: dict[Role, Usage] = {**proposal.usage, "prm": reward.usage}
        self._open = replace(proposal, reward=reward.value, usage=usage)
        return self._open

    def keep(self, proposal: Proposal, verdict: Verdict | None = None) -> None:
        """Append the proposal to the response, and end the question where it or a limit says so."""
        self._settle(proposal, verdict, kept=True)
        self.steps.append(proposal.text)
        for role in self._responses:
            self._responses[role] = self._continued(role, proposal)
        self.ended = self._end_after(proposal)

    def reject(self, proposal: Proposal, verdict: Verdict) -> None:
        """Note the proposal as one that the criterion did not accept."""
        self._settle(proposal, verdict, kept=False)

    def end(self, reason: EndReason, unused: Proposal) -> None:
        """End the question with `unused` left out of the response."""
        self._settle(unused, None, kept=False)
        self.ended = reason

    def solution(self, *, failed: bool = False) -> Solution:
        """What was decoded; the response is its kept steps joined. `failed`: an error broke it off."""
        if failed:
            self.ended = "error"
            if self._open is not None:
                self._settle(self._open, None, kept=False)
        assert self.ended is not None, "the trajectory goes on"
        return Solution(
            prompt_tokens=self._prompt_tokens,
            end_reason=self.ended,
            response="".join(self.steps),
            proposals=tuple(self._proposals),
        )

    def _room(self) -> int:
        """Tokens that the response may still grow by."""
        limits = self._decoding.limits
        room = limits.total_tokens - self._prompt_tokens - self._written
        if limits.response_tokens is not None:
            room = min(room, limits.response_tokens - self._written)
        return room

    @property
    def _written(self) -> int:
        """Tokens of the response so far, by the tokenizer that needs the most."""
        return max(map(len, self._responses.values()))

    def _continued(self, role: PolicyRole, proposal: Proposal) -> tuple[int, ...]:
        """The response with `proposal`, in tokens that `role` reads: the proposal's own, or its text encoded
        by itself where a model with another tokenizer wrote it.

        Raises ModelError where the response does not survive the tokenizer (one that normalises, say).
        """
        response = self._responses[role]
        if role == proposal.origin or self._models.one_tokenizer or proposal.finish == "eos":
            return response + proposal.token_ids
        tokenizer = self._models.policy(role).tokenizer
        response += tuple(tokenizer(proposal.text, add_special_tokens=False).input_ids)
        if tokenizer.decode(list(response), clean_up_tokenization_spaces=False) != "".join(self.steps):
            raise ModelError(f"model.{role}.path: its tokenizer does not give back the step {proposal.text[:80]!r}.")
        return response

    def _end_after(self, proposal: Proposal) -> EndReason | None:
        limits = self._decoding.limits
        if proposal.finish == "eos":
            return "eos"
        if not proposal.text.strip() and self._room() > 0:
            return "repetition"
        if len(self.steps) >= limits.steps:
            return "max_steps"
        if limits.response_tokens is not None and self._written >= limits.response_tokens:
            return "response_limit"
        if self._room() < 1:
            return "context_limit"
        repeated = self.steps[-limits.repeats - 1 :]
        if limits.repeats and len(repeated) > limits.repeats and len(set(repeated)) == 1:
            return "repetition"
        return None

    def _seed(self, role: str, piece: int = 0) -> int:
        return keyed_seed(
            run_seed=self._decoding.seed,
            question_id=self.problem.question_id,
            sample=self.sample,
            step=len(self.steps),
            role=role,
            piece=piece,
        )

    async def _generate(
        self, role: PolicyRole, max_tokens: int, stop: str | None, before: list[Completion]
    ) -> Completion:
        written = tuple(token for piece in before for token in piece.token_ids)
        return await self._models.policy(role).generate(
            Context(prompt=self._prompts[role], response=self._responses[role] + written),
            Sampling(
                temperature=self._decoding.temperature,
                top_p=self._decoding.top_p,
                max_tokens=max_tokens,
                seed=self._seed(role, piece=len(before)),
                stop=stop,
            ),
        )

    def _proposal(self, role: PolicyRole, pieces: list[Completion], began: float) -> Proposal:
        logprob = sum(piece.logprob for piece in pieces)
        self._open = Proposal(
            step=len(self.steps),
            origin=role,
            kept=False,
            token_ids=tuple(token for piece in pieces for token in piece.token_ids),
            text="".join(piece.text for piece in pieces),
            finish=pieces[-1].finish,
            logprob_draft=logprob if role == "draft" else None,
            logprob_target=logprob if role == "target" else None,
            usage={role: _as_one_call([piece.usage for piece in pieces])},
            t0=began,
            t1=self._clock(),
        )
        return self._open

    def _settle(self, proposal: Proposal, verdict: Verdict | None, *, kept: bool) -> None:
        self._open = None
        decided = replace(proposal, kept=kept, t1=self._clock())
        if verdict is not None:
            decided = replace(decided, accepted=verdict.accepted, omega=verdict.omega, u=verdict.u)
        self._proposals.append(decided)


def _as_one_call(pieces: list[Usage]) -> Usage:
    """Usage of a proposal's pieces, each of which found everything before it in the cache."""
    generated = sum(piece.generated for piece in pieces)
    return replace(pieces[0], generated=generated, passes=sum(piece.passes for piece in pieces))
