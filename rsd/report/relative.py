"""A run's FLOPs relative to the target model alone, where a run of the target alone exists::

ratios = relative_to_target(folder, records.values())   # {"passes": 0.61, …}, or None
"""

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rsd.cost import ACCOUNTINGS, Accounting, Shape, add, flops_by_role, ratio
from rsd.errors import StoreError
from rsd.records import Record
from rsd.store import is_error, read_manifest, read_records

logger = logging.getLogger(__name__)

SAME = ("limits", "step", "benchmark", "seed")  # parts of the identity that both runs must share


def relative_to_target(folder: Path, records: Iterable[Record]) -> dict[Accounting, float | None] | None:
    """FLOPs of `records`, of the run in `folder`, over those of the target alone on the same questions.

    The baseline is a run beside `folder` of ``method=single method.role=target`` (not stepwise where
    both exist) under the same model, limits, seed and data, and under the same sampling or, for lack of
    such a run, greedy. Only samples that both runs answered count. None when there is no such run.
    """
    manifest = read_manifest(folder)
    answered = {record.key: record for record in records if not is_error(record)}
    if _is_target_alone(manifest["identity"]):
        return dict.fromkeys(ACCOUNTINGS, 1.0)
    baselines = {}
    for path in sorted(folder.parent.glob("*/manifest.json")):
        try:
            other = read_manifest(path.parent)
            if _is_baseline(manifest, other):
                baselines[path.parent] = other, read_records(path.parent)
        except StoreError as error:  # another run's fault does not concern this one
            logger.warning("Passed over as a baseline: %s", error)

    def preference(run: tuple[dict[str, Any], Any]) -> tuple[bool, bool]:
        identity = run[0]["identity"]
        return identity["sampling"] != manifest["identity"]["sampling"], identity["method"]["stepwise"]

    for other, records_alone in sorted(baselines.values(), key=preference):
        alone = {key: record for key, record in records_alone.items() if not is_error(record)}
        common = answered.keys() & alone.keys()
        if common:
            own_cost = _cost([answered[key] for key in common], manifest)
            other_cost = _cost([alone[key] for key in common], other)
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
    sampling = own["sampling"], {**alone["sampling"], "temperature": 0.0}
    same = all(own[key] == alone[key] for key in SAME) and alone["sampling"] in sampling
    return _is_target_alone(alone) and alone["models"]["target"] == manifest.get("target") and same
