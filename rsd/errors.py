"""Errors that are told to a user as one sentence, without a traceback."""

from collections.abc import Collection
from difflib import get_close_matches


class RSDError(Exception):
    """Something the user can mend; the message names the key or file, the fault and the mend."""

    status = 2  # exit status of the command that it ends


class ConfigError(RSDError):
    """A configuration value is wrong; raised before any model is loaded."""


class ModelError(RSDError):
    """Weights, tokenizer or head of a model are missing or not what the configuration says."""


class DataError(RSDError):
    """A benchmark file cannot be read as problems."""


class StoreError(RSDError):
    """Results cannot be written or read."""


class ReportError(RSDError):
    """Stored runs do not make what is asked for."""


class ServerError(RSDError):
    """A server that models are asked over HTTP gives no answer, or none that can be used."""


class EngineError(RSDError):
    """What serves a model has ended by itself, so that no question can go on."""


class RewardError(RSDError):
    """A reward model gave a value that no reward can have; the question it was for is an error."""


class PRMContextError(RSDError):
    """The reward model cannot read question and steps within its `prm.max_length`."""


class QuestionsFailedError(RSDError):
    """The run ended, and some of its questions are errors."""

    status = 1


class SweepError(RSDError):
    """A sweep ended, and some of its runs are not done."""

    status = 1


class StoppedError(RSDError):
    """A signal ended the run early; what was done is kept."""

    status = 130


def hint(name: str, known: Collection[str], otherwise: str | None = None) -> str:
    """What to write in place of `name`: the nearest of those `known`, or `otherwise` (None: all of them)."""
    close = get_close_matches(name, known, n=1)
    return f"did you mean {close[0]}?" if close else otherwise or f"there are {', '.join(known) or 'none'}."


def described(error: BaseException) -> str:
    """Kind and message of any error in one line without a full stop, to stand inside a sentence."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(".: ")
