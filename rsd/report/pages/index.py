"""What the index page shows: every preset's tables and figures, and every run with its trace.

index_of(results, load(results), [part])
"""

import base64
import inspect
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd
from markupsafe import Markup, escape

from rsd.report.apart import told_apart
from rsd.report.cells import NONE, accuracy, flops_cell, flops_unit, percent
from rsd.report.figures import FIGURES
from rsd.report.figures.style import caption
from rsd.report.pages import trace_page
from rsd.report.tables.page import PRINTED, Section
from rsd.report.tables.write import Table

ENDS = ("pdf", "csv")


def part_of(
    results: Path, preset: str, tables: Sequence[Table], figures: Sequence[Path], lacking: Sequence[str]
) -> dict[str, Any]:
    """The values of the template of one preset: its tables, the files of its figures, and lines on what is missing.
    Without any run, only these lines are shown."""
    begun = any(runs for table in tables for section in table.sections for runs in section.runs)
    return {
        "preset": preset,
        "tables": [_table(table, results) for table in tables] if begun else [],
        "figures": [_figure(png, results) for png in figures if png.suffix == ".png" and _drawn(png)] if begun else [],
        "lacking": "\n".join(lacking),
    }


def index_of(results: Path, runs: pd.DataFrame, parts: Sequence[str]) -> dict[str, Any]:
    """The values of the index's template; `parts`: of each preset, as it was rendered."""
    return {
        "parts": [Markup(part) for part in parts],
        "runs": list(_runs(results, runs)),
        "unit": flops_unit(runs["flops_passes"])[0],
    }


def link(page: Path, start: Path) -> str:
    """The address of `page` from a page in the folder `start`, which holds it."""
    return "./" + quote(str(page.relative_to(start)))


def _table(table: Table, results: Path) -> dict[str, Any]:
    files = {path.suffix[1:]: link(path, results) for path in table.files}
    sections = [_section(section, results) for section in table.sections if any(map(any, section.rows))]
    return {
        "name": table.layout.name,
        "title": table.layout.title,
        "labels": len(table.layout.labels),
        "files": files,
        "sections": sections,
    }


def _section(section: Section, results: Path) -> dict[str, Any]:
    groups: list[list[list[Markup]]] = []  # a row, and what belongs to it
    for row, runs in zip(section.rows, section.runs, strict=True):
        pages = {i: link(trace_page(results, Path(run["folder"])), results) for i, run in runs.items()}
        cells = [
            Markup('<a href="{}">{}</a>').format(pages[i], marked(cell)) if i in pages and cell else marked(cell)
            for i, cell in enumerate(row)
        ]
        if row[0] == PRINTED and groups:
            groups[-1].append(cells)
        else:
            groups.append([cells])
    return {
        "title": section.title,
        "about": [marked(text) for text in section.about],
        "headings": section.headings,
        "groups": groups,
    }


def marked(text: str) -> Markup:
    """A sentence of the tables' pages as HTML: *emphasis* and `code` in it are its only markup."""
    shown = re.sub(r"(?<!\\)\*(\S|\S[^*]*[^*\\])\*", r"<em>\1</em>", str(escape(text)))
    return Markup(re.sub(r"`([^`]*)`", r"<code>\1</code>", shown).replace("\\*", "*"))


def _drawn(png: Path) -> bool:
    """Whether a figure shows any number: its data have a row beneath the headings."""
    return png.with_suffix(".csv").read_bytes().count(b"\n") > 1


def _figure(png: Path, results: Path) -> dict[str, Any]:
    module = inspect.getmodule(FIGURES[png.stem][1])
    assert module is not None
    files = {end: link(png.with_suffix(f".{end}"), results) for end in ENDS}
    image = f"data:image/png;base64,{base64.b64encode(png.read_bytes()).decode()}"
    return {"name": png.stem, "caption": caption(module.__doc__), "image": image, "files": files}


def _runs(results: Path, runs: pd.DataFrame) -> Iterator[dict[str, Any]]:
    size = flops_unit(runs["flops_passes"])[1]
    rows = runs.astype(object).where(runs.notna(), None).to_dict("records")
    for row, name in zip(rows, told_apart(rows, shown=("model", "prm")), strict=True):
        samples = "" if row["samples"] <= 1 else f" × {row['samples']}"
        yield {
            "link": link(trace_page(results, Path(row["folder"])), results),
            "benchmark": row["benchmark"],
            "name": name,
            "run_id": row["run_id"],
            "model": row["model"],
            "prm": row["prm"] or NONE,
            "questions": f"{row['questions']:,}/{row['size']:,}{samples}",
            "partial": not row["complete"],
            "accuracy": accuracy(row),
            "acceptance": percent(row["acceptance"]),
            "draft_only": percent(row["draft_only"]) if row["judged"] else NONE,
            "tokens": f"{row['response_tokens']:,.0f}",
            "flops": flops_cell(row["flops_passes"], size),
        }
