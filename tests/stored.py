"""Run folders written to disk without a model, for tests of what reads them."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

from rsd.cost import Shape
from rsd.records import EndReason, PolicyRole, Proposal, Record, Role, Usage, dump
from rsd.store import is_error

SHAPES: dict[Role, Shape] = {
    "draft": Shape(parameters=1_000, matmul_parameters=900, layers=1, heads=2, head_dim=4),
    "target": Shape(parameters=7_000, matmul_parameters=6_000, layers=2, heads=4, head_dim=8),
    "prm": Shape(parameters=3_000, matmul_parameters=2_000, layers=1, heads=3, head_dim=5),
}
RSD = {"method": "rsd", "weighting": "binary", "delta": 0.7}
TARGET = {"method": "single", "role": "target", "stepwise": False}


def proposal(
    origin: PolicyRole,
    tokens: int,
    reward: float | None = None,
    accepted: bool | None = None,
    kept: bool | None = None,
    step: int = 0,
    t0: float = 0.0,
    t1: float = 0.0,
    **values: Any,
) -> Proposal:
    """A piece of `tokens`, kept unless it is rejected; one with a reward was scored by the PRM."""
    usage: dict[Role, Usage] = {origin: Usage(generated=tokens, passes=tokens, prompt=10)}
    if reward is not None:
        usage["prm"] = Usage(prompt=10 + tokens, verified=tokens, passes=1)
    given = {"usage": usage, "text": "", "finish": "step", "token_ids": (7,) * tokens, **values}
    return Proposal(
        step=step, origin=origin, accepted=accepted, kept=accepted is not False if kept is None else kept,
        reward=reward, t0=t0, t1=t1, **given,
    )  # fmt: skip


def record(
    question: str,
    *proposals: Proposal,
    sample: int = 0,
    end_reason: EndReason = "eos",
    error: str | None = None,
    invocation: int = 1,
) -> Record:
    """One solution; without a proposal and with `error` it failed."""
    return Record(
        question_id=question, sample=sample, seed=0, invocation=invocation, prompt_tokens=10,
        end_reason="error" if error else end_reason, response="", proposals=proposals, error=error,
    )  # fmt: skip


def manifest(
    benchmark: str = "math500", size: int = 4, name: str = "rsd binary delta=0.7", **values: Any
) -> dict[str, Any]:
    """A manifest of a run of the family ``pair`` with a PRM trained on 20 tokens; `settings` are its method's."""
    settings = values.pop("settings", RSD)
    config = {
        "model": {"name": "pair", "draft": {"path": "/models/small"}, "target": {"path": "org/large"}},
        "prm": {"name": "judge", "context": 20},
    }
    return {
        "name": name,
        "benchmark": benchmark,
        "benchmark_size": size,
        "method": settings["method"],
        "model": "pair",
        "prm": "judge" if settings["method"] == "rsd" else None,
        "identity": {
            "method": settings,
            "sampling": {"temperature": 0.0, "top_p": 1.0},
            "limits": {"total_tokens": 512},
            "seed": 0,
            "tag": None,
        },
        "config": config,
        "shapes": {role: asdict(shape) for role, shape in SHAPES.items()},
        **values,
    }


def store(
    results: Path,
    run_id: str,
    records: Iterable[Record],
    right: Mapping[str, bool] | set[str],
    told: Mapping[str, Any] | None = None,
    invocations: Iterable[Mapping[str, Any]] = (),
) -> Path:
    """Write a run whose solutions are right of the questions `right`, or of those it maps to True; those that it does
    not map are not graded yet. `told`: its manifest."""
    told = told or manifest()
    records = list(records)
    folder = results / "runs" / told["benchmark"] / run_id
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_bytes(orjson.dumps(told))
    (folder / "records.jsonl").write_bytes(b"".join(dump(one) + b"\n" for one in records))
    verdicts = right if isinstance(right, Mapping) else {one.question_id: one.question_id in right for one in records}
    grades = [
        {"question_id": r.question_id, "sample": r.sample, "correct": verdicts[r.question_id], "extracted": "1",
         "reason": "equal" if verdicts[r.question_id] else "different", "answer_class": 0}
        for r in records if not is_error(r) and r.question_id in verdicts
    ]  # fmt: skip
    (folder / "grades.jsonl").write_bytes(b"".join(orjson.dumps(grade) + b"\n" for grade in grades))
    (folder / "invocations.jsonl").write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in invocations))
    return folder
