"""AlpacaEval: outputs in its format, and its verdicts in Table 6."""

import json
from pathlib import Path

import pytest

from rsd.errors import ReportError
from rsd.report.tables.cells import Stored
from rsd.report.tables.open_ended import open_ended
from rsd.sweep.compose import configuration
from tests.conftest import Run

ASKED = ["benchmark=tiny_open", "model.prompt=chat_template", "model.system=null", "limit=3"]
RSD = [*ASKED, "prm=tiny_orm", "delta=0"]
HEADINGS = "win_rate,standard_error,n_total,avg_length,length_controlled_winrate"


def table(results: Path) -> list[dict[str, str]]:
    with configuration():
        return open_ended("tiny", Stored.read(results), ["limit=3"])


def test_outputs_go_out_and_verdicts_come_back(run: Run, tmp_path: Path) -> None:
    records = run(*RSD)
    alone = run(*ASKED, "method=single", "method.role=draft")
    (folder,) = (tmp_path / "runs" / "tiny_open").glob("rsd-*")
    outputs = json.loads((folder / "model_outputs.json").read_text())
    assert [set(row) for row in outputs] == [{"dataset", "instruction", "output", "generator"}] * 3
    assert sorted(row["output"] for row in outputs) == sorted(record.response.strip() for record in records.values())
    assert {row["generator"] for row in outputs} == {folder.name}
    assert len(alone) == 3

    draft, target, rsd = table(tmp_path)
    assert [row["method"] for row in (draft, target, rsd)] == ["Draft Model only", "Target Model only", "RSD"]
    assert (draft["questions"], target["questions"], rsd["questions"], rsd["win_rate_pct"]) == ("3", "", "3", "")
    kept = [(p.origin, len(p.token_ids)) for record in records.values() for p in record.proposals if p.kept]
    share = sum(count for origin, count in kept if origin == "draft") / sum(count for _, count in kept)
    assert float(rsd["share_of_tokens_by_draft_only_pct"]) == pytest.approx(100 * share, abs=0.01)
    assert draft["share_of_tokens_by_draft_only_pct"] == "", "it is of RSD that the paper tells it"

    judge = folder / "weighted_alpaca_eval_gpt4_turbo"
    judge.mkdir()
    (judge / "leaderboard.csv").write_text(f",{HEADINGS}\ngpt4,50,1,805,9,50\n{folder.name},19.5,1.25,3,99,21.25\n")
    annotated = [{"preference": p, "generator_2": folder.name} for p in (2.0, 1.25, 0, None)]  # won, a quarter, a draw
    other = [{"preference": 1.0, "generator_2": "gpt4"}]
    (folder / "annotations.json").write_text(json.dumps(annotated + other))
    _, _, bare, whole = table(tmp_path)
    assert (bare["judge"], bare["annotated"], float(bare["win_rate_pct"])) == ("", "3", pytest.approx(58.33))
    assert (whole["judge"], whole["win_rate_pct"], whole["win_rate_se"]) == (judge.name, "19.5", "1.25")
    assert (whole["length_controlled_win_rate_pct"], bare["length_controlled_win_rate_pct"]) == ("21.25", "")

    (folder / "annotations.json").write_text("no JSON")
    with pytest.raises(ReportError, match=r"annotations\.json is no file of alpaca_eval"):
        table(tmp_path)
    (folder / "annotations.json").unlink()
    (judge / "leaderboard.csv").write_text(f",name\n{folder.name},1\n")
    with pytest.raises(ReportError, match=r"leaderboard\.csv is no file of alpaca_eval"):
        table(tmp_path)
