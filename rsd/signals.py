"""The signals that end a run: nothing is recorded after one of them.

    listen()                 # each of them then raises KeyboardInterrupt; the runner handles its own
    interrupted()            # the one that came; a library may have caught the exception, or made its own of it

Slurm announces with SIGUSR1 or SIGUSR2, as it is told, that a job is about to be preempted or to run out of time.
"""

import signal

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
_came: list[int] = []


def listen() -> None:
    """Let a stop signal that comes outside of the runner raise KeyboardInterrupt."""
    for number in STOPPING:
        signal.signal(number, _note)


def interrupted() -> str | None:
    """The stop signal that came outside of the runner, if one did."""
    return signal.Signals(_came[0]).name if _came else None


def _note(number: int, _: object) -> None:
    _came.append(number)
    raise KeyboardInterrupt
