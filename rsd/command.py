"""What the commands that take the configuration share: Hydra around them, one sentence for every error::

@hydra.main(**CONFIGURATION)
def run(cfg): return attempt(cfg, invoke)

leave(status(run))
"""

import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException, MissingConfigException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import InterpolationKeyError, OmegaConfBaseException

from rsd.errors import ConfigError, RSDError, StoppedError, described, hint
from rsd.signals import interrupted, listen

if TYPE_CHECKING:  # needs pydantic, which --help and completion do without
    from rsd.config import RunConfig

PACKAGE = Path(__file__).parent
CONFIGURATION = {"version_base": "1.3", "config_path": str(PACKAGE.parent / "conf"), "config_name": "config"}

OmegaConf.register_new_resolver("package", lambda path: str(PACKAGE / path))
INTERRUPTED = StoppedError("Interrupted; what was done is kept, and the same command goes on.")
_failures: list[Exception] = []  # told by status: Hydra would add lines of its own to a raised one


def attempt(
    cfg: DictConfig, work: "Callable[[Any], float | None]", kind: "type[RunConfig] | None" = None
) -> float | None:
    """Validate the composed configuration, as one of `kind` (None: of a run), and do `work` with it; an error is kept
    for `status`."""
    from rsd.config import RunConfig, check_as

    try:
        for key in ("experiment", "sweep"):
            if key in cfg:
                raise ConfigError(f"There is no key {key} of one run; add -m: python -m rsd.run -m +{key}=…")
        launcher = [line for line in HydraConfig.get().overrides.hydra if line.startswith("hydra/launcher=")]
        if launcher and HydraConfig.get().mode == RunMode.RUN:
            raise ConfigError(f"{launcher[0]} is for sweeps; add -m, for one run as well.")
        values = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
        return work(check_as(kind or RunConfig, values))
    except StoppedError as error:
        stop(error)
    except Exception as error:
        if HydraConfig.get().mode != RunMode.RUN:
            raise
        _failures.append(error)
        return None


def stop(error: StoppedError) -> NoReturn:
    """End the command, a multirun as well: of any other exception Hydra goes on with its next job."""
    _failures.append(error)
    raise KeyboardInterrupt from error


def status(command: Callable[[], Any]) -> int:
    """Run a command that Hydra wraps and return the exit status; errors are told in one sentence, with
    a traceback where HYDRA_FULL_ERROR=1."""
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    os.environ.setdefault("HF_HUB_VERBOSITY", "error")  # not every retry: what comes of them is one sentence
    full = os.environ.get("HYDRA_FULL_ERROR") == "1"
    os.environ["HYDRA_FULL_ERROR"] = "1"  # let every error come here instead of to Hydra's own printer
    listen()
    error: BaseException | None = None
    try:
        command()
    except KeyboardInterrupt:
        error = INTERRUPTED
    except SystemExit as ended:
        if not isinstance(ended.__context__, BrokenPipeError):
            raise
        return 128 + signal.SIGPIPE  # as of any program whose reader, such as head, has read enough
    except Exception as raised:
        error = raised
    error = _failures[0] if _failures else error
    if error is not None and interrupted() and not isinstance(error, StoppedError):
        error = INTERRUPTED  # a library that was being imported made an error of its own of it
    if error is None:
        return 0
    if full:
        traceback.print_exception(error)
    print(f"Error: {sentence(error)}", file=sys.stderr)
    return error.status if isinstance(error, RSDError) else 2


def leave(status: int) -> NoReturn:
    """Exit with `status`."""
    if interrupted():  # Python would put death from SIGINT in place of the status where that met an extension's code
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)


def sentence(error: BaseException) -> str:
    """The error in one sentence; of Hydra's, which wrap each other, what the innermost says."""
    if isinstance(error, RSDError):
        return str(error)
    if not isinstance(error, (HydraException, OmegaConfBaseException)):
        if isinstance(error, ValueError) and str(error).startswith("Config group override"):  # Hydra's own
            return f"{' '.join(str(error).split())}; write model=tiny, the name of one option."
        return f"unexpected {described(error)} (HYDRA_FULL_ERROR=1 shows where)"
    cause = error.__cause__ if isinstance(error.__cause__, OmegaConfBaseException) else error
    if isinstance(cause, MissingConfigException) and cause.options:
        group, _, name = str(cause.missing_cfg_file).rpartition("/")
        return f"There is no {group}={name}; {hint(name, cause.options)}"
    key = getattr(cause, "full_key", None)
    if key and "not in struct" in str(cause):
        return f"There is no key {key}; {_hint(key, cause)}"
    told = str(cause).partition("Config search path:")[0]  # places that say nothing to a user follow
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    told = " ".join(line for line in lines if not line.startswith(("full_key", "object_type", "Set the environment")))
    return f"{key}: {told}" if isinstance(cause, InterpolationKeyError) else told


def _hint(key: str, error: Exception) -> str:
    """What to write in place of a key that is not there: one that stands beside it, or the same name elsewhere."""
    parent, _, name = key.rpartition(".")
    node: Any = getattr(error, "parent_node", None)
    beside = [str(other) for other in node or () if not str(other).startswith("_")]
    elsewhere = sorted(set(_keys(OmegaConf.to_container(node._get_root()))) - set(beside)) if node is not None else []
    same = [k for k in elsewhere if k.rpartition(".")[2] == name and not k.startswith("preset.")]  # which others read
    takes = f"{parent} takes {', '.join(beside)}." if parent and beside else "--help lists the keys."
    return f"did you mean {same[0]}?" if same else hint(name, beside, takes)


def _keys(values: Any, prefix: str = "") -> Iterator[str]:
    """The full names of all keys below `values`."""
    for name, value in values.items() if isinstance(values, dict) else ():
        yield f"{prefix}{name}"
        yield from _keys(value, f"{prefix}{name}.")
