"""Makes this project's reward models known to vLLM, in every process that vLLM starts.

vLLM calls `register` through the entry point ``vllm.general_plugins`` (pyproject.toml).
"""

import ctypes
import multiprocessing
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # sys/prctl.h
STARTED_BY = "RSD_STARTED_BY"  # environment variable with the process that a server is to end with

# Architecture of a checkpoint -> class in `rsd.engines.vllm_models` that serves it.
SERVED_AS = {
    "Qwen2ForPrmModel": "LastTokenQwen2ForPrmModel",
    "Qwen2ForProcessRewardModel": "LastTokenQwen2ForProcessRewardModel",
}


def register() -> None:
    """Register the classes by name, under names of their own: vLLM imports one when a model needs it.

    In a process that vLLM started also see to it that it ends with the one that started it: after a SIGKILL it
    would keep its GPU for good.
    """
    from vllm import ModelRegistry

    end_with_parent()
    for name in SERVED_AS.values():
        ModelRegistry.register_model(name, f"rsd.engines.vllm_models:{name}")


def end_with_parent() -> None:
    """Let a process that ``multiprocessing`` or ``rsd.serve`` started be killed as soon as that which started it is
    gone. A command that a server starts in its turn, as vLLM does to look at a model's class, is none of these."""
    parent = multiprocessing.parent_process()
    told = os.environ.pop(STARTED_BY, None)
    started_by = told if parent is None else parent.pid
    if started_by is not None and sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != int(started_by):  # it was gone before this was set
            os._exit(1)
