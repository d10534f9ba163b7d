"""The embedded engine: the tokens of plain `generate`, whatever else is in flight, each token run once."""

import asyncio
import json
import shutil
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

from rsd.engines.base import Completion, Context, Logprobs, ModelSource, PolicyModel, Sampling
from rsd.engines.transformers import TransformersEngine
from rsd.errors import ModelError
from rsd.plan import make_plan
from tests.conftest import compose_config

NEAR_TIE = 1e-4  # a smaller gap between the two likeliest tokens may fall either way in float32
T = TypeVar("T")


def source(model: str, **changes: Any) -> ModelSource:
    config = compose_config().model
    policy = config.policies["draft" if model == "s" else "target"]
    path = policy.path if model != "prm" else compose_config().prm.path
    values = {"key": "model.draft.path", "path": path, "revision": None, "dtype": "float32", "context": 512}
    return ModelSource(**{**values, "prompt": config.reference_prompt, **changes})


def questions(count: int) -> list[str]:
    return [problem.question for problem in make_plan(compose_config(f"limit={count}")).problems]


def sampling(**changes: Any) -> Sampling:
    return Sampling(**{"temperature": 0.0, "top_p": 1.0, "max_tokens": 200, "seed": 0, "stop": None, **changes})


def serve(use: Callable[[TransformersEngine], Awaitable[T]], **options: Any) -> T:
    """Run `use` on a fresh engine and close it."""

    async def main() -> T:
        engine = TransformersEngine(**options)
        try:
            return await use(engine)
        finally:
            await engine.close()

    return asyncio.run(main())


async def write(policy: PolicyModel, asked: list[str], *settings: Sampling) -> list[Completion]:
    chosen = settings if len(settings) > 1 else settings * len(asked)
    contexts = [Context(prompt=policy.prompt(question)) for question in asked]
    return list(await asyncio.gather(*map(policy.generate, contexts, chosen)))


def plain_greedy(path: str, prompts: list[tuple[int, ...]], width: int) -> list[tuple[list[int], list[float]]]:
    """Tokens of `generate` on one sequence at a time, and at each the gap between the two likeliest."""
    model = AutoModelForCausalLM.from_pretrained(path)
    found = []
    for prompt in prompts:
        output = model.generate(
            torch.tensor([prompt]),
            max_new_tokens=width,
            do_sample=False,
            output_logits=True,
            return_dict_in_generate=True,
        )
        top = [logits[0].topk(2).values for logits in output.logits]
        found.append((output.sequences[0, len(prompt) :].tolist(), [float(t[0] - t[1]) for t in top]))
    return found


@pytest.mark.parametrize("model", ["s", "m"])
def test_greedy_tokens_are_those_of_generate_whatever_else_is_in_flight(model: str) -> None:
    asked = questions(60)

    async def use(engine: TransformersEngine) -> tuple[list[Completion], list[tuple[int, ...]]]:
        policy = engine.load_policy("draft", source(model))
        noise = write(policy, asked, *(sampling(temperature=1.0, seed=i, max_tokens=5 + i) for i in range(60)))
        greedy, _ = await asyncio.gather(write(policy, asked[:40], sampling()), noise)
        return greedy, [policy.prompt(question) for question in asked[:40]]

    greedy, prompts = serve(use)
    for completion, (tokens, gaps) in zip(greedy, plain_greedy(source(model).path, prompts, 200), strict=True):
        differing = [i for i, (a, b) in enumerate(zip(completion.token_ids, tokens, strict=False)) if a != b]
        certain = differing[0] if differing else max(len(tokens), len(completion.token_ids))
        assert (not differing and len(tokens) == len(completion.token_ids)) or gaps[certain] < NEAR_TIE


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_completion_is_the_same_alone_and_in_a_crowd_and_with_few_rows(temperature: float) -> None:
    asked = questions(30)
    settings = [sampling(temperature=temperature, top_p=0.9, seed=i) for i in range(30)]

    async def together(engine: TransformersEngine) -> list[Completion]:
        return await write(engine.load_policy("draft", source("s")), asked, *settings)

    async def alone(engine: TransformersEngine) -> list[Completion]:
        policy = engine.load_policy("draft", source("s"))
        pairs = zip(asked, settings, strict=True)
        return [(await write(policy, [question], setting))[0] for question, setting in pairs]

    crowd = [c.token_ids for c in serve(together)]
    assert crowd == [c.token_ids for c in serve(alone)]
    assert crowd == [c.token_ids for c in serve(together, max_rows=3)]
    assert len(set(crowd)) > 25


def test_log_probabilities_are_the_models_own_at_temperature_1() -> None:
    asked = questions(8)

    async def use(engine: TransformersEngine) -> tuple[list[Completion], list[tuple[int, ...]]]:
        policy = engine.load_policy("draft", source("s"))
        completions = await write(policy, asked, sampling(temperature=0.7, top_p=0.8, seed=3))
        return completions, [policy.prompt(question) for question in asked]

    model = AutoModelForCausalLM.from_pretrained(source("s").path)
    for completion, prompt in zip(*serve(use), strict=True):
        ids = torch.tensor([[*prompt, *completion.token_ids]])
        with torch.inference_mode():
            logprobs = model(ids).logits[0].log_softmax(-1)
        own = sum(float(logprobs[len(prompt) - 1 + i, token]) for i, token in enumerate(completion.token_ids))
        assert completion.logprob == pytest.approx(own, abs=1e-3)


def test_the_logprobs_of_a_text_are_those_of_the_model_whatever_else_is_in_flight() -> None:
    asked = questions(12)

    async def use(engine: TransformersEngine) -> tuple[list[tuple[int, ...]], list[Completion], list[Logprobs]]:
        draft, target = engine.load_policy("draft", source("s")), engine.load_policy("target", source("m"))
        prompts = [target.prompt(question) for question in asked]
        steps = await write(draft, asked, sampling(temperature=1.0, max_tokens=30))
        contexts = [Context(prompt=prompt) for prompt in prompts]
        noise = write(target, asked[::-1], sampling(max_tokens=40))
        judged = asyncio.gather(*map(target.logprobs, contexts, [step.token_ids for step in steps]))
        again = asyncio.gather(*map(target.logprobs, contexts, [step.token_ids[:1] for step in steps]))
        (first, one, _) = await asyncio.gather(judged, again, noise)
        assert [logprobs.values for logprobs in one] == [logprobs.values[:1] for logprobs in first]
        return prompts, steps, first

    prompts, steps, judged = serve(use)
    model = AutoModelForCausalLM.from_pretrained(source("m").path)
    for prompt, step, logprobs in zip(prompts, steps, judged, strict=True):
        with torch.inference_mode():
            logits = model(torch.tensor([[*prompt, *step.token_ids]])).logits[0, len(prompt) - 1 : -1]
        expected = logits.log_softmax(-1).gather(1, torch.tensor(step.token_ids)[:, None]).squeeze(1)
        assert logprobs.values == pytest.approx(expected.tolist(), abs=1e-4)
        assert logprobs.usage.verified == len(step.token_ids)


def test_a_models_own_text_has_the_logprob_that_it_was_written_with() -> None:
    async def use(engine: TransformersEngine) -> None:
        policy = engine.load_policy("draft", source("s"))
        context = Context(prompt=policy.prompt(questions(1)[0]))
        step = await policy.generate(context, sampling(temperature=1.0))
        logprobs = await policy.logprobs(context, step.token_ids)
        assert sum(logprobs.values) == pytest.approx(step.logprob, abs=1e-4)
        assert logprobs.usage.cached == len(context.prompt) - 1  # all but the tokens whose outputs are read

    serve(use)


def test_samples_follow_the_models_distribution() -> None:
    """The second token after a prompt with a known first one, 4,000 draws against softmax."""
    (question,) = questions(1)

    async def use(engine: TransformersEngine) -> tuple[list[Completion], tuple[int, ...]]:
        policy = engine.load_policy("draft", source("s"))
        settings = [sampling(temperature=2.5, max_tokens=1, seed=seed) for seed in range(4000)]
        return await write(policy, [question] * 4000, *settings), policy.prompt(question)

    completions, prompt = serve(use)
    model = AutoModelForCausalLM.from_pretrained(source("s").path)
    with torch.inference_mode():
        expected = (model(torch.tensor([prompt])).logits[0, -1] / 2.5).softmax(-1)
    observed = Counter(c.token_ids[0] for c in completions)
    common = [token for token in range(len(expected)) if expected[token] * 4000 >= 5]
    chi2 = sum((observed[t] - 4000 * float(expected[t])) ** 2 / (4000 * float(expected[t])) for t in common)
    degrees = len(common) - 1
    assert degrees > 3
    assert chi2 < degrees + 4 * (2 * degrees) ** 0.5


def test_a_step_ends_with_the_token_that_completes_the_delimiter() -> None:
    async def use(engine: TransformersEngine) -> list[Completion]:
        policy = engine.load_policy("draft", source("s"))
        return await write(policy, questions(20), sampling(stop="\n\n"))

    for completion in serve(use):
        assert completion.finish == "step"
        assert completion.text.endswith("\n\n")
        assert "\n\n" not in completion.text[:-2]
        assert completion.usage.generated == completion.usage.passes == len(completion.token_ids)


def test_max_tokens_cuts_and_says_so() -> None:
    async def use(engine: TransformersEngine) -> list[Completion]:
        return await write(engine.load_policy("draft", source("s")), questions(3), sampling(max_tokens=4))

    assert [(c.finish, len(c.token_ids)) for c in serve(use)] == [("length", 4)] * 3


def test_the_classifier_reads_the_last_token_as_transformers_does() -> None:
    texts = ["a", "Mia has 4+3=7 pens.\n\n", "Mia has 4+3=7 pens.\n\nMia has 7*2=14 pens.\n\n"]

    async def use(engine: TransformersEngine) -> list[tuple[tuple[int, ...], float]]:
        classifier = engine.load_classifier(source("prm"))
        ids = [tuple(classifier.tokenizer(text).input_ids) for text in texts]
        found = []
        for own in ids:  # one after the other: each continues the one before
            answer = await classifier.classify(Context(prompt=ids[0], response=own))
            found.append((ids[0] + own, answer.logits[0]))
        return found

    model = AutoModelForSequenceClassification.from_pretrained(source("prm").path)
    for tokens, logit in serve(use):
        with torch.inference_mode():
            expected = model.score(model.model(torch.tensor([tokens])).last_hidden_state[0, -1])
        assert logit == pytest.approx(float(expected), abs=1e-4)


def test_a_cancelled_call_gives_its_row_back() -> None:
    async def use(engine: TransformersEngine) -> Completion:
        policy = engine.load_policy("draft", source("s"))
        asked = questions(2)
        prompt = Context(prompt=policy.prompt(asked[0]))
        doomed = asyncio.create_task(policy.generate(prompt, sampling()))
        await asyncio.sleep(0.05)
        doomed.cancel()
        return (await asyncio.wait_for(write(policy, asked[1:], sampling()), 20))[0]

    assert serve(use, max_rows=1).finish == "eos"


def test_broken_checkpoints_are_refused_in_one_sentence(tmp_path: Path) -> None:
    def load(path: Path, prm: bool = False) -> str:
        async def use(engine: TransformersEngine) -> None:
            given = source("s", path=str(path), key="model.draft.path")
            if prm:
                engine.load_classifier(given)
            else:
                engine.load_policy("draft", given)

        with pytest.raises(ModelError) as caught:
            serve(use)
        assert "\n" not in str(caught.value)
        assert str(path) in str(caught.value)
        return str(caught.value)

    whole = Path(source("s").path)
    corrupt = shutil.copytree(whole, tmp_path / "corrupt")
    weights = corrupt / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    assert load(corrupt).startswith("model.draft.path: cannot read the weights")

    headless = shutil.copytree(whole, tmp_path / "causal")
    assert "is a Qwen2ForCausalLM, which has no reward head" in load(
        headless, prm=True
    )  # a language model is no reward model

    weightless = shutil.copytree(whole, tmp_path / "weightless", ignore=shutil.ignore_patterns("*.safetensors"))
    assert load(weightless).startswith("model.draft.path: cannot read the weights")

    tokenless = shutil.copytree(whole, tmp_path / "tokenless", ignore=shutil.ignore_patterns("tokenizer*"))
    assert load(tokenless).startswith("model.draft.path: cannot read the tokenizer")

    endless = shutil.copytree(whole, tmp_path / "endless")
    for name in ("generation_config.json", "config.json"):
        settings = json.loads((endless / name).read_text())
        settings.pop("eos_token_id", None)
        (endless / name).write_text(json.dumps(settings))
    assert "names no EOS token" in load(endless)
