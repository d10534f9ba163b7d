"""Pages for a browser: ``results/index.html`` with every table, figure and run, and for each run
``results/traces/<benchmark>/<run>.html``, which shows what it did with each question.

`rsd.report.pages.write` writes them. Each is one file that needs no network.
"""

from pathlib import Path
from urllib.parse import quote


def trace_page(results: Path, folder: Path) -> Path:
    """Where the trace page of the run in `folder` lies."""
    return results / "traces" / folder.parent.name / f"{folder.name}.html"


def decided_by(page: Path, baseline: str, shown: str) -> str:
    """The address of a trace page where it shows the questions that its run has ``won`` or ``lost`` against the run
    named `baseline`."""
    return f"{page.resolve().as_uri()}#?show={shown}&against={quote(baseline, safe='')}"
