"""The notebooks run on the shipped records, and print what they were committed with."""

import shutil
from pathlib import Path
from typing import Any

import nbformat
import orjson
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


def test_a_notebook_runs_on_a_folder_of_more_runs(tmp_path: Path) -> None:
    """Of one method and threshold there may be several: with another PRM, or another pair of models."""
    shutil.copytree(ROOT / "results" / "shipped" / "runs", tmp_path / "runs")
    for name, other in (("rsd-binary-delta=0.7-*", {"prm": "tiny_s"}), ("target-alone-*", {"model": "tiny_l"})):
        (run,) = (tmp_path / "runs" / "tiny_chain").glob(name)
        copy = shutil.copytree(run, run.with_name(f"{run.name}-other"))
        manifest = orjson.loads((copy / "manifest.json").read_bytes())
        (copy / "manifest.json").write_bytes(orjson.dumps({**manifest, **other}))
    (path,) = (path for path in NOTEBOOKS if path.stem == "reproduce")
    committed, notebook = (nbformat.read(str(path), as_version=4) for _ in range(2))
    for cell in notebook.cells:
        cell.source = cell.source.replace("../results/shipped", str(tmp_path))
    NotebookClient(
        notebook, timeout=120, coalesce_streams=True, resources={"metadata": {"path": path.parent}}
    ).execute()
    printed = [text for _, text in texts(notebook) if "by compare_paired" in text or "cross-fitted: " in text]
    assert len(printed) == 2
    assert set(printed) <= {text for _, text in texts(committed)}


def test_there_are_notebooks() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["anatomy", "reproduce"]
