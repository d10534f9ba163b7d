"""A run's FLOPs relative to the target model alone, where a run of the target alone exists.

ratios = relative_to_target(folder, records.values())   # {"passes": 0.61, …}, or None
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rsd.cost import ACCOUNTINGS, Accounting, Shape, add, flops_by_role, ratio
from rsd.manifest import read_manifest
from rsd.records import Record
from rsd.store import is_error, read_records

SAME = ("sampling", "limits", "step", "benchmark", "seed")  # parts of the identity that both runs must share


def relative_to_target(folder: Path, records: Iterable[Record]) -> dict[Accounting, float | None] | None:
    """FLOPs of `records`, of the run in `folder`, over those of the target alone on the same questions.

    The baseline is a run beside `folder` of ``method=single method.role=target`` (not stepwise where
    both exist) under the same model, sampling, limits, seed and data. Only samples that both runs
    answered count. None when there is no such run.
    """
    manifest = read_manifest(folder)
    answered = {record.key: record for record in records if not is_error(record)}
    if _is_target_alone(manifest["identity"]):
        return dict.fromkeys(ACCOUNTINGS, 1.0)
    others = {path.parent: read_manifest(path.parent) for path in sorted(folder.parent.glob("*/manifest.json"))}
    baselines = [path for path, other in others.items() if _is_baseline(manifest, other)]
    for baseline in sorted(baselines, key=lambda path: bool(others[path]["identity"]["method"]["stepwise"])):
        alone = {key: record for key, record in read_records(baseline).items() if not is_error(record)}
        common = answered.keys() & alone.keys()
        if common:
            own_cost = _cost([answered[key] for key in common], manifest)
            other_cost = _cost([alone[key] for key in common], others[baseline])
            return {accounting: ratio(own_cost[accounting], other_cost[accounting]) for accounting in ACCOUNTINGS}
    return None


def _cost(records: Iterable[Record], manifest: Mapping[str, Any]) -> dict[Accounting, int | None]:
    shapes = {role: Shape(**shape) for role, shape in manifest["shapes"].items()}
    roles = flops_by_role((proposal for record in records for proposal in record.proposals), shapes)
    return {accounting: add(*roles[accounting].values()) for accounting in ACCOUNTINGS}


def _is_target_alone(identity: Mapping[str, Any]) -> bool:
    return bool(identity["method"]["method"] == "single" and identity["method"]["role"] == "target")


def _is_baseline(manifest: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    own, alone = manifest["identity"], other["identity"]
    if not _is_target_alone(alone):
        return False
    same_target = own["models"].get("target", alone["models"]["target"]) == alone["models"]["target"]
    return same_target and manifest["model"] == other["model"] and all(own[key] == alone[key] for key in SAME)
