"""The signals that end a run: nothing is recorded after one of them.

    listen()                 # each of them then raises KeyboardInterrupt; the runner handles its own
    interrupted()            # whether one came; a library may have made an error of its own of the exception

Slurm announces with SIGUSR1 or SIGUSR2, as it is told, that a job is about to be preempted or to run out of time.
"""

import signal

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
_came: list[int] = []


def listen() -> None:
    """Let a stop signal that comes outside of the runner raise KeyboardInterrupt."""
    for number in STOPPING:
        signal.signal(number, _note)


def interrupted() -> bool:
    """Whether a stop signal came outside of the runner."""
    return bool(_came)


def _note(number: int, _: object) -> None:
    _came.append(number)
    raise KeyboardInterrupt
