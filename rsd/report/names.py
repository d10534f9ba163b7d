"""What the paper calls things: the words in the first columns of its tables, for any configuration.

words(composed(("model=tiny", "method=rsd", "delta=0.7")))
# {"family": "tiny", "method": "RSD", "setting": "delta=0.7", "target": "m", "draft": "s", "prm": "tiny_m", …}
"""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from rsd.report.wanted import Composed

NONE = "-"  # as the paper's tables have it

METHODS = {
    "single": "Single Model",
    "speculative": "SD",
    "majority": "Majority Voting",
    "best_of_n": "Best-of-N",
    "beam": "Beam Search",
    "rsd": "RSD",
}


def words(run: Composed) -> dict[str, str]:
    """The labels of a run's row. Models go by the last part of their path, families and PRMs by their configuration."""
    settings = run.method.settings
    method = settings["method"]
    search = method == "beam" and settings["width"] == 1
    drawing = settings.get("role", settings.get("generator", "target"))  # the model that a method of one model uses
    models = {role: PurePath(policy.path).name for role, policy in run.config.model.policies.items()}
    used = {"draft", "target"} if method in ("rsd", "speculative") else {drawing}
    target, draft = (models.get(role, NONE) if role in used else NONE for role in ("target", "draft"))
    return {
        "family": run.config.model.name,
        "method": "Process Best-of-N" if search else METHODS.get(method, method),
        "setting": _setting(settings),
        "delta": f"{settings['delta']:g}" if "delta" in settings else "",
        "target": target,
        "draft": draft,
        "base_or_draft": draft,
        "prm": run.config.prm.name if "prm" in run.method.roles else NONE,
    }


def _setting(settings: Mapping[str, Any]) -> str:
    match settings["method"]:
        case "majority":
            return f"maj@{settings['n']}"
        case "best_of_n":
            return f"N={settings['n']}"
        case "beam" if settings["width"] == 1:
            return f"N={settings['expansion']}"
        case "beam":
            return f"beam size={settings['width']}"
        case "rsd" if settings["weighting"] == "binary":
            return f"delta={settings['delta']:g}"
        case "rsd":
            return str(settings["weighting"])
        case _:
            return NONE
