"""A whole RSD run against the plain way to write it: all questions in lock-step, `generate` of transformers.

In each round the draft writes a step of every live question, the PRM reads every live question anew, and the target
writes the steps that were rejected; each of the three in padded batches of the questions that need it.
"""

import time
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

from rsd.models import load_models
from rsd.plan import Plan, make_plan
from tests.benchmarks import plain
from tests.benchmarks.figures import Figure, alternate, ratio
from tests.benchmarks.harness import whole_run
from tests.benchmarks.plain import Tokens
from tests.conftest import compose_config

QUESTIONS = 200
BATCH = 64  # solutions that the PRM reads at a time; policies write for all live questions at once


def measure(benchmark: str, *, claimed: bool) -> Iterator[Figure]:
    """Seconds of both on `benchmark`, and their ratio, which carries a claim where `claimed`."""
    words = (f"benchmark={benchmark}", f"limit={QUESTIONS}")
    plain_run = LockStep(make_plan(compose_config(*words)))
    found: dict[str, list[Tokens]] = {}
    forwards: list[float] = []

    def lockstep() -> float:
        began = time.perf_counter()
        found["lockstep"] = plain_run.responses()
        return time.perf_counter() - began

    def engine() -> float:
        plan = make_plan(compose_config(*words))  # anew each time: no prompt is in the cache yet
        seconds, records = whole_run(plan.method, load_models(plan), plan.decoding, plan.problems)
        forwards.append(sum(totals.seconds for totals in plan.engine.totals().values()))
        found["engine"] = [tuple(t for p in record.proposals if p.kept for t in p.token_ids) for record in records]
        return seconds

    slow, fast = alternate(lockstep, engine)
    name = f"RSD on {QUESTIONS} questions of {benchmark}: "
    yield Figure(f"{name}lock-step", median(slow), "s")
    yield Figure(f"{name}engine", median(fast), "s")
    yield Figure(f"{name}lock-step / engine", ratio(slow, fast), "x", at_least=2.8 if claimed else None)
    yield Figure(f"{name}lock-step / engine, were all but its forward passes free", ratio(slow, forwards), "x")
    different = sum(a != b for a, b in zip(found["lockstep"], found["engine"], strict=True))
    yield Figure(f"{name}responses that differ between lock-step and engine", different, "(near-ties can)")


class LockStep:
    """RSD with δ of `plan`, greedy, on its questions; the models and what ends a step are prepared once."""

    def __init__(self, plan: Plan) -> None:
        config = plan.config
        paths = config.model.policies
        self.plan = plan
        self.draft = AutoModelForCausalLM.from_pretrained(paths["draft"].path)
        self.target = AutoModelForCausalLM.from_pretrained(paths["target"].path)
        self.prm = AutoModelForSequenceClassification.from_pretrained(config.prm.path)
        self.tokenizer = load_models(plan).policy("draft").tokenizer
        self.eos = self.draft.generation_config.eos_token_id
        texts = self.tokenizer.batch_decode([[i] for i in range(len(self.tokenizer))])
        delimiter = plan.decoding.step.delimiter
        self.ends = [self.eos] + [i for i, text in enumerate(texts) if delimiter in text]

    def responses(self) -> list[Tokens]:
        """The response to each question, EOS included."""
        limits = self.plan.decoding.limits
        prompts = [self._prompt(problem.question) for problem in self.plan.problems]
        responses: list[Tokens] = [()] * len(prompts)
        live = list(range(len(prompts)))
        for _ in range(limits.steps):
            if not live:
                break
            steps = self._write(self.draft, [prompts[i] + responses[i] for i in live])
            rewards = self._rewards([prompts[i] + responses[i] + step for i, step in zip(live, steps, strict=True)])
            rejected = [place for place, reward in enumerate(rewards) if reward < self.plan.delta]
            again = self._write(self.target, [prompts[live[k]] + responses[live[k]] for k in rejected])
            for place, step in zip(rejected, again, strict=True):
                steps[place] = step
            for i, step in zip(live, steps, strict=True):
                responses[i] += step
            room = limits.total_tokens
            live = [i for i in live if responses[i][-1] != self.eos and len(prompts[i] + responses[i]) < room]
        return responses

    def _prompt(self, question: str) -> Tokens:
        text = self.plan.config.model.reference_prompt.replace("{question}", question)
        return tuple(self.tokenizer(text, add_special_tokens=False).input_ids)

    def _write(self, model: Any, contexts: Sequence[Tokens]) -> list[Tokens]:
        limit = self.plan.decoding.limits.step_tokens
        return plain.generate(model, contexts, batch=len(contexts) or 1, limit=limit, ends=self.ends)

    def _rewards(self, solutions: Sequence[Tokens]) -> list[float]:
        """The PRM's score at the last token of each, EOS apart."""
        rewards: list[float] = []
        for first in range(0, len(solutions), BATCH):
            read = [s[:-1] if s[-1] == self.eos else s for s in solutions[first : first + BATCH]]
            width = max(map(len, read))
            ids = torch.tensor([list(tokens) + [0] * (width - len(tokens)) for tokens in read])
            mask = torch.arange(width) < torch.tensor([[len(tokens)] for tokens in read])
            with torch.inference_mode():
                hidden = self.prm.model(ids, attention_mask=mask.long(), use_cache=False).last_hidden_state
                last = hidden[torch.arange(len(read)), [len(tokens) - 1 for tokens in read]]
                rewards += self.prm.score(last).squeeze(1).sigmoid().tolist()
        return rewards
