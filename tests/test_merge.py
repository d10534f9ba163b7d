"""Merged checkpoints: what each role reads of them, what is refused, and that a broken-off merge leaves nothing."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, Qwen2ForCausalLM, Qwen2ForSequenceClassification

from rsd.config import MergeConfig
from rsd.engines.base import ModelSource
from rsd.engines.classifiers import Qwen2ForPrmModel, load_classifier
from rsd.engines.loading import load_model
from rsd.errors import ConfigError, ModelError, StoreError
from rsd.invocation import invoke
from rsd.merge import main, merge
from rsd.models import load_models
from rsd.plan import Plan, make_plan
from rsd.records import Role
from rsd.rewards.check import fixed_rewards
from tests.conftest import ROOT, compose_config

WEIGHTS = ROOT / "rsd" / "tiny" / "weights"
IDS = torch.tensor([[3, 50, 60, 70, 8, 9, 100]])
Pair = tuple[Path, Path]


@pytest.fixture(scope="module")
def tied() -> Pair:
    """S and its PRM: the output layer is the embedding."""
    return WEIGHTS / "s", WEIGHTS / "prm_s"


@pytest.fixture(scope="module")
def untied(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """A policy in three shards with an output layer of its own, and a PRM in ``pytorch_model.bin`` with a value head:
    the layout of the 7B models, and that of Skywork's 1.5B."""
    folder = tmp_path_factory.mktemp("untied")
    policy = Qwen2ForCausalLM.from_pretrained(WEIGHTS / "s")
    policy.config.tie_word_embeddings = False
    policy.lm_head.weight = torch.nn.Parameter(torch.randn_like(policy.lm_head.weight, dtype=torch.bfloat16) * 0.1)
    policy.to(torch.bfloat16).save_pretrained(folder / "policy", max_shard_size="150KB")
    torch.manual_seed(0)
    prm = Qwen2ForPrmModel(policy.config)
    prm.model.load_state_dict(load_weights(WEIGHTS / "prm_s"))
    prm.config.save_pretrained(folder / "prm")
    config = folder / "prm" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "architectures": ["Qwen2ForPrmModel"]}))
    torch.save(prm.to(torch.bfloat16).state_dict(), folder / "prm" / "pytorch_model.bin")
    return folder / "policy", folder / "prm"


def load_weights(folder: Path) -> dict[str, torch.Tensor]:
    """The backbone's weights, as it names them itself."""
    every = load_file(folder / "model.safetensors")
    return {name.removeprefix("model."): weight for name, weight in every.items() if name.startswith("model.")}


def logits(folder: Path) -> torch.Tensor:
    with torch.inference_mode():
        return load_model(AutoModelForCausalLM, source(folder))(IDS).logits


def scores(folder: Path) -> torch.Tensor:
    model = load_classifier(source(folder))
    with torch.inference_mode():
        return model.score(model.base_model(IDS).last_hidden_state)


def source(folder: Path) -> ModelSource:
    return ModelSource(key="model.draft.path", path=str(folder), revision=None, dtype="float32", context=512)


def merged(pair: Pair, out: Path, **settings: Any) -> Path:
    assert merge(MergeConfig(policy=str(pair[0]), prm=str(pair[1]), out=str(out), **settings))
    return out


def weights(folder: Path) -> dict[str, torch.Tensor]:
    """Every weight, by the checkpoint's index."""
    places = json.loads((folder / "model.safetensors.index.json").read_text())["weight_map"]
    found = {}
    for name, file in places.items():
        with safe_open(folder / file, "pt") as opened:
            found[name] = opened.get_tensor(name)
    return found


PARTS = [("blocks",), ("blocks", "norm"), ("blocks", "norm", "embeddings")]


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("kind", ["tied", "untied"])
def test_all_of_one_model_is_that_model(
    kind: str, parts: tuple[str, ...], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    pair: Pair = request.getfixturevalue(kind)
    policy = merged(pair, tmp_path / "policy", weight=1.0, merge=parts)
    assert torch.equal(logits(policy), logits(pair[0]))
    prm = merged(pair, tmp_path / "prm", weight=0.0, merge=parts)
    assert torch.equal(scores(prm / "prm"), scores(pair[1]))


@pytest.mark.parametrize("kind", ["tied", "untied"])
def test_blocks_are_averaged_by_weight_and_all_else_stays_with_its_owner(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """The formula of mergekit's `linear`: a weighted sum, here of weights that sum to 1."""
    pair: Pair = request.getfixturevalue(kind)
    out = merged(pair, tmp_path / "out", weight=0.6)
    alone = [merged(pair, tmp_path / f"all-{weight}", weight=weight) for weight in (1.0, 0.0)]
    policy, prm = weights(alone[0]), weights(alone[1] / "prm")
    ours, theirs = weights(out), weights(out / "prm")
    blocks = {name for name in policy if name.startswith("model.layers.")}
    assert len(blocks) == 24
    for name in blocks:
        expected = (0.6 * policy[name].double() + 0.4 * prm[name].double()).to(policy[name].dtype)
        assert torch.allclose(ours[name], expected, rtol=0, atol=1e-6 if kind == "tied" else 1e-3)
        assert ours[name].dtype == policy[name].dtype == (torch.float32 if kind == "tied" else torch.bfloat16)
        assert torch.equal(ours[name], theirs[name])
    assert all(torch.equal(ours[name], policy[name]) for name in ours.keys() - blocks)
    assert all(torch.equal(theirs[name], prm[name]) for name in theirs.keys() - blocks)
    assert not torch.equal(ours["model.norm.weight"], theirs["model.norm.weight"])


def test_a_tied_output_layer_stays_the_policys_when_embeddings_merge(tied: Pair, tmp_path: Path) -> None:
    out = merged(tied, tmp_path / "out", weight=0.5, merge=("blocks", "embeddings"))
    found, original = weights(out), load_file(tied[0] / "model.safetensors")["model.embed_tokens.weight"]
    assert torch.equal(found["lm_head.weight"], original)
    assert not torch.equal(found["model.embed_tokens.weight"], original)
    assert json.loads((out / "config.json").read_text())["tie_word_embeddings"] is False
    model = load_model(AutoModelForCausalLM, source(out))
    assert torch.equal(model.lm_head.weight, original)
    assert "lm_head.weight" not in weights(out / "prm")


def test_both_roles_read_the_same_files_and_what_went_in_is_on_record(tied: Pair, tmp_path: Path) -> None:
    out = merged(tied, tmp_path / "out", weight=0.6)
    shared = out / "prm" / "merged-00001.safetensors"
    assert shared.resolve() == out / "merged-00001.safetensors"
    about = json.loads((out / "merge.json").read_text())
    assert (about["weight"], about["merge"], about["policy"]["model"]) == (0.6, ["blocks"], "s")
    assert len(about["files"]["merged-00001.safetensors"]) == 64
    again = merged(tied, tmp_path / "again", weight=0.6)
    assert (again / "merge.json").read_bytes() == (out / "merge.json").read_bytes()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"model.extra.weight": torch.zeros(2)}, r"prm: .* holds model\.extra\.weight, which is no part"),
        (
            {"model.layers.2.mlp.up_proj.weight": torch.zeros(2)},
            r"prm: model\.layers\.2\.mlp\.up_proj\.weight .* has no",
        ),
        ({"model.layers.0.mlp.up_proj.weight": torch.zeros(2)}, r"policy: model\.layers\.0\.mlp\.up_proj.* as \[2\]"),
        (
            {"model.layers.0.mlp.up_proj.weight": None},
            r"policy: model\.layers\.0\.mlp\.up_proj\.weight of .* has no such",
        ),
    ],
)
def test_a_weight_without_its_match_is_named(
    tied: Pair, change: dict[str, torch.Tensor | None], sentence: str, tmp_path: Path
) -> None:
    prm = tmp_path / "prm"
    Qwen2ForSequenceClassification.from_pretrained(tied[1]).save_pretrained(prm)
    every = {**load_file(tied[1] / "model.safetensors"), **change}
    save_file({name: weight for name, weight in every.items() if weight is not None}, prm / "model.safetensors")
    with pytest.raises(ModelError, match=sentence):
        merged((tied[0], prm), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_is_there_is_kept(tied: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [f"policy={tied[0]}", f"prm={tied[1]}", f"out={tmp_path / 'out'}"]
    assert [main(words), main(words)] == [0, 0]
    assert "is there already." in capsys.readouterr().out
    assert main([*words, "weight=0.5"]) == 2
    assert "holds another merge; name another folder, or delete it." in capsys.readouterr().err
    (tmp_path / "else").mkdir()
    with pytest.raises(ConfigError, match="holds something else"):
        merged(tied, tmp_path / "else")


def test_what_runs_read_is_merged_where_they_look_for_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["+experiment=table4", "preset=tiny", f"results_dir={tmp_path}"]
    assert main(words) == 0
    assert [main(["model=tiny_merged_target", f"results_dir={tmp_path}"]), main(["model=tiny"])] == [0, 2]
    captured = capsys.readouterr()
    assert "tiny_m-0.6 is there already" in captured.out
    assert "no model here is a merged one" in captured.err
    for model in ("tiny_merged_draft", "tiny_merged_target"):
        make_plan(compose_config(f"model={model}", "limit=1", f"results_dir={tmp_path}"))  # finds what it reads


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["weight=2"], "weight=2 is wrong"),
        (["merge=[heads]"], "merge='heads' is wrong"),
        (["weigth=0.5"], "There is no key weigth; did you mean weight?"),
        (["policy=./nowhere"], "policy: there is no folder ./nowhere"),
    ],
)
def test_a_wrong_word_is_a_sentence(words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([f"policy={WEIGHTS / 's'}", f"prm={WEIGHTS / 'prm_s'}", "out=nowhere", *words]) == 2
    assert sentence in capsys.readouterr().err


def test_a_merge_that_breaks_off_leaves_nothing_and_a_killed_one_is_cleared_away(
    tied: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = tmp_path / ".out.partial"
    left.mkdir()
    (left / "merged-00001.safetensors").write_bytes(b"half")

    def full(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("rsd.merge.shutil.copyfile", full)
        with pytest.raises(StoreError, match="out"):
            merged(tied, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert not left.exists()
    left.mkdir()
    (left / "merged-00009.safetensors").write_bytes(b"half")
    assert not (merged(tied, tmp_path / "out") / "merged-00009.safetensors").exists()


PEAK = """
import re, sys
from pathlib import Path
from rsd.merge import main
def merged(policy, prm, out):
    assert main([f"policy={policy}", f"prm={prm}", f"out={out}"]) == 0
def resident(what):
    return int(re.search(what + r":\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) / 1024
small, policy, prm, out = sys.argv[1:]
merged(small, small, f"{out}/small")
Path("/proc/self/clear_refs").write_text("5")  # the peak is of what follows
before = resident("VmRSS")
merged(policy, prm, f"{out}/large")
print(resident("VmHWM") - before)
"""


def test_memory_is_that_of_a_shard_not_of_a_model(tmp_path: Path) -> None:
    """Eight shards of four weights of 4 MiB each, of either model."""

    def names(shard: int) -> list[str]:
        return [f"model.layers.{shard}.{n}.weight" for n in range(4)]

    for side in (tmp_path / "policy", tmp_path / "prm"):
        side.mkdir()
        (side / "config.json").write_bytes((WEIGHTS / "s" / "config.json").read_bytes())
        for shard in range(8):
            save_file({name: torch.ones(2**20) for name in names(shard)}, side / f"part-{shard}.safetensors")
        places = {name: f"part-{shard}.safetensors" for shard in range(8) for name in names(shard)}
        (side / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    arguments = [str(path) for path in (WEIGHTS / "s", tmp_path / "policy", tmp_path / "prm", tmp_path / "out")]
    done = subprocess.run([sys.executable, "-c", PEAK, *arguments], capture_output=True, text=True, check=True)
    # a shard of each, of what is made of them and of the bytes written are 64 MiB; one model alone is 128, all are 384
    assert float(done.stdout.split()[-1]) < 100


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory, tied: Pair) -> Path:
    """A results folder with the merged models that ``model=tiny_merged_draft`` looks for."""
    folder = tmp_path_factory.mktemp("results")
    merged(tied, folder / "merged" / "tiny_s-0.9", weight=0.9)
    return folder


def test_one_module_serves_both_roles(results: Path) -> None:
    """The scores are those of a reward model by itself, and weights in common are in memory once."""
    plan = make_plan(compose_config("model=tiny_merged_draft", "merge_weight=0.9", f"results_dir={results}"))
    alone = make_plan(compose_config("model=tiny_merged_draft", "merge_weight=0.9", f"results_dir={results}"))

    async def rewards(plan: Plan, roles: list[Role]) -> tuple[list[float], Mapping[Role, int], tuple[str, ...]]:
        models = load_models(plan, roles)
        assert models.prm is not None
        try:
            return await fixed_rewards(models.prm), plan.engine.weights(), models.remarks
        finally:
            await plan.engine.close()

    expected, whole, _ = asyncio.run(rewards(alone, ["prm"]))
    found, weights, remarks = asyncio.run(rewards(plan, ["draft", "target", "prm"]))
    assert found == expected
    blocks = (results / "merged" / "tiny_s-0.9" / "merged-00001.safetensors").stat().st_size
    assert whole["prm"] - weights["prm"] == pytest.approx(blocks, abs=4000)  # less the file's header
    assert weights["draft"] == 4 * 137_984
    assert remarks == ("draft (0.5 MiB) and prm are one set of weights, beside 0.1 MiB of prm.",)


def test_a_run_records_what_its_weights_take(results: Path) -> None:
    config = compose_config("model=tiny_merged_draft", "merge_weight=0.9", f"results_dir={results}", "limit=4")
    invoke(config)
    lines = (make_plan(config).folder / "invocations.jsonl").read_text().splitlines()
    told = json.loads(lines[-1])["weights"]
    assert told["prm"] < told["draft"] == 4 * 137_984


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (["merge_weight=0.5"], r"model\.draft\.path: there is no merged model in .*/tiny_s-0\.5; make it with python "
         r"-m rsd\.merge policy=.*/s prm=.*/prm_s weight=0\.5 out=.*/merged/tiny_s-0\.5$"),
        (["merge_weight=0.5", "method=best_of_n", "method.role=target"], r"prm\.path: there is no merged .* weight=0"),
        (["merge_weight=0.5", "model.draft.path=${results_dir}/merged/tiny_s-0.9"],
         r"model\.draft\.path: .* was merged with weight=0\.9, .* says 0\.5; set merge_weight=0\.9"),
    ],
)  # fmt: skip
def test_a_merged_model_that_is_not_there_is_a_sentence_with_the_command(
    results: Path, overrides: list[str], sentence: str
) -> None:
    with pytest.raises(ModelError, match=sentence):
        make_plan(compose_config("model=tiny_merged_draft", f"results_dir={results}", *overrides))
