"""The notebooks run on the shipped records, and print what they were committed with."""

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.conftest import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def texts(notebook: Any) -> list[tuple[str, str]]:
    """What each cell printed or showed as text; pictures depend on fonts."""
    outputs = [(cell.source, output) for cell in notebook.cells for output in cell.get("outputs", ())]
    return [(source, output.get("text") or output["data"]["text/plain"]) for source, output in outputs]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_prints_what_it_says(path: Path) -> None:
    committed, notebook = (nbformat.read(str(path), as_version=4) for _ in range(2))
    assert texts(committed)
    client = NotebookClient(notebook, timeout=120, coalesce_streams=True, resources={"metadata": {"path": path.parent}})
    client.execute()
    assert texts(notebook) == texts(committed)


def test_there_are_notebooks() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["anatomy", "reproduce"]
