"""A run's identity: the hash of what its output depends on, and of nothing else.

    identity = identify(config, method, limits, data=data_hash(problems))
    folder = results / "runs" / "tiny_chain" / run_id(identity, config, method)

The same command finds its own run again; another limit of questions, place, engine or concurrency
belongs to the same run (specification, "Records").
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rsd.config import PolicyConfig, PRMConfig, RunConfig
from rsd.errors import ModelError
from rsd.methods.base import Method, Selection, models_of
from rsd.methods.decoding import Limits
from rsd.records import RECORD_VERSION, PolicyRole, Role

# Arguments of an engine that change what its model writes; others change its speed only.
TELLING = ("model", "revision", "dtype", "quantization", "hf_overrides")
WHOLE = 64 * 2**20  # bytes of a file up to which all of it is hashed
PART = 2**20  # bytes hashed at the beginning, middle and end of a larger one


def identify(config: RunConfig, method: Method | Selection, limits: Limits, *, data: str) -> dict[str, Any]:
    """Everything that a record of this run can depend on. `data` is the benchmark's fingerprint.

    Raises ModelError when a model's folder is not there.
    """
    models: dict[Role, dict[str, Any]] = {}
    for role in models_of(method):
        if role == "prm":
            prm = config.prm
            models[role] = {
                **resolve(_made(prm, "prm.path"), prm.revision, "prm.path"),
                **{"dtype": prm.dtype, "adapter": prm.adapter, "max_length": prm.max_length},
                **({"transform": config.reward_transform} if config.reward_transform else {}),
                **_engine_arguments(config, role),
            }
        else:
            models[role] = identify_policy(config, role)
    return {
        "record_version": RECORD_VERSION,
        "method": dict(method.settings),
        "models": models,
        "sampling": config.sampling.model_dump(),
        "limits": asdict(limits),
        "step": config.step.told,
        "benchmark": {"name": config.benchmark["name"], "data": data},
        "seed": config.seed,
        "tag": config.tag,
    }


def identify_policy(config: RunConfig, role: PolicyRole) -> dict[str, Any]:
    """What the output of the family's draft or target depends on. Raises ModelError as `identify`."""
    policy = config.model.policies[role]
    return {
        **resolve(_made(policy, f"model.{role}.path"), policy.revision, f"model.{role}.path"),
        **{"dtype": policy.dtype, "prompt": config.model.prompt_text or {"chat_template": config.model.system}},
        **_engine_arguments(config, role),
    }


def _made(model: PolicyConfig | PRMConfig, key: str) -> str:
    """The path of a model. Raises ModelError where it is to be merged first, or was merged otherwise."""
    merged, folder = model.merged, Path(model.path)
    if merged is None:
        return model.path
    out = folder.parent if isinstance(model, PRMConfig) else folder  # a merge's reward model lies within it
    about = out / "merge.json"
    if not about.is_file():
        raise ModelError(f"{key}: there is no merged model in {folder}; make it with {merged.command(str(out))}")
    weight = json.loads(about.read_text(encoding="utf-8")).get("weight")
    if weight != merged.weight:
        raise ModelError(
            f"{key}: {out} was merged with weight={weight}, where the configuration says {merged.weight:g}; set "
            f"merge_weight={weight}, or name another folder."
        )
    return model.path


def _engine_arguments(config: RunConfig, role: Role) -> dict[str, Any]:
    """What ``engine.<role>.args`` changes of the model's output, where it does."""
    arguments = (config.engine.get(role) or {}).get("args") or {}
    told = {name: arguments[name] for name in TELLING if name in arguments}
    return {"engine": told} if told else {}


def run_id(identity: Mapping[str, Any], config: RunConfig, method: Method | Selection) -> str:
    """A readable name that ends in 10 hex digits of the identity's hash."""
    digest = hashlib.blake2b(json.dumps(identity, sort_keys=True).encode(), digest_size=5).hexdigest()
    words = [method.name, config.model.name, *([config.prm.name] if "prm" in method.roles else [])]
    readable = re.sub(r"[^A-Za-z0-9.=]+", "-", " ".join(words)).strip("-")
    return f"{readable}-{config.tag}-{digest}" if config.tag else f"{readable}-{digest}"


def resolve(path: str, revision: str | None, key: str) -> dict[str, str | None]:
    """Name a model for good: a hub id with its revision, or a local folder with its fingerprint.

    A path counts as local when it is absolute, begins with a dot, or exists.
    """
    folder = local_folder(path, key)
    if folder is not None:
        return {"id": folder.name, "revision": fingerprint(folder)}
    return {"id": path, "revision": revision}


def local_folder(path: str, key: str) -> Path | None:
    """The folder that `path` names, None where it is a hub id. Raises ModelError where it is neither."""
    folder = Path(path)
    if folder.is_dir():
        return folder
    if folder.is_absolute() or path.startswith(".") or folder.exists():
        raise ModelError(f"{key}: there is no folder {path}; give the folder of a checkpoint, or a hub id.")
    return None


def fingerprint(folder: Path) -> str:
    """Hash of the files in `folder`: whole up to 64 MiB each, three samples and the size beyond."""
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(p for p in folder.iterdir() if p.is_file() and not p.name.startswith(".")):
        size = path.stat().st_size
        digest.update(json.dumps([path.name, size]).encode())
        with path.open("rb") as file:
            if size <= WHOLE:
                digest.update(file.read())
            else:
                for start in (0, size // 2, size - PART):
                    file.seek(start)
                    digest.update(file.read(PART))
    return digest.hexdigest()
