"""Download a run's models and data on a machine with a network, for compute nodes without one::

    python -m rsd.fetch model=qwen_math_7b prm=skywork_7b benchmark=math500
    HF_HUB_OFFLINE=1 python -m rsd.run model=qwen_math_7b prm=skywork_7b benchmark=math500

Both share the cache of ``HF_HOME``. Every role is fetched, whether or not a method will need it; what is there
already, and local paths, cost nothing.
"""

from collections.abc import Iterator
from pathlib import Path

import hydra
from huggingface_hub import HfApi, snapshot_download
from huggingface_hub.errors import GatedRepoError, LocalEntryNotFoundError, RepositoryNotFoundError
from omegaconf import DictConfig

from rsd.benchmarks.hub import HubBenchmark
from rsd.command import CONFIGURATION, attempt, leave, status
from rsd.config import PolicyConfig, PRMConfig, RunConfig, build
from rsd.errors import ModelError
from rsd.identity import local_folder

# Not the copies of the same weights in other formats.
WEIGHTS, FALLBACK, REST = ("*.safetensors",), ("*.bin",), ("*.json", "*.txt", "*.model", "*.jinja")


def fetch(config: RunConfig) -> None:
    """Download every model and data set of `config` that lies on the hub, and print their sizes.

    Raises ModelError or DataError, with the key to change, where one cannot be had.
    """
    for key, path, revision in dict.fromkeys(_wanted(config)):
        here = local_folder(path, key) is not None
        print(f"{path}: {'here' if here else f'{_fetch_model(key, path, revision) / 1e9:.2f} GB'}", flush=True)
    benchmark = build(config.benchmark, "benchmark")
    if isinstance(benchmark, HubBenchmark) and benchmark.path is None and benchmark.hub is not None:
        print(f"{benchmark.hub}: {benchmark.download()} rows")
    else:
        print(f"{benchmark.name}: {len(benchmark.problems())} questions, here")


def _wanted(config: RunConfig) -> Iterator[tuple[str, str, str | None]]:
    """Key, path and revision of every model; of merged ones, of what they are made of."""
    models: dict[str, PolicyConfig | PRMConfig] = {f"model.{role}": p for role, p in config.model.policies.items()}
    for key, model in (models | {"prm": config.prm}).items():
        if model.merged is None:
            yield f"{key}.path", model.path, model.revision
        else:
            yield f"{key}.merged.policy", model.merged.policy, None
            yield f"{key}.merged.prm", model.merged.prm, None


def fetched(path: str, key: str) -> Path:
    """The folder of a model, downloaded where it is neither a folder nor in the cache. Raises ModelError."""
    folder = local_folder(path, key)
    if folder is not None:
        return folder
    try:
        return Path(snapshot_download(path, local_files_only=True))
    except LocalEntryNotFoundError:
        _fetch_model(key, path, None)
        return Path(snapshot_download(path, local_files_only=True))


def _fetch_model(key: str, path: str, revision: str | None) -> int:
    """Download one repository; return its size in bytes."""
    try:
        files = HfApi().model_info(path, revision=revision, files_metadata=True).siblings or []
        weights = WEIGHTS if any(file.rfilename.endswith(".safetensors") for file in files) else FALLBACK
        snapshot_download(path, revision=revision, allow_patterns=[*weights, *REST])
    except GatedRepoError as error:
        raise ModelError(
            f"{key}: {path} is gated; ask for access at https://huggingface.co/{path} and log in with hf auth login."
        ) from error
    except RepositoryNotFoundError as error:
        raise ModelError(f"{key}: the hub has no model {path}, or none that you may see.") from error
    except Exception as error:  # no network, no space, a broken answer: each library below raises its own
        cause = " ".join(str(error).split())[:300]
        raise ModelError(f"{key}: cannot fetch {path} from the hub ({cause}); is there a network?") from error
    endings = tuple(pattern.removeprefix("*") for pattern in (*weights, *REST))
    return sum(file.size or 0 for file in files if file.rfilename.endswith(endings))


@hydra.main(**{**CONFIGURATION, "config_name": "fetch"})
def run(cfg: DictConfig) -> float | None:
    """Validate the composed configuration and fetch what it names."""
    return attempt(cfg, fetch)


if __name__ == "__main__":
    leave(status(run))
