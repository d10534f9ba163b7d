"""Table 1: the weighting functions as the paper prints them and as they are implemented here.

    lines = weightings()    # [{"name_used_in_Fig6": "Constant", …, "weighting": "constant", "omega(0.7)": "0.6"}, …]

The values of ω are those that the code gives, under the settings of ``conf/weighting/`` and δ = 0.7; where ω reads
likelihoods, for a step that draft and target find equally likely.
"""

from dataclasses import asdict
from inspect import getdoc
from typing import Any

from hydra.core.global_hydra import GlobalHydra

from rsd.config import build
from rsd.report.paper import numbers
from rsd.report.wanted import composed
from rsd.weighting import Evidence

REWARDS = (0.0, 0.25, 0.5, 0.6, 0.7, 0.75, 1.0)


def weightings() -> list[dict[str, str]]:
    """One row for each weighting function, those of the paper's Table 1 first."""
    printed = {row["name_used_in_Fig6"].lower(): row for row in numbers("table1")}
    known = GlobalHydra.instance().config_loader().get_group_options("weighting")
    return [_row(name, printed.get(name, {})) for name in sorted(known, key=lambda name: _place(name, list(printed)))]


def _place(name: str, printed: list[str]) -> int:
    return printed.index(name) if name in printed else len(printed)


def _row(name: str, printed: dict[str, str]) -> dict[str, str]:
    weighting: Any = build(composed((f"weighting={name}",)).config.weighting, "weighting")
    said = (getdoc(weighting) or "").partition("\n")[0].partition(";")[0].rstrip(".")
    own = {
        "weighting": name,
        "implemented": said,
        "parameters": ", ".join(f"{key}={_text(value)}" for key, value in asdict(weighting).items()),
        "reads": " and ".join(
            word
            for word, reads in (("reward", weighting.reads_reward), ("likelihoods", weighting.reads_likelihoods))
            if reads
        ) or "nothing",
        **{f"omega({r:g})": f"{weighting.omega(Evidence(reward=r, log_ratio=0.0)):.6g}" for r in REWARDS},
    }  # fmt: skip
    paper = {f"paper_{key}" if key == "quality" else key: printed.get(key, "") for key in numbers("table1")[0]}
    return {**paper, **own}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"
