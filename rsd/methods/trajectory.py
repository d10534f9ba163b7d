"""One question's decoding in progress: context, kept steps, proposals, limits.

Methods are written over it::

    while not trajectory.ended:
        proposal = await trajectory.propose_step("draft")
        trajectory.keep(proposal)
    solution = trajectory.solution()

A search extends many of them at a time: ``branch`` gives the trajectory that goes on with a proposal,
and ``adopt`` takes one of the branches for the answer.
"""

import re
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any

from rsd.engines.base import Completion, Context, Models, Reward, Sampling
from rsd.errors import ModelError, PRMContextError
from rsd.keys import keyed_seed, uniform
from rsd.methods.decoding import LACKING, TORN, Decoding
from rsd.records import EndReason, PolicyRole, Problem, Proposal, Role, Solution, Usage
from rsd.weighting import Verdict

Stop = str | re.Pattern[str] | None


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
        self._log: dict[tuple[int, PolicyRole, int], Proposal] = {}  # every proposal, shared by all branches
        self._kept: list[tuple[int, PolicyRole, int]] = []  # those of this trajectory, one a step
        self._aside: set[Role] = set()  # who has read something outside the record
        self._parent: int | None = None  # candidate that a branch goes on from
        self._responses: dict[PolicyRole, tuple[int, ...]] = dict.fromkeys(models.policies, ())
        self._prompts: dict[PolicyRole, tuple[int, ...]] = {
            role: models.policy(role).prompt(problem.question) for role in models.policies
        }
        self._prompt_tokens = max(map(len, self._prompts.values()))
        if self._room() < 1:
            self.ended = "context_limit"

    def uniform(self, candidate: int = 0) -> float:
        """A number in [0, 1) that decides on acceptance at this step; `candidate` numbers them."""
        return uniform(self._seed("accept", candidate))

    async def propose_step(self, role: PolicyRole, candidate: int = 0) -> Proposal:
        """Let `role` write one step: text up to the delimiter, EOS or a limit.

        Whitespace alone is no step, so the model goes on within the same proposal; a proposal that
        is still blank after `step.blank_pieces` ends the question with ``repetition`` once kept.
        `candidate` numbers the proposals of one role at one step, each drawn with a seed of its own.
        """
        return self._note(await self._written_step(role, candidate))

    async def propose_rest(self, role: PolicyRole) -> Proposal:
        """Let `role` write the rest of the response in one go."""
        began = self._clock()
        piece = await self._generate(role, self._room(), None, [], 0)
        return self._note(self._proposal(role, [piece], 0, began))

    async def score(self, proposal: Proposal) -> Proposal:
        """The proposal with its reward; EOS alone is not scored (``reward: null``).

        Raises PRMContextError when the PRM cannot read that far.
        """
        reward = await self._reward(proposal)
        if reward is None:
            return proposal
        usage: dict[Role, Usage] = {**proposal.usage, "prm": reward.usage}
        return self._note(replace(proposal, reward=reward.value, usage=usage, t1=self._clock()))

    async def judge(self, proposal: Proposal) -> Proposal:
        """The proposal with its log-probability under the other policy too, which reads it in one prefill.

        ``diagnostic.exact`` says whether steps are drawn from the very distributions that these
        likelihoods are of: temperature 1 and top-p 1.
        """
        reader: PolicyRole = "draft" if proposal.origin == "target" else "target"
        context = Context(prompt=self._prompts[reader], response=self._responses[reader])
        told = await self._models.policy(reader).logprobs(context, proposal.token_ids)
        logprob = sum(told.values)
        return self._note(
            replace(
                proposal,
                logprob_draft=logprob if reader == "draft" else proposal.logprob_draft,
                logprob_target=logprob if reader == "target" else proposal.logprob_target,
                usage={**proposal.usage, reader: told.usage},
                diagnostic={"exact": self._decoding.temperature == 1 and self._decoding.top_p == 1},
                t1=self._clock(),
            )
        )

    async def contrast(self, proposal: Proposal, step: Proposal | None = None) -> Proposal:
        """The draft's proposal with the reward of the target's step from the same context (Figure 3) in its
        `diagnostic`, outside every cost. `step`: the target's, where it has written one already.

        What the models read here would be missing from what later calls have to read: from now on, how much of their
        input came from the cache is not told.
        """
        aside: set[Role] = {"prm"} if step else {"prm", "target"}
        step = step or await self._written_step("target", 0)
        try:
            reward = await self._reward(step)
        except PRMContextError:
            reward = None
        told: dict[str, Any] = {"target_text": step.text, "target_reward": reward.value if reward else None}
        noted = self._note(replace(proposal, diagnostic={**(proposal.diagnostic or {}), **told}))
        self._aside |= aside
        return noted

    def decide(self, proposal: Proposal, verdict: Verdict) -> Proposal:
        """The proposal with the criterion's verdict; only `keep` makes it a part of the response."""
        return self._note(replace(proposal, accepted=verdict.accepted, omega=verdict.omega, u=verdict.u))

    def keep(self, proposal: Proposal) -> None:
        """Append the proposal to the response, and end the question where it or a limit says so."""
        self._kept = [*self._kept, _key(proposal)]
        self.steps = [*self.steps, proposal.text]
        self._responses = {role: self._continued(role, proposal) for role in self._responses}
        self.ended = self._end_after(proposal)

    def branch(self, proposal: Proposal) -> "Trajectory":
        """The trajectory that goes on with `proposal`, beside this one and any others."""
        other = copy(self)
        other.keep(proposal)
        other._parent = proposal.candidate
        return other

    def adopt(self, branch: "Trajectory") -> None:
        """Take the response of `branch`, and its end, for this question's."""
        self.steps, self._responses, self._kept = branch.steps, branch._responses, branch._kept
        self.ended = branch.ended

    def solution(self, *, failed: bool = False) -> Solution:
        """What was decoded; the response is its kept steps joined. `failed`: an error broke it off."""
        if failed:
            self.ended = "error"
        assert self.ended is not None, "the trajectory goes on"
        kept = set(self._kept)
        return Solution(
            prompt_tokens=self._prompt_tokens,
            end_reason=self.ended,
            response="".join(self.steps),
            proposals=tuple(replace(self._log[key], kept=key in kept) for key in sorted(self._log)),
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
        if not proposal.text.strip() and proposal.finish == "step":
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

    def _seed(self, role: str, candidate: int, piece: int = 0) -> int:
        return keyed_seed(
            run_seed=self._decoding.seed,
            question_id=self.problem.question_id,
            sample=self.sample,
            step=len(self.steps),
            role=role,
            candidate=candidate,
            piece=piece,
        )

    async def _written_step(self, role: PolicyRole, candidate: int) -> Proposal:
        began, rule = self._clock(), self._decoding.step
        room = min(self._room(), self._decoding.limits.step_tokens)
        most = rule.tokens or room
        pieces: list[Completion] = []
        written = blanks = torn = 0
        while True:
            asked = min(room - written, 1 if torn else most)
            piece = await self._generate(role, asked, rule.stop, pieces, candidate)
            written += len(piece.token_ids)
            if rule.tokens and piece.finish == "length" and (torn or asked == most):
                piece = replace(piece, finish="step")
            blank = not piece.text.strip() and piece.finish == "step"
            if blank and written >= room:  # the limit leaves it no room to become a step
                piece = replace(piece, finish="length")
            pieces.append(piece)
            blanks += blank
            lacking = rule.tokens is not None and piece.finish == "step" and self._text(role, pieces).endswith(TORN)
            torn = torn + 1 if lacking else 0
            if not (blank or torn) or written >= room or blanks > rule.blank_pieces or torn > LACKING:
                return self._proposal(role, pieces, candidate, began)

    async def _generate(
        self, role: PolicyRole, max_tokens: int, stop: Stop, before: list[Completion], candidate: int
    ) -> Completion:
        written = tuple(token for piece in before for token in piece.token_ids)
        return await self._models.policy(role).generate(
            Context(prompt=self._prompts[role], response=self._responses[role] + written),
            Sampling(
                temperature=self._decoding.temperature,
                top_p=self._decoding.top_p,
                max_tokens=max_tokens,
                seed=self._seed(role, candidate, piece=len(before)),
                stop=stop,
            ),
        )

    async def _reward(self, proposal: Proposal) -> Reward | None:
        """The PRM's reward of the proposal as the next step; None for EOS alone."""
        if not proposal.text.strip():
            return None
        assert self._models.prm is not None, "the method did not declare the role prm"
        return await self._models.prm.score(self.problem.question, [*self.steps, proposal.text])

    def _proposal(self, role: PolicyRole, pieces: list[Completion], candidate: int, began: float) -> Proposal:
        logprob = sum(piece.logprob for piece in pieces)
        return Proposal(
            step=len(self.steps),
            origin=role,
            candidate=candidate,
            parent=self._parent,
            kept=False,
            token_ids=tuple(token for piece in pieces for token in piece.token_ids),
            text=self._text(role, pieces),
            finish=pieces[-1].finish,
            logprob_draft=logprob if role == "draft" else None,
            logprob_target=logprob if role == "target" else None,
            usage=_usage(role, pieces),
            t0=began,
            t1=self._clock(),
        )

    def _text(self, role: PolicyRole, pieces: list[Completion]) -> str:
        """The text of the pieces; a character that ends in the next piece only all tokens together give."""
        if not any(piece.text.endswith(TORN) for piece in pieces[:-1]):
            return "".join(piece.text for piece in pieces)
        ids = [token for piece in pieces for token in piece.token_ids]
        text = self._models.policy(role).tokenizer.decode(
            ids[:-1] if pieces[-1].finish == "eos" else ids, clean_up_tokenization_spaces=False
        )
        return str(text)

    def _note(self, proposal: Proposal) -> Proposal:
        """Enter the proposal in the log, in place of what was known of it before."""
        told = {role: replace(use, cached=None) if role in self._aside else use for role, use in proposal.usage.items()}
        proposal = replace(proposal, usage=told)
        self._log[_key(proposal)] = proposal
        return proposal


def _key(proposal: Proposal) -> tuple[int, PolicyRole, int]:
    """What makes a proposal one of its kind within a question; sorts the draft's before the target's."""
    return proposal.step, proposal.origin, proposal.candidate


def _usage(role: PolicyRole, pieces: list[Completion]) -> dict[Role, Usage]:
    """What each model did for a proposal of `role`, its drafter included."""
    usage: dict[Role, Usage] = {role: _as_one_call([piece.usage for piece in pieces])}
    drafting = [piece.drafter for piece in pieces if piece.drafter is not None]
    if drafting:
        usage["draft"] = _as_one_call(drafting)
    return usage


def _as_one_call(pieces: list[Usage]) -> Usage:
    """Usage of a proposal's pieces, each of which found everything before it in the cache."""
    total = sum(pieces, Usage())
    return replace(total, prompt=pieces[0].prompt, cached=pieces[0].cached)
