"""``manifest.json``: what a run is, for those who read its records later.

write_manifest(plan, shapes)
manifest = read_manifest(plan.folder)
"""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson

from rsd import __version__
from rsd.cost import Shape
from rsd.plan import Plan
from rsd.records import Role
from rsd.store import write_json

LIBRARIES = ("torch", "transformers", "math-verify")


def write_manifest(plan: Plan, shapes: Mapping[Role, Shape]) -> None:
    """Describe the run. `shapes` are those of the models that this invocation loaded; models that it
    did not need keep the shapes of an earlier one."""
    path = plan.folder / "manifest.json"
    before = read_manifest(plan.folder) if path.exists() else {}
    write_json(
        path,
        {
            "run_id": plan.folder.name,
            "name": plan.method.name,
            "method": plan.method.settings["method"],
            "model": plan.config.model.name,
            "prm": plan.config.prm.name if plan.adapter is not None else None,
            "benchmark": plan.identity["benchmark"]["name"],
            "benchmark_size": plan.size,
            "identity": plan.identity,
            "config": plan.config.model_dump(mode="json"),
            "shapes": {**before.get("shapes", {}), **{role: asdict(shape) for role, shape in shapes.items()}},
            "versions": {"rsd": __version__, **{name: version(name) for name in LIBRARIES}},
            "created": before.get("created", datetime.now(UTC).isoformat(timespec="seconds")),
        },
    )


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of the run in `folder`."""
    manifest: dict[str, Any] = orjson.loads((folder / "manifest.json").read_bytes())
    return manifest
