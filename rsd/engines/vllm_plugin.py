"""Makes this project's reward models known to vLLM, in every process that vLLM starts, and lets none outlive a run.

vLLM calls `no_platform` and `register` through the entry points ``vllm.platform_plugins`` and ``vllm.general_plugins``
(pyproject.toml).
"""

import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

PR_SET_PDEATHSIG = 1  # sys/prctl.h
STARTED_BY = "RSD_STARTED_BY"  # environment variable with the process that another one is to end with

# Architecture of a checkpoint -> class in `rsd.engines.vllm_models` that serves it.
SERVED_AS = {
    "Qwen2ForPrmModel": "LastTokenQwen2ForPrmModel",
    "Qwen2ForProcessRewardModel": "LastTokenQwen2ForProcessRewardModel",
}


def register() -> None:
    """Register the classes by name, under names of their own: vLLM imports one when a model needs it."""
    from vllm import ModelRegistry

    end_with_parent()  # with VLLM_TARGET_DEVICE=cpu vLLM asks for no platforms
    for name in SERVED_AS.values():
        ModelRegistry.register_model(name, f"rsd.engines.vllm_models:{name}")


def no_platform() -> None:
    """Let a process of vLLM's end with the one that started it. vLLM asks for further platforms, of which this is none,
    as it is imported; only later an engine waits for its configuration, for minutes where nobody is left to send it."""
    end_with_parent()


@contextmanager
def ending_with_this(**environment: str) -> Iterator[None]:
    """Let the processes that vLLM starts in here, and those that they start, not outlive this one: after a SIGKILL they
    would keep their GPUs for good. `environment`: what else they read, and this one has not."""
    added = {STARTED_BY: str(os.getpid()), **environment}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


def end_with_parent() -> None:
    """Let this process be killed as soon as the one that `STARTED_BY` names is gone, where it is that one's child, and
    its own children with it in turn. A command that such a process starts by way of another just runs."""
    told, own = os.environ.get(STARTED_BY), str(os.getpid())
    if told in (None, own) or sys.platform != "linux":
        return
    os.environ[STARTED_BY] = own
    if os.getppid() == int(told):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if int(told) not in [process.pid for process in psutil.Process().parents()]:  # it was gone before this was set
        os._exit(1)
