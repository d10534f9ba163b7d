"""What weights lie in a checkpoint's files, without loading them::

shapes = shapes_in(source, ["score.weight"])   # {"score.weight": (1, 1536)}
bytes_in(source)                               # 3_087_467_144
"""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import safe_open
from transformers.utils.hub import cached_file

from rsd.engines.base import ModelSource

_FORMATS = ("model.safetensors", "pytorch_model.bin")  # in the order in which transformers and vLLM look for them


def shapes_in(source: ModelSource, names: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """The shape of each of the weights `names` that `source` holds; those that it lacks are left out."""
    files, wanted = weights_in(source), set(names)
    found: dict[str, tuple[int, ...]] = {}
    for path in set(files.values()):
        held = [name for name in wanted if files.get(name) == path]
        found |= _shapes(path, held) if held else {}
    return found


def weights_in(source: ModelSource) -> dict[str, Path]:
    """The file of every weight that `source` holds, as far as the files are there."""
    for whole in _FORMATS:
        index = _file(source, f"{whole}.index.json")
        if index is not None:
            places = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
            files = {name: _file(source, name) for name in set(places.values())}
            return {name: path for name, file in places.items() if (path := files[file]) is not None}
        path = _file(source, whole)
        if path is not None:
            return dict.fromkeys(_names(path), path)
    return {}


def in_common(one: ModelSource, other: ModelSource) -> set[str]:
    """Names of the weights that lie in the very same files in both checkpoints, as `rsd.merge` makes them."""
    files = {name: path.resolve() for name, path in weights_in(other).items()}
    return {name for name, path in weights_in(one).items() if files.get(name) == path.resolve()}


@contextmanager
def opened(path: Path) -> Iterator[Callable[[str], torch.Tensor]]:
    """A file of weights, of which each is read when it is asked for by its name."""
    if path.suffix == ".bin":
        yield _bin(path).__getitem__
        return
    with safe_open(path, framework="pt") as file:
        yield file.get_tensor


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
        weights = _bin(path)
        return {name: tuple(weights[name].shape) for name in names if name in weights}
    with safe_open(path, framework="pt") as file:
        held = set(file.keys())
        return {name: tuple(file.get_slice(name).get_shape()) for name in names if name in held}


def _names(path: Path) -> list[str]:
    if path.suffix == ".bin":
        return list(_bin(path))
    with safe_open(path, framework="pt") as file:
        return list(file.keys())


def _bin(path: Path) -> dict[str, torch.Tensor]:
    weights: dict[str, torch.Tensor] = torch.load(path, weights_only=True, mmap=True, map_location="cpu")
    return weights


def _file(source: ModelSource, name: str) -> Path | None:
    found = cached_file(
        source.path,
        name,
        revision=source.revision,
        _raise_exceptions_for_missing_entries=False,
        _raise_exceptions_for_connection_errors=False,
    )
    return None if found is None else Path(found)
