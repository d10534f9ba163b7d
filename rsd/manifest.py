"""``manifest.json``: what a run is, for those who read its records later::

write_manifest(plan, shapes, remarks)
manifest = read_manifest(plan.folder)
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from huggingface_hub import try_to_load_from_cache

from rsd import __version__
from rsd.cost import Shape
from rsd.errors import ModelError
from rsd.identity import identify_policy, local_folder
from rsd.models import source_of
from rsd.plan import Plan
from rsd.records import Role
from rsd.store import read_manifest, write_json

LIBRARIES = ("torch", "transformers", "math-verify")


def write_manifest(plan: Plan, shapes: Mapping[Role, Shape], remarks: Sequence[str]) -> None:
    """Describe the run. `shapes` are those of the models that this invocation loaded, `remarks` what is
    unexpected about them; models that it did not need keep what an earlier one said.

    Raises ModelError when the hub has other weights by now than the run began with.
    """
    path = plan.folder / "manifest.json"
    before = read_manifest(plan.folder) if path.exists() else {}
    revisions = _revisions(plan, shapes)
    for role, (key, commit) in revisions.items():
        began = before.get("revisions", {}).get(role, commit)
        if commit != began:
            raise ModelError(
                f"{key}: this run began with commit {began} of the model, and the hub has {commit} now; begin a new "
                f"run, with tag=NAME or, of the old commit, with {key}={began}."
            )
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
            "revisions": before.get("revisions", {}) | {role: commit for role, (_, commit) in revisions.items()},
            "remarks": list(remarks) if shapes else before.get("remarks", []),
            "shapes": {**before.get("shapes", {}), **{role: asdict(shape) for role, shape in shapes.items()}},
            "versions": {"rsd": __version__, **{name: version(name) for name in LIBRARIES}},
            "created": before.get("created", datetime.now(UTC).isoformat(timespec="seconds")),
        },
    )


def _revisions(plan: Plan, loaded: Iterable[Role]) -> dict[Role, tuple[str, str]]:
    """The key that sets its revision and the commit that it was loaded from, of each model from the hub."""
    found: dict[Role, tuple[str, str]] = {}
    for role in loaded:
        source = source_of(plan, role)
        if local_folder(source.path, source.key) is None:
            cached = try_to_load_from_cache(source.path, "config.json", revision=source.revision)
            if isinstance(cached, str):
                found[role] = source.key.removesuffix("path") + "revision", Path(cached).parent.name
    return found


def _target(plan: Plan) -> dict[str, Any] | None:
    """The family's target, also where the method does not load it: what a relative cost refers to."""
    if "target" not in plan.config.model.policies:
        return None
    try:
        return identify_policy(plan.config, "target")
    except ModelError:  # the method does not need it
        return None
