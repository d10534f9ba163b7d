"""Runs of every method on questions with formulas and with hostile texts, for tests of pages."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

from rsd.benchmarks.jsonl import JsonLinesBenchmark, data_hash
from rsd.records import Proposal, Record, Role, Usage
from rsd.report import load
from rsd.report.pages.write import write_index, write_traces
from tests.stored import RSD, TARGET, manifest, proposal, record, store

ATTACK = "</script><script>document.title='attacked'</script><img src=x onerror=\"document.title='attacked'\">"
LINK = r"$\href{javascript:document.title='attacked'}{x^2}$ and $\text{<script>document.title='attacked'</script>}$"
BROKEN = "<b><table><!-- <i> ]]> &lt; \u2028 \x00"
QUESTIONS = [
    {"question": r"What is $\frac{1}{2}+\frac{1}{3}$?", "answer": r"\frac{5}{6}"},
    {"question": f"Attack {ATTACK}", "answer": ATTACK},
    {"question": f"Link {LINK}", "answer": "javascript:document.title='attacked'"},
    {"question": f"Broken {BROKEN}", "answer": "1"},
]
NAME = f"rsd {ATTACK}"
OWN = '"><script>document.title=1<'  # a folder of somebody else's making


def benchmark(folder: Path, rows: Iterable[Mapping[str, str]]) -> tuple[dict[str, Any], list[str]]:
    """What a manifest says of a benchmark with these rows, and its question_ids."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "questions.jsonl"
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    problems = JsonLinesBenchmark(name="asked", path=str(path)).problems()
    node = {"_target_": "rsd.benchmarks.jsonl.JsonLinesBenchmark", "name": "asked", "path": str(path)}
    return {"node": node, "data": data_hash(problems)}, [problem.question_id for problem in problems]


def told(asked: Mapping[str, Any], size: int, name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest of a run of that benchmark."""
    made = manifest("asked", size, name, settings=settings)
    made["config"]["benchmark"] = asked["node"]
    made["identity"]["benchmark"] = {"name": "asked", "data": asked["data"]}
    return made


def rsd_steps(first: str, last: str) -> list[Proposal]:
    """A step that was kept, one that the target replaced, and an end."""
    return [
        proposal("draft", 10, 0.9, True, text=f"{first}\n\n", omega=1.0),
        proposal("draft", 12, 0.2, False, step=1, text="Wrong way.\n\n", omega=0.0),
        proposal("target", 15, step=1, text="Right way.\n\n"),
        proposal("draft", 9, 0.8, True, step=2, text=last, omega=1.0, finish="eos"),
    ]


def runs_in(results: Path) -> list[str]:
    """Write the runs, and return the question_ids of the benchmark."""
    asked, names = benchmark(results / "data", QUESTIONS)
    size = len(names)

    def write(run_id: str, name: str, settings: Mapping[str, Any], records: list[Record], right: set[str]) -> None:
        store(results, run_id, records, right, told(asked, size, name, settings))

    texts = [r"So $x_1 \le 2$.", ATTACK, LINK, BROKEN]
    lasts = [r"The answer is \boxed{\frac{5}{6}}.", f"\\boxed{{{ATTACK}}}", LINK, BROKEN]
    answers = {q: rsd_steps(text, last) for q, text, last in zip(names, texts, lasts, strict=True)}
    write(OWN, NAME, RSD, [record(q, *steps) for q, steps in answers.items()], {*names[:2]})
    whole = {q: f"{text}\n\n{text}" for q, text in zip(names, texts, strict=True)}
    alone = [record(q, proposal("target", 40, text=text, finish="eos")) for q, text in whole.items()]
    alone.append(
        record(ATTACK, proposal("target", 3, text="Asked by nobody."))
    )  # a question_id of somebody else's making
    write("target", "target alone", TARGET, alone, {names[0], names[2]})
    drawn = [record(q, proposal("draft", 5, text=text), sample=i) for q, text in whole.items() for i in range(3)]
    write("samples", "draft alone", {"method": "single", "role": "draft", "stepwise": False}, drawn, {names[0]})
    other = proposal("draft", 5, 0.1, kept=False, diagnostic={"sample": 0, "answer_class": 1})
    chosen = {"diagnostic": {"sample": 1, "answer_class": 0}, "candidate": 1}
    picked = [record(q, other, proposal("draft", 5, 0.3, text=text, **chosen)) for q, text in whole.items()]
    best = {"method": "best_of_n", "role": "draft", "n": 3, "aggregate": "last"}
    write("best", "best-of-3 draft last", best, picked, {names[0]})
    ways = [proposal("draft", 4, 0.1 * i, kept=i == 3, candidate=i, text=f"Way {i}.\n\n") for i in range(4)]
    ends = [proposal("draft", 4, 0.2 * i, kept=i == 1, candidate=i, step=1, text=f"End {i}.") for i in range(2)]
    search = {"method": "beam", "width": 2, "expansion": 2, "generator": "draft"}
    write("beam", "beam 2x2 draft", search, [record(q, *ways, *ends) for q in names], {names[0]})
    ahead: dict[Role, Usage] = {
        "target": Usage(generated=20, prompt=9, drafted=16, accepted=12, verified=1, passes=5),
        "draft": Usage(generated=16, passes=16),
    }
    assisted = [record(q, proposal("target", 20, text="In one go.", usage=ahead)) for q in names[:-1]]
    speculative = {"method": "speculative", "num_speculative_tokens": 4}
    failed = record(names[-1], error=f"OSError: {ATTACK}")
    write("speculative", "speculative@4", speculative, [*assisted, failed], {names[0]})
    return names


def pages_in(results: Path) -> list[Path]:
    """Write the pages of all runs, without tables."""
    return [write_index(results, load(results), []), *write_traces(results, load(results))]
