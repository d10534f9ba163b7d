"""Which runs of the experiments are not stored, or not whole, and the commands that fill them.

print(*lacking("tiny", index, overrides=(), results=Path("results")), sep="\\n")
"""

import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rsd.report.wanted import Asked, Index, Words, asked, experiments


def lacking(preset: str, index: Index, overrides: Sequence[str], results: Path) -> Iterator[str]:
    """Lines for a preset: how far its experiments are, the command that fills each, and which runs they lack."""
    runs = {name: asked(name, f"preset={preset}", *overrides) for name in experiments()}
    states = {run: _state(run, index) for every in runs.values() for run in every}
    undone = {name: [run for run in every if states[run] != "whole"] for name, every in runs.items()}
    undone = {name: some for name, some in undone.items() if some}
    options = [f"preset={preset}", *overrides, *([] if str(results) == "results" else [f"results_dir={results}"])]
    if set(states.values()) == {"missing"}:
        yield f"  none of its {len(states)} runs is there: {_command(undone, options)}"
        return
    done = sum(state == "whole" for state in states.values())
    yield f"  {done} of its {len(states)} runs are whole." + (" What fills the rest:" if undone else "")
    for name, some in undone.items():
        yield f"    {name + ':':9} {_count(some, len(runs[name]), states)}  {_command([name], options)}"
    begun = [name for name in undone if any(states[run] != "missing" for run in runs[name])]
    by_words: defaultdict[Words, list[str]] = defaultdict(list)
    for run in dict.fromkeys(run for name in begun for run in undone[name]):
        state = states[run]
        by_words[run.words].append(run.benchmark if state == "missing" else f"{run.benchmark} ({state})")
    if by_words:
        yield "    Missing or partial in experiments that have begun:"
    for words, benchmarks in by_words.items():
        yield f"      {' '.join(words)}: {', '.join(benchmarks)}"


def _state(run: Asked, index: Index) -> str:
    """``whole``, ``missing``, or how many questions are answered of how many."""
    found = index.find(run)
    if found is None:
        return "missing"
    return "whole" if found["complete"] else f"{found['questions']}/{found['size']}"


def _count(undone: Sequence[Asked], every: int, states: dict[Asked, str]) -> str:
    missing = sum(states[run] == "missing" for run in undone)
    partial = f", {len(undone) - missing} partial" if missing < len(undone) else ""
    return f"{missing} of {every} missing{partial}"


def _command(names: Iterable[str], options: Sequence[str]) -> str:
    return shlex.join(["python", "-m", "rsd.run", "-m", f"+experiment={','.join(names)}", *options])
