"""Table 6: win rates on AlpacaEval, and the share of tokens that the draft wrote.

    open_ended("paper")    # [{"method": "RSD", …, "win_rate_pct": "", "win_rate_pct_paper": "18.85", …}, …]

Win rates are given by AlpacaEval's own judge, which no run here calls: its cells are empty beside the paper's.
"""

from rsd.report.paper import numbers
from rsd.report.tables.layout import PAPER

OURS = ("win_rate_pct", "share_of_tokens_by_draft_only_pct")


def open_ended(preset: str) -> list[dict[str, str]]:
    """The paper's rows with its numbers beside ours; none with another preset than the paper's."""
    return [_row(printed) for printed in numbers("table6")] if preset == PAPER else []


def headings() -> list[str]:
    """The table's columns, the paper's own first."""
    return list(_row(numbers("table6")[0]))


def _row(printed: dict[str, str]) -> dict[str, str]:
    row = {key: "" if key in OURS else value for key, value in printed.items() if key not in ("quality", "run")}
    for column in OURS:
        row |= {f"{column}_paper": printed[column], f"{column}_minus_paper": ""}
    return {**row, "paper_quality": printed["quality"]}
