"""How far stored runs are, from their own files; of those that were given to Slurm jobs, the scheduler is asked too.

python -m rsd.status                                # every run under results/
python -m rsd.status tiny_chain failed              # those that all of the words occur in
python -m rsd.status benchmark=math500 delta=0.7 --results /scratch/results
"""

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from rsd.errors import StoreError
from rsd.report.cells import NONE, percent
from rsd.state import State, stored_state
from rsd.store import read_manifest
from rsd.sweep.table import print_failures, print_states


def state_in(folder: Path) -> State:
    """The state of the run in `folder`; what cannot be read of it is its error, and nothing else is told then."""
    try:
        state = stored_state(folder)
        if state.done + state.errors or (folder / "manifest.json").exists():  # one that failed before has neither
            read_manifest(folder)
        return state
    except StoreError as error:
        return State(done=0, errors=0, asked=0, error=str(error))


def words_of(folder: Path, state: State) -> str:
    """What filters are looked for in: ``benchmark=… status=… model=… prm=…`` and the run's name."""
    words = [f"benchmark={folder.parent.name}", f"status={state.name}", folder.name]
    manifest = _manifest(folder)
    told = [*(f"{key}={manifest.get(key)}" for key in ("model", "prm")), manifest["name"]] if manifest else []
    return " ".join([*words, *told])


def questions_in(folder: Path, state: State) -> str:
    """How many of the benchmark's questions have an answer, whatever was asked for last; a dash before the first, and
    where the run cannot be read."""
    manifest = _manifest(folder) if state.asked else {}
    return f"{state.questions:,}/{manifest['benchmark_size']:,}" if manifest else NONE


def _manifest(folder: Path) -> dict[str, Any]:
    """The run's manifest; empty where it failed before there was one."""
    try:
        return read_manifest(folder)
    except StoreError:
        return {}


def accuracy_in(folder: Path, state: State) -> str:
    """The accuracy in ``summary.json``, which the last invocation that ended has written; a dash before it has, where
    the run lacks some of what it was asked for by now, and where its files cannot be read."""
    tried = state.done + state.errors
    if not tried or tried < state.asked:
        return NONE
    try:
        summary = orjson.loads((folder / "summary.json").read_bytes())
        return percent(summary["accuracy"] if summary["records"] >= tried else None)
    except (OSError, ValueError, LookupError, TypeError):
        return NONE


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return the exit status, 2 where there are no runs."""
    parser = argparse.ArgumentParser(prog="python -m rsd.status", description=__doc__.splitlines()[0])
    parser.add_argument(
        "filters", nargs="*", metavar="WORD", help="show runs with all of these words, as status=failed"
    )
    parser.add_argument("--results", type=Path, default=Path("results"), metavar="FOLDER", help="default: %(default)s")
    options = parser.parse_args(arguments)
    folders = sorted(path for path in (options.results / "runs").glob("*/*") if path.is_dir())
    if not folders:
        print(f"There are no runs in {options.results / 'runs'}; --results names another folder.", file=sys.stderr)
        return 2
    states = {folder: state_in(folder) for folder in folders}
    shown = {f: s for f, s in states.items() if all(word in words_of(f, s) for word in options.filters)}
    if not shown:
        print(f"None of {len(folders)} runs has the words {' '.join(options.filters)}.", file=sys.stderr)
        return 0
    named = {f"{folder.parent.name}/{folder.name}": state for folder, state in shown.items()}
    cells = [[questions_in(folder, state), accuracy_in(folder, state)] for folder, state in shown.items()]
    rows = [(name, state, own) for (name, state), own in zip(named.items(), cells, strict=True)]
    print_states(rows, ["questions", "accuracy"])
    for name, state in named.items():
        if state.holder:
            print(f"{name}: {state.holder} works on it")
    print_failures(named.items())
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # whoever reads the output may have read enough, as head does
    sys.exit(main())
