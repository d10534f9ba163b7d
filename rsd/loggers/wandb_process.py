"""The process that sends one run's metrics to Weights & Biases; `rsd.loggers.wandb` starts it and writes to it.

It reads JSON lines, the run first, from standard input until that ends; a server that is slow or away delays nobody but
this process. Where none answers, the run is kept as files, which ``wandb sync`` sends later.
"""

import json
import sys
import threading
from collections.abc import Mapping
from queue import SimpleQueue
from typing import Any

Line = Mapping[str, Any]


def main() -> None:
    """Send what standard input says."""
    lines: SimpleQueue[Line | None] = SimpleQueue()
    threading.Thread(target=_read, args=(lines,), daemon=True).start()
    about = lines.get()
    if about is None:
        return
    run = _begin(about)
    print("begun", flush=True)
    while (line := lines.get()) is not None:
        if "metrics" in line:
            run.log(dict(line["metrics"]))
        elif line["summary"] is not None:
            run.summary.update(line["summary"])
    run.finish()


def _read(lines: "SimpleQueue[Line | None]") -> None:
    """Take every line as soon as it comes, so that nobody waits to write one."""
    for line in sys.stdin:
        lines.put(json.loads(line))
    lines.put(None)


def _begin(about: Line) -> Any:
    import wandb  # takes seconds, in which lines may come

    settings = {
        "project": about["project"],
        "entity": about["entity"],
        "dir": about["dir"],
        "id": about["manifest"]["run_id"],
        "resume": "allow",
        "config": dict(about["manifest"]),
        "settings": wandb.Settings(silent=True, console="off"),
    }
    try:
        run = wandb.init(**settings, mode=about["mode"])
    except wandb.Error as error:
        print(f"{error}\nKept in {about['dir']}/wandb; wandb sync sends it from there.", file=sys.stderr, flush=True)
        wandb.teardown()  # it still holds the run's id
        run = wandb.init(**settings, mode="offline")
    run.define_metric("*", step_metric="questions")
    return run


if __name__ == "__main__":
    main()
