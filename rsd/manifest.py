"""``manifest.json``: what a run is, for those who read its records later::

write_manifest(plan, shapes)
manifest = read_manifest(plan.folder)
"""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from rsd import __version__
from rsd.cost import Shape
from rsd.errors import ModelError
from rsd.identity import identify_policy
from rsd.plan import Plan
from rsd.records import Role
from rsd.store import read_manifest, write_json

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
            "target": _target(plan),
            "config": plan.config.model_dump(mode="json"),
            "shapes": {**before.get("shapes", {}), **{role: asdict(shape) for role, shape in shapes.items()}},
            "versions": {"rsd": __version__, **{name: version(name) for name in LIBRARIES}},
            "created": before.get("created", datetime.now(UTC).isoformat(timespec="seconds")),
        },
    )


def _target(plan: Plan) -> dict[str, Any] | None:
    """The family's target, also where the method does not load it: what a relative cost refers to."""
    if "target" not in plan.config.model.policies:
        return None
    try:
        return identify_policy(plan.config, "target")
    except ModelError:  # the method does not need it
        return None
