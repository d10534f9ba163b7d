"""Merge a policy and a reward model of its family: one set of layers that both read (Tables 4 and B.3).

    python -m rsd.merge policy=Qwen/Qwen2.5-Math-7B-Instruct prm=Skywork/Skywork-o1-Open-PRM-Qwen-2.5-7B \\
        weight=0.6 out=results/merged/qwen_math_7b-0.6
    python -m rsd.merge model=qwen_math_7b_merged_target        # what its runs read, where they look for it
    python -m rsd.merge +experiment=table4 preset=paper

Every merged weight is weight · policy + (1 - weight) · prm. By default these are the transformer blocks alone, and
embedding, final norm and head stay with their owner; ``merge=[blocks,norm,embeddings]`` merges more. What is written
are two checkpoints that any loader reads: the policy in `out`, and the reward model in ``out/prm``, whose merged
weights are links to those of the policy. ``merge.json`` says what went in and holds every file's hash.
"""

import argparse
import hashlib
import json
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from rsd.command import status
from rsd.config import MergeConfig, check_as
from rsd.errors import ConfigError, ModelError
from rsd.identity import local_folder
from rsd.lock import RunLock
from rsd.store import create_folder, write_error, write_json
from rsd.sweep.compose import Composer, configuration
from rsd.sweep.grids import expand

PARTS = {"blocks": "model.layers.", "norm": "model.norm.", "embeddings": "model.embed_tokens."}
HEADS = ("lm_head.", "score.", "v_head.")  # never merged: each belongs to one of the two
EMBEDDING, OUTPUT = "model.embed_tokens.weight", "lm_head.weight"
KEPT = {".json", ".txt", ".model", ".jinja"}  # endings of configurations and tokenizer files
INDEX = "model.safetensors.index.json"
WRITTEN = {"config.json", "merge.json"}  # of these, anew
OWN = {"policy", "weight", "merge", "out"}  # keys that runs have not


def merge(config: MergeConfig) -> bool:
    """Write the merged checkpoints; whether there was anything to do: they may be there already.

    A merge is written aside and gets its name when it is whole. Raises ConfigError where `out` holds something else,
    ModelError where weights cannot be read or do not match, naming the first one that does not.
    """
    sides = {"policy": _Side("policy", config.policy), "prm": _Side("prm", config.prm)}
    merged = _matching(sides["policy"], sides["prm"], config.merge)
    recipe = {"weight": config.weight, "merge": list(config.merge), **{k: s.described for k, s in sides.items()}}
    out = Path(config.out)
    create_folder(out.parent)
    aside = out.with_name(f".{out.name}.partial")
    with RunLock(out.with_name(f".{out.name}.lock")):
        if _is_there(out, recipe):
            return False
        shutil.rmtree(aside, ignore_errors=True)  # of a merge that was killed
        try:
            (aside / "prm").mkdir(parents=True)
            _write(sides["policy"], sides["prm"], merged, config, aside)
            files = sorted(path for path in aside.rglob("*") if path.is_file() and not path.is_symlink())
            hashes = {str(path.relative_to(aside)): _sha256(path) for path in files}
            write_json(aside / "merge.json", {**recipe, "files": hashes})
            aside.replace(out)
        except OSError as error:
            raise write_error(out, error) from error
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    return True


class _Side:
    """One of the two models: its folder, its configuration, and the file of each of its weights."""

    def __init__(self, key: str, path: str) -> None:
        from rsd.engines.base import ModelSource  # these load torch
        from rsd.engines.checkpoint import shapes_in, weights_in
        from rsd.engines.loading import load_config
        from rsd.fetch import fetched

        self.key, self.path = key, path
        self.folder = fetched(path, key)
        source = ModelSource(key=key, path=str(self.folder), revision=None, dtype="float32", context=1)
        self.config: dict[str, Any] = json.loads((self.folder / "config.json").read_text(encoding="utf-8"))
        self.files = weights_in(source)
        self.shapes = shapes_in(source, self.files)
        if not self.files:
            raise ModelError(f"{key}: {path} holds no weights (model.safetensors or pytorch_model.bin).")
        known = load_config(source)
        # a classifier has no output layer to tie
        self.tied = bool(known.tie_word_embeddings) and str(known.architectures[0]).endswith("ForCausalLM")

    @property
    def described(self) -> dict[str, Any]:
        """What names the model in ``merge.json``: files by their hashes, which are also the hub's."""
        name = self.path if local_folder(self.path, self.key) is None else self.folder.name
        return {"model": name, "files": {path.name: _sha256(path) for path in sorted(set(self.files.values()))}}

    def shards(self) -> Iterator[tuple[Path, list[str]]]:
        """Files in order, with the names of their weights."""
        names: defaultdict[Path, list[str]] = defaultdict(list)
        for name, path in self.files.items():
            names[path].append(name)
        yield from sorted(names.items())


def _matching(policy: _Side, prm: _Side, parts: Sequence[str]) -> set[str]:
    """Names of the weights to merge. Raises ModelError for the first that the other lacks, or has in another shape, and
    for one that belongs to no part."""
    merged = set()
    for side, other in ((policy, prm), (prm, policy)):
        for name in sorted(side.files):
            part = next((part for part, prefix in PARTS.items() if name.startswith(prefix)), None)
            if part is None and not name.startswith(HEADS):
                raise ModelError(
                    f"{side.key}: {side.path} holds {name}, which is no part of a model that can be merged."
                )
            if part not in parts:
                continue
            if other.shapes.get(name) != side.shapes[name]:
                found = other.shapes.get(name)
                what = f"has it as {list(found)}" if found else "has no such weight"
                raise ModelError(
                    f"{side.key}: {name} of {side.path} is {list(side.shapes[name])}, and {other.path} {what}; "
                    "only models of one architecture and size merge."
                )
            merged.add(name)
    return merged


def _is_there(out: Path, recipe: Mapping[str, Any]) -> bool:
    """Whether `out` holds this very merge. Raises ConfigError where it holds anything else."""
    if not out.exists():
        return False
    about = out / "merge.json"
    held = json.loads(about.read_text(encoding="utf-8")) if about.is_file() else {}
    held.pop("files", None)
    if held != recipe:
        what = "another merge" if held else "something else"
        raise ConfigError(f"out={out} is there already and holds {what}; name another folder, or delete it.")
    return True


def _write(policy: _Side, prm: _Side, merged: set[str], config: MergeConfig, folder: Path) -> None:
    """Write both checkpoints into `folder`, one shard of the policy after the other."""
    shared: dict[str, str] = {}
    own: dict[str, str] = {}
    for number, (path, names) in enumerate(policy.shards(), 1):
        both = [name for name in names if name in merged]
        _save(_blended(path, both, prm, config.weight), folder / f"merged-{number:05d}.safetensors", shared)
        _save(_kept(policy, path, names, merged), folder / f"policy-{number:05d}.safetensors", own)
    _finish(policy, merged, folder, {**shared, **own})
    own = {}
    for number, (path, names) in enumerate(prm.shards(), 1):
        _save(_kept(prm, path, names, merged), folder / "prm" / f"prm-{number:05d}.safetensors", own)
    for file in set(shared.values()):
        (folder / "prm" / file).symlink_to(Path("..") / file)
    _finish(prm, merged, folder / "prm", {**shared, **own})


def _blended(path: Path, names: Sequence[str], prm: _Side, weight: float) -> dict[str, Any]:
    """The merged weights {name: tensor} of the policy's shard `path`, in its dtype."""
    import torch

    from rsd.engines.checkpoint import opened

    tensors = {}
    with ExitStack() as stack:
        mine = stack.enter_context(opened(path))
        files = {file: stack.enter_context(opened(file)) for file in sorted({prm.files[name] for name in names})}
        for name in names:
            ours, theirs = mine(name), files[prm.files[name]](name)
            wide = torch.promote_types(torch.promote_types(ours.dtype, theirs.dtype), torch.float32)
            tensors[name] = (ours.to(wide) * weight).add_(theirs.to(wide), alpha=1 - weight).to(ours.dtype)
    return tensors


def _kept(side: _Side, path: Path, names: Sequence[str], merged: set[str]) -> dict[str, Any]:
    """The weights {name: tensor} of the shard `path` that stay with their owner, the output layer among them where its
    embedding does not."""
    from rsd.engines.checkpoint import opened

    untied = side.tied and EMBEDDING in merged
    with opened(path) as held:
        tensors = {name: held(name).clone() for name in names if name not in merged and not (untied and name == OUTPUT)}
        if untied and EMBEDDING in names:
            tensors[OUTPUT] = held(EMBEDDING).clone()
    return tensors


def _save(tensors: Mapping[str, Any], path: Path, places: dict[str, str]) -> None:
    """Write a shard, if there is anything in it, and note in `places` where its weights lie."""
    from safetensors.torch import save_file

    if tensors:
        save_file(dict(tensors), path, metadata={"format": "pt"})
        places |= dict.fromkeys(tensors, path.name)


def _finish(side: _Side, merged: set[str], folder: Path, places: Mapping[str, str]) -> None:
    """Write what makes a checkpoint of the shards: index, configuration and tokenizer."""
    shards = [folder / file for file in sorted(set(places.values()))]
    size = sum(path.stat().st_size for path in shards)
    write_json(folder / INDEX, {"metadata": {"total_size": size}, "weight_map": dict(sorted(places.items()))})
    for path in shards:
        shutil.copymode(folder / INDEX, path)  # safetensors lets nobody else read what it writes
    for path in sorted(side.folder.iterdir()):
        if path.suffix in KEPT and path.name not in WRITTEN and not path.name.endswith(".index.json"):
            shutil.copyfile(path, folder / path.name)
    untied = {"tie_word_embeddings": False} if side.tied and EMBEDDING in merged else {}
    write_json(folder / "config.json", {**side.config, **untied})


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main(arguments: Sequence[str] | None = None) -> int:
    """Merge as the command line says; return the exit status."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        prog="python -m rsd.merge", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    told = "policy, prm, weight, out, merge; without policy, keys of runs, whose merged models are made"
    parser.add_argument("settings", nargs="+", metavar="KEY=VALUE", help=told)
    return status(partial(_merge_all, parser.parse_args(arguments).settings))


def _merge_all(words: Sequence[str]) -> None:
    told = {word.partition("=")[0] for word in words}
    for config in [_of_words(words)] if told & OWN else _of_runs(words):
        done = merge(config)
        print(f"Policy: {config.out}\nReward model: {config.out}/prm" if done else f"{config.out} is there already.")


def _of_runs(words: Sequence[str]) -> list[MergeConfig]:
    """The merges that these runs read, each once. Raises ConfigError where they read none."""
    with configuration():
        composer = Composer()
        runs = [composer.configure(run) for run in expand(OverridesParser.create().parse_overrides(list(words)))]
    policies = [policy for run in runs for policy in run.model.policies.values()]
    merges = {p.path: MergeConfig(**p.merged.model_dump(), out=p.path) for p in policies if p.merged is not None}
    if not merges:
        raise ConfigError(f"{' '.join(words)}: no model here is a merged one; name policy, prm, weight and out.")
    return list(merges.values())


def _of_words(words: Sequence[str]) -> MergeConfig:
    try:
        return check_as(MergeConfig, OmegaConf.to_container(OmegaConf.from_dotlist(list(words))))
    except (OmegaConfBaseException, ValueError) as error:
        raise ConfigError(
            f"{' '.join(words)}: write settings as KEY=VALUE ({' '.join(str(error).split())})."
        ) from error


if __name__ == "__main__":
    sys.exit(main())
