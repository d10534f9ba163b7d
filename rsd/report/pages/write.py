"""Writing the pages, each from its template; trace pages only when something that they show has changed.

write_part(results, "tiny", tables, figures, lacking)
write_traces(results, load(results))
write_index(results, load(results), ["paper", "tiny"])

python -m rsd.report.pages.write results    # the trace pages alone
"""

import base64
import gc
import hashlib
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from rsd.errors import RSDError
from rsd.records import Problem
from rsd.report.apart import told_apart
from rsd.report.cache import StoredRun, read_run, tell
from rsd.report.cells import accuracy, percent
from rsd.report.figures import style
from rsd.report.frames import load
from rsd.report.pages import trace_page
from rsd.report.pages.index import index_of, link, part_of
from rsd.report.pages.traces import Shares, rounded, shares, traces
from rsd.report.runs import target_alone
from rsd.report.tables.write import Table
from rsd.store import create_folder, read_manifest, write_file

HERE = Path(__file__).parent
HEAD = 500  # bytes within which a page names its source
COLOURS = {
    "draft": style.DRAFT, "target": style.TARGET, "rsd": style.RSD, "right": style.RIGHT, "wrong": style.WRONG,
}  # fmt: skip


def write_part(
    results: Path, preset: str, tables: Sequence[Table], figures: Sequence[Path], lacking: Sequence[str]
) -> None:
    """Keep what the index shows of a preset, for whichever process writes the index."""
    part = _templates().get_template("part.html").render(**part_of(results, preset, tables, figures, lacking))
    write_file(create_folder(results / "cache" / "pages") / f"{preset}.html", part.encode())


def write_index(results: Path, runs: pd.DataFrame, presets: Sequence[str]) -> Path:
    """Write the index, with the parts of those `presets` that there are, first those that have tables. `runs`:
    ``load(rows="runs")``."""
    pages = [results / "cache" / "pages" / f"{preset}.html" for preset in presets]
    parts = [page.read_text("utf-8") for page in pages if page.exists()]
    index = results / "index.html"
    write_file(index, _rendered("index", **index_of(results, runs, sorted(parts, key=lambda p: "<table" not in p))))
    return index


def write_traces(results: Path, runs: pd.DataFrame) -> list[Path]:
    """Write the trace pages that are not up to date, benchmark by benchmark; return the paths of all."""
    pages = {run: trace_page(results, run) for run in map(Path, runs["folder"])}
    questions = Problems()
    benchmarks: defaultdict[Path, list[Path]] = defaultdict(list)
    for folder in pages:
        benchmarks[folder.parent].append(folder)
    for folders in benchmarks.values():
        stored = {folder: read_run(folder) for folder in folders}
        verdicts = {folder: shares(run.solutions.to_pandas()) for folder, run in stored.items()}
        names = _names(list(stored.values()))
        for folder, run in stored.items():
            others = {other: stored[other].row for other in stored if other != folder}
            _write_trace(run, pages, questions.of(folder), verdicts, names, _usual_first(run.row, others))
    return list(pages.values())


def _write_trace(
    run: StoredRun,
    pages: Mapping[Path, Path],
    problems: Mapping[str, Problem],
    verdicts: Mapping[Path, Shares],
    named: Mapping[Path, Mapping[str, Any]],
    others: Mapping[Path, Mapping[str, Any]],
) -> None:
    """Write a page that is not up to date; where only other runs have changed, with the traces that it holds. `others`:
    the rows of these, in the order in which the page offers them."""
    page = pages[run.folder]
    drawn = _drawn(run.row, others)
    asked = [(name, problem.question, problem.answer) for name, problem in problems.items()]
    own = _digest(_code(), run.key, run.row, asked)
    compared = _digest([named[other] for other in others], [verdicts[other] for other in others], str(drawn))
    before = page.read_bytes() if page.exists() else b""
    if f"{own} {compared}".encode() in before[:HEAD]:
        return
    if own.encode() in before[:HEAD]:
        summary, lines = orjson.loads(_held(before, b"summary")), _held(before, b"lines")
    else:
        summary, told = traces(run, problems)
        lines = b"\n".join(told)
    names = [name for name, *_ in summary["questions"]]
    summary["others"] = [
        {
            **named[other],
            "page": link(pages[other], page.parent),
            "right": [rounded(verdicts[other].get(name)) for name in names],
        }
        for other in others
    ]
    summary["drawn"] = link(pages[drawn], page.parent) if drawn else None
    create_folder(page.parent)
    write_file(
        page,
        _rendered(
            "trace",
            source=f"{own} {compared}",
            run=run.row,
            about=list(_about(run.row)),
            summary=_embedded(orjson.dumps(summary)),
            lines=_embedded(lines),
        ),
    )


def _digest(*parts: Any) -> str:
    return hashlib.sha256(orjson.dumps(parts, default=str)).hexdigest()


def _held(page: bytes, name: bytes) -> bytes:
    """The JSON that a page holds under `name`."""
    return page.split(b'id="%s">' % name, 1)[1].split(b"</script>", 1)[0]


def _names(runs: Sequence[StoredRun]) -> dict[Path, dict[str, Any]]:
    """What each of a benchmark's runs is called on the others' pages."""
    names = told_apart([run.row for run in runs], shown=("model", "prm"))
    return {
        run.folder: {"run": run.folder.name, "name": name, "model": run.row["model"], "prm": run.row["prm"]}
        for run, name in zip(runs, names, strict=True)
    }


def _usual_first(row: Mapping[str, Any], others: Mapping[Path, Mapping[str, Any]]) -> dict[Path, Mapping[str, Any]]:
    """`others` in their order, but that which a run is usually compared with first: the target of its family alone."""

    def place(folder: Path) -> tuple[bool, ...]:
        other = others[folder]
        return not target_alone(other), *(other[key] != row[key] for key in ("model", "seed", "limits"))

    return {folder: others[folder] for folder in sorted(others, key=place)}


def _drawn(row: Mapping[str, Any], others: Mapping[Path, Mapping[str, Any]]) -> Path | None:
    """The run whose samples a selection chose among, where it is stored: that of the most samples."""
    shared = ("model", "role", "temperature", "top_p", "seed", "tag", "limits")
    rows = others if row["method"] in ("majority", "best_of_n") else {}
    fitting = [
        folder
        for folder, other in rows.items()
        if other["method"] == "single" and not other["stepwise"] and all(row[key] == other[key] for key in shared)
    ]
    return max(fitting, key=lambda folder: rows[folder]["samples"], default=None)


def _about(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What a run is and what came out, in pairs of words."""
    yield "benchmark", f"{row['benchmark']}, {row['questions']:,} of {row['size']:,} questions"
    models = " → ".join(f"{row[role]}" for role in ("draft", "target") if row[role])
    yield "model", f"{row['model']} ({models})" if models else str(row["model"])
    if row["prm"]:
        yield "PRM", row["prm"]
    if row["temperature"] is not None:
        yield "sampling", f"temperature {row['temperature']:g}, top-p {row['top_p']:g}, seed {row['seed']}"
    if row["accuracy"] is not None:
        yield "accuracy", accuracy(row)
    if row["judged"]:
        yield "steps accepted", f"{percent(row['acceptance'])}, draft only {percent(row['draft_only'])}"


class Problems:
    """The questions of benchmarks, each read once."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, Problem]] = {}

    def of(self, folder: Path) -> dict[str, Problem]:
        """{question_id: problem} of what the run in `folder` answered, in the benchmark's order; empty, with one line
        on stderr, where it cannot be read."""
        from rsd.grade import problems_of  # takes the whole configuration along

        manifest = read_manifest(folder)
        key = str(manifest["identity"].get("benchmark"))
        if key not in self._known:
            try:
                found = problems_of(folder)
            except (RSDError, KeyError) as error:
                tell(f"{manifest['benchmark']}: traces without questions, since they cannot be read: {error}")
                return {}
            self._known[key] = {problem.question_id: problem for problem in found}
        return self._known[key]


def _embedded(data: bytes) -> Markup:
    """JSON within a page: no text of it ends the element that holds it."""
    return Markup(data.replace(b"<", b"\\u003c").decode())


def _rendered(name: str, **values: Any) -> bytes:
    """The page of a template, with its style and script, and a policy that allows nothing else to run or load."""
    script = _asset(f"{name}.js")
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{allowed}'"
    colours = " ".join(f"--{role}: {colour};" for role, colour in COLOURS.items())
    page = _templates().get_template(f"{name}.html").render(
        policy=policy, style=Markup(f":root {{ {colours} }}\n{_asset('style.css')}"), script=Markup(script), **values
    )  # fmt: skip
    return page.encode()


def _asset(name: str) -> str:
    return (HERE / "templates" / name).read_text(encoding="utf-8")


@cache
def _templates() -> Environment:
    return Environment(
        loader=PackageLoader("rsd.report.pages"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip


@cache
def _code() -> str:
    """What pages are made by: with any change of it they are written anew."""
    return "".join(
        path.read_text(encoding="utf-8")
        for path in sorted(HERE.rglob("*"))
        if path.suffix in (".py", ".html", ".css", ".js")
    )


if __name__ == "__main__":
    gc.disable()  # nothing here refers to itself, and looking for what does takes a third of the time
    write_traces(Path(sys.argv[1]), load(sys.argv[1]))
