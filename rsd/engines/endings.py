"""What to say of a process of vLLM's that does not start, or that ends by itself: the cause, and the log with the rest.

raise not_served("draft", source, log, str(error))             # while it starts
raise has_ended("draft", source, log, process.returncode)      # when it has served
"""

import re
import signal
from pathlib import Path

from rsd.engines.base import ModelSource
from rsd.engines.output import last_error
from rsd.errors import EngineError, ModelError
from rsd.records import Role

# Of errors that follow from another one, which stands before them in the log.
FOLLOWING = ("nitialization failed", "EngineCore encountered an issue")
_GONE = "engine core exited unexpectedly"  # a server says so of an engine that was killed, and of others
_KILLED = re.compile(r"Failed core proc\(s\): \{'\w+': -(\d+)\}")


def not_served(role: Role, source: ModelSource, log: Path, error: str, status: int | None = None) -> ModelError:
    """What to say of vLLM when it does not start; `error` is the reason, unless `log` tells of another. `status`: of
    the process, where that is known."""
    return ModelError(
        f"{source.key}: vLLM cannot serve {source.path} ({_cause(log, error, status)}); see {log}, and "
        f"engine.{role} for what it was started with."
    )


def has_ended(role: Role, source: ModelSource, log: Path, status: int | None) -> EngineError:
    """What to say of one that was serving. `status`: of its process, None where that has not quite ended."""
    cause = _cause(log, "it said nothing" if status is None else f"it ended with status {status}", status)
    return EngineError(f"engine.{role}: vLLM, which served {source.path}, has ended ({cause}); see {log}.")


def _cause(log: Path, otherwise: str, status: int | None) -> str:
    """Why a process ended: a signal leaves no word in `log`, so that what stands there is of other things."""
    text = log.read_text(encoding="utf-8", errors="replace")
    killed = _KILLED.search(otherwise + text)
    number = int(killed[1]) if killed else -(status or 0)
    if number > 0:
        memory = ", as the system does when memory runs out" if number == signal.SIGKILL else ""
        return f"it was ended by {signal.Signals(number).name}{memory}"
    told = last_error(log, besides=FOLLOWING)
    if told is None and _GONE in text:
        return "its engine was killed"
    return " ".join((told or otherwise).split())[:300]
