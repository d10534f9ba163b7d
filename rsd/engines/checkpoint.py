"""What weights lie in a checkpoint's files, without loading them::

shapes = shapes_in(source, ["score.weight"])   # {"score.weight": (1, 1536)}
bytes_in(source)                               # 3_087_467_144
"""

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import torch
from safetensors import safe_open
from transformers.utils.hub import cached_file

from rsd.engines.base import ModelSource

_FORMATS = ("model.safetensors", "pytorch_model.bin")  # in the order in which transformers and vLLM look for them


def shapes_in(source: ModelSource, names: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """The shape of each of the weights `names` that `source` holds; those that it lacks are left out."""
    wanted = set(names)
    for whole in _FORMATS:
        files: defaultdict[str, list[str]] = defaultdict(list)
        index = _file(source, f"{whole}.index.json")
        if index is not None:
            for name, file in json.loads(index.read_text(encoding="utf-8"))["weight_map"].items():
                if name in wanted:
                    files[file].append(name)
        elif _file(source, whole) is not None:
            files[whole] = list(wanted)
        else:
            continue
        found: dict[str, tuple[int, ...]] = {}
        for file, held in files.items():
            path = _file(source, file)
            if path is not None:
                found |= _shapes(path, held)
        return found
    return {}


def bytes_in(source: ModelSource) -> int | None:
    """Size of all weights as they are stored: by the index of a sharded checkpoint, which needs none of the shards;
    of the file where there is one. None where neither tells."""
    for whole in _FORMATS:
        index = _file(source, f"{whole}.index.json")
        if index is not None:
            total = json.loads(index.read_text(encoding="utf-8")).get("metadata", {}).get("total_size")
            return None if total is None else int(total)
        path = _file(source, whole)
        if path is not None:
            return path.stat().st_size
    return None


def _shapes(path: Path, names: Iterable[str]) -> dict[str, tuple[int, ...]]:
    if path.suffix == ".bin":
        weights = torch.load(path, weights_only=True, mmap=True, map_location="cpu")
        return {name: tuple(weights[name].shape) for name in names if name in weights}
    with safe_open(path, framework="pt") as file:
        held = set(file.keys())
        return {name: tuple(file.get_slice(name).get_shape()) for name in names if name in held}


def _file(source: ModelSource, name: str) -> Path | None:
    found = cached_file(
        source.path,
        name,
        revision=source.revision,
        _raise_exceptions_for_missing_entries=False,
        _raise_exceptions_for_connection_errors=False,
    )
    return None if found is None else Path(found)
