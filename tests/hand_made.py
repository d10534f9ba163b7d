"""Fifteen records made by hand, from which every figure can be counted by hand."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from rsd.records import Proposal
from rsd.report import load
from rsd.report.figures.source import Source
from tests.stored import RSD, TARGET, manifest, proposal, record, store

PRESET = {"pair": "pair", "large": "none", "benchmark": "math500", "prm": "judge"}
LEVELS = {"a": "1", "b": "2", "c": "2"}
EXPERIMENTS = {
    "fig3": ["contrast"],
    "fig4": ["rsd-0.7", "target"],
    "fig5": ["rsd-0", "rsd-0.7", "target"],
    "fig6": ["rsd-0.7", "clipping", "target"],
    "figB1": ["rsd-0", "rsd-0.7"],
}
INVOCATION = {
    "invocation": 1, "start": "2026-01-01T00:00:00+00:00", "end": "2026-01-01T00:00:06+00:00", "seconds": 6.0,
    "engine": {}, "devices": {"draft": [0], "target": [0], "prm": [0]},
    "host": "h", "cores": 2, "concurrency": "auto", "questions": 3, "solutions": 3, "records": 3,
    "stopped": None,
}  # fmt: skip


def drafted(tokens: int, reward: float, accepted: bool, **values: Any) -> Proposal:
    return proposal("draft", tokens, reward, accepted, **values)


def contrasted(reward: float, accepted: bool, target: float, same: bool = False, step: int = 0) -> Proposal:
    told = {"target_text": "x" if same else "y", "target_reward": target}
    return drafted(5, reward, accepted, step=step, text="x", diagnostic=told)


def source_in(results: Path) -> Source:
    """Three questions, answered by the target alone and by RSD: at δ = 0 and 0.7, with clipping, and with both steps
    scored."""
    rewritten = {"b": proposal("target", 10, t0=1, t1=3), "c": proposal("target", 20, t0=2, t1=6)}
    steps = {"a": (10, 0.96), "b": (10, 0.56), "c": (20, 0.26)}
    runs = {
        "rsd-0": ({**RSD, "delta": 0.0}, {q: [drafted(*steps[q], True)] for q in steps}, "a"),
        "rsd-0.7": (
            RSD,
            {
                "a": [drafted(*steps["a"], True, t0=0, t1=1)],
                "b": [drafted(*steps["b"], False, t0=0, t1=1), rewritten["b"]],
                "c": [drafted(*steps["c"], False, t0=0, t1=2), rewritten["c"]],
            },
            "ab",
        ),
        "clipping": (
            {"method": "rsd", "weighting": "clipping"},
            {
                "a": [drafted(*steps["a"], True)],
                "b": [drafted(*steps["b"], True)],
                "c": [drafted(*steps["c"], False), rewritten["c"]],
            },
            "a",
        ),
        "target": (TARGET, {q: [proposal("target", n, t0=0, t1=n / 10)] for q, (n, _) in steps.items()}, "ab"),
        "contrast": (
            {**RSD, "score_target": "all"},
            {
                "a": [contrasted(0.9, True, 0.8), contrasted(0.7, True, 0.7000001, same=True, step=1)],
                "b": [contrasted(0.5, False, 0.75), rewritten["b"]],
                "c": [contrasted(0.9, True, 0.9)],
            },
            "ab",
        ),
    }
    for run_id, (settings, answers, right) in runs.items():
        records = [record(question, *proposals) for question, proposals in answers.items()]
        store(results, run_id, records, set(right), manifest(size=3, name=run_id, settings=settings), [INVOCATION])
    stored = partial(load, results)
    return Source(levelled(stored), PRESET, wanted_of(stored), paper=False)


def levelled(stored: Callable[..., pd.DataFrame]) -> Callable[..., pd.DataFrame]:
    """`load`, whose questions have levels though their benchmark is not there."""

    def read(rows: str = "runs", **filters: Any) -> pd.DataFrame:
        frame = stored(rows=rows, **filters)
        return frame.assign(level=frame["question_id"].map(LEVELS)) if rows == "solutions" else frame

    return read


def wanted_of(stored: Callable[..., pd.DataFrame]) -> Callable[[str], pd.DataFrame]:
    runs = stored()
    return lambda experiment: runs[runs["run_id"].isin(EXPERIMENTS.get(experiment, []))]
