"""Tables of hand-made runs, every number counted by hand, and what the command does with missing or bad runs."""

from pathlib import Path

import orjson
import pandas as pd
import pytest

from rsd.errors import ReportError
from rsd.identity import run_id
from rsd.plan import make_plan
from rsd.report import load
from rsd.report.missing import lacking
from rsd.report.paper import BENCHMARKS, numbers
from rsd.report.tables.cells import Stored
from rsd.report.tables.layout import TABLES, rows, runs_of_rows
from rsd.report.threshold import delta_star
from rsd.report.wanted import asked, composed, experiments, ordered
from rsd.sweep.compose import configuration
from tests.conftest import compose_config
from tests.report.wanted import DRAFT, RSD, SD, TARGET, answers, golden, line, lines, report, write


def test_golden_table_2(tmp_path: Path) -> None:
    report(golden(tmp_path))
    rsd = line(tmp_path, "table2", method="RSD", setting="delta=0.7", prm="tiny_s", target="m")
    assert list(rsd)[:10] == ["family", "method", "setting", "target", "draft", "prm", "tiny_chain", "tiny_story",
                              "Avg", "diff_vs_single_target"]  # fmt: skip
    # Two of three right: z²/3 = 1.2805, centre (0.6667 + 0.6402)/2.2805 = 0.5731, half-width 0.3654.
    assert (rsd["tiny_chain"], rsd["tiny_chain_low"], rsd["tiny_chain_high"]) == ("66.6667", "20.766", "93.8508")
    assert (rsd["tiny_chain_n"], rsd["tiny_chain_size"], rsd["tiny_chain_partial"]) == ("3", "3", "")
    # Against the target (a and b right): c won, b lost; p = 1. Both 1, won 1, lost 1, neither 0: phi = -1/2;
    # with l = 0.4590 and u = 0.2718, sqrt(l² + lu + u²) = 0.6398 both ways.
    assert [rsd[f"tiny_chain_{key}"] for key in ("difference", "won", "lost", "p", "p_holm")] == [
        "0",
        "1",
        "1",
        "1",
        "1",
    ]
    bounds = [float(rsd[f"tiny_chain_difference_{side}"]) for side in ("low", "high")]
    assert bounds == pytest.approx([-63.98, 63.98], abs=0.01)
    # b ended where the PRM could read no further, c at the limit of steps.
    assert [rsd[f"tiny_chain_{key}"] for key in ("truncated", "failed", "prm_context", "unscored")] == [
        "1",
        "0",
        "1",
        "1",
    ]
    # Of 5 draft steps of 55 tokens 4 of 50 were accepted; 0.71 lies within 0.02 of δ; c called the target; 5 steps
    # and 30 + 10 + 18 tokens were kept in 3 answers, 5 PRM calls made, 5 draft tokens wasted.
    told = ("acceptance", "acceptance_tokens", "near_delta", "draft_only", "steps", "response_tokens", "prm_calls")
    assert [rsd[f"tiny_chain_{key}"] for key in (*told, "wasted_tokens")] == [
        "80", "90.9091", "1", "66.6667", "1.66667", "19.3333", "1.66667", "1.66667"
    ]  # fmt: skip
    # 2·1000·(draft 55) + 2·7000·(target 8) + 2·3000·(5 calls) FLOPs, and 55 tokens in place of 5 calls, per question.
    assert float(rsd["tiny_chain_flops_passes"]) == pytest.approx((110_000 + 112_000 + 30_000) / 3, rel=1e-5)
    assert float(rsd["tiny_chain_flops_positions"]) == pytest.approx((110_000 + 112_000 + 330_000) / 3, rel=1e-5)
    # Nothing ran on the other benchmark, so there is no average.
    assert not any(rsd[key] for key in ("tiny_story", "tiny_story_low", "Avg", "Avg_low", "diff_vs_single_target"))
    assert (rsd["tiny_story_n"], rsd["tiny_story_size"], rsd["tiny_story_run"]) == ("", "", "")
    sd = line(tmp_path, "table2", method="SD", target="m")
    assert [sd[f"tiny_chain{key}"] for key in ("", "_difference", "_won", "_lost")] == ["100", "33.3333", "1", "0"]
    alone = line(tmp_path, "table2", method="Single Model", target="m")
    assert (alone["tiny_chain"], alone["tiny_chain_truncated"], alone["tiny_chain_difference"]) == ("66.6667", "1", "")


def test_golden_other_tables(tmp_path: Path) -> None:
    report(golden(tmp_path))
    # Table 3's baseline is the draft (only a right): c won, none lost.
    rsd = line(tmp_path, "table3", method="RSD")
    assert [rsd[f"tiny_chain{key}"] for key in ("", "_difference", "_won", "_lost")] == ["66.6667", "33.3333", "1", "0"]
    alone = line(tmp_path, "table3", method="Single Model")
    assert [alone[f"tiny_chain{key}"] for key in ("", "_failed", "_truncated")] == ["33.3333", "1", "1"]
    for table, label in (("table5", "setting"), ("tableB3", "setting"), ("tableB2", "delta")):
        rsd = line(
            tmp_path, table, method="RSD", prm="tiny_s", target="m", **{label: f"{'delta=' * (label == 'setting')}0.7"}
        )
        assert (rsd["tiny_chain"], rsd["tiny_chain_won"], rsd["tiny_chain_lost"]) == ("66.6667", "1", "1")
    found = line(tmp_path, "table4", method="RSD", prm="tiny_s")
    assert list(found)[:7] == ["method", "target", "draft", "prm", "setting", "Avg", "diff_vs_single_target"]
    assert found["tiny_chain"] == "66.6667", "the paper gives averages only; ours by benchmark stand behind them"
    assert all(row["tiny_long_run"] == "" for row in lines(tmp_path, "tableB1"))
    binary = next(row for row in lines(tmp_path, "table1") if row["weighting"] == "binary")
    assert (binary["implemented"], binary["omega(0.6)"], binary["omega(0.7)"]) == ("ω(r) = 1(r >= δ)", "0", "1")
    logistic = next(row for row in lines(tmp_path, "table1") if row["weighting"] == "logistic")
    assert logistic["omega(1)"] == "0.598688"  # 1/(1 + exp(-0.4))
    assert [row["questions"] for row in lines(tmp_path, "table6")] == ["", "", ""]


def test_averages_and_holm(tmp_path: Path) -> None:
    """Of ten questions each, the target has none right; RSD six of one benchmark and two of the other, SD five."""
    questions = [f"q{i}" for i in range(10)]
    for benchmark, rsd in (("tiny_chain", 6), ("tiny_story", 2)):
        write(tmp_path, TARGET, set(), answers(questions), benchmark, size=10)
        write(tmp_path, RSD.format(0.7), set(questions[:rsd]), answers(questions), benchmark, size=10)
    write(tmp_path, SD, set(questions[:5]), answers(questions), size=10)
    report(tmp_path)
    rsd = line(tmp_path, "table5", method="RSD", prm="tiny_s")
    sd = line(tmp_path, "table5", method="SD")
    assert (rsd["Avg"], rsd["diff_vs_single_target"], sd["Avg"]) == ("40", "40", "")
    # The mean of two shares of ten: standard error sqrt(0.6·0.4/10 + 0.2·0.8/10)/2 = 0.1, about 1.96 times that.
    for name in ("Avg", "diff_vs_single_target"):
        assert [float(rsd[f"{name}_{side}"]) for side in ("low", "high")] == pytest.approx([20, 60], abs=6)
    # p = 2/2⁶, 2/2⁵ and 2/2²; Holm's factors for three cells are 3, 2 and 1.
    assert [row[f"{name}_p"] for row, name in ((rsd, "tiny_chain"), (sd, "tiny_chain"), (rsd, "tiny_story"))] == [
        "0.03125", "0.0625", "0.5"
    ]  # fmt: skip
    assert [rsd["tiny_chain_p_holm"], sd["tiny_chain_p_holm"], rsd["tiny_story_p_holm"]] == ["0.09375", "0.125", "0.5"]


def test_delta_star_both_ways(tmp_path: Path) -> None:
    """Right are 5, 7, 7 and 6 of ten questions: the smaller of the two best thresholds is the oracle's."""
    questions = [f"q{i}" for i in range(10)]
    write(tmp_path, TARGET, set(questions[:6]), answers(questions), size=10)
    for delta, right in ((0.6, questions[:5]), (0.7, questions[:7]), (0.8, questions[3:]), (0.9, questions[:6])):
        write(tmp_path, RSD.format(delta), set(right), answers(questions), size=10)
    report(tmp_path)
    oracle = line(tmp_path, "table2", setting="delta*", prm="tiny_s", target="m")
    assert (oracle["tiny_chain"], oracle["tiny_chain_delta"], oracle["tiny_chain_difference"]) == ("70", "0.7", "10")
    assert (oracle["tiny_chain_p"], oracle["tiny_chain_p_holm"]) == ("", ""), "chosen on the test set: not tested"
    fitted = line(tmp_path, "table2", setting="delta* cross-fitted", prm="tiny_s", target="m")
    runs = load(tmp_path, method="rsd")
    star = delta_star({run.delta: load(tmp_path, rows="solutions", run_id=run.run_id) for run in runs.itertuples()})
    assert float(fitted["tiny_chain"]) == pytest.approx(100 * star.fitted_accuracy, abs=1e-3)
    assert float(fitted["tiny_chain_spread"]) == pytest.approx(100 * star.fitted_spread, abs=1e-3)
    assert float(fitted["tiny_chain_low"]) <= float(fitted["tiny_chain"]) <= float(fitted["tiny_chain_high"])
    seed_0 = {q for q, right in zip(star.fitted["question_id"], star.fitted["correct"], strict=True) if right}
    assert int(fitted["tiny_chain_won"]) == len(seed_0 - set(questions[:6]))
    assert int(fitted["tiny_chain_lost"]) == len(set(questions[:6]) - seed_0)
    assert fitted["tiny_chain_p"]


def test_delta_star_waits_for_all_thresholds(tmp_path: Path) -> None:
    for delta in (0.6, 0.7, 0.8):
        write(tmp_path, RSD.format(delta), {"a"}, answers("abc"))
    write(tmp_path, RSD.format(0.9), {"a"}, answers("ab"))
    report(tmp_path)
    for setting in ("delta*", "delta* cross-fitted"):
        found = line(tmp_path, "table2", setting=setting, prm="tiny_s", target="m")
        assert (found["tiny_chain"], found["tiny_chain_n"], found["tiny_chain_size"]) == ("", "2", "3")
    assert "*3 of 4 thresholds*" in (tmp_path / "tables/tiny/table2.md").read_text()


def test_a_partial_run_is_told_and_kept_out(tmp_path: Path) -> None:
    questions = [f"q{i}" for i in range(8)]
    for benchmark in ("tiny_chain", "tiny_story"):
        write(tmp_path, TARGET, set(questions), answers(questions), benchmark, size=8)
    write(tmp_path, SD, {"q0", "q1"}, answers(questions[:4]), "tiny_chain", size=8)
    write(tmp_path, SD, set(questions), answers(questions), "tiny_story", size=8)
    report(tmp_path)
    sd = line(tmp_path, "table2", method="SD", target="m")
    assert (sd["tiny_chain"], sd["tiny_chain_partial"], sd["tiny_chain_n"], sd["tiny_chain_size"]) == (
        "",
        "50",
        "4",
        "8",
    )
    assert not any(sd[key] for key in ("Avg", "diff_vs_single_target", "tiny_chain_difference", "tiny_chain_p"))
    assert sd["tiny_story_p_holm"] == "1"
    text = (tmp_path / "tables" / "tiny" / "table2.md").read_text()
    assert "*partial 4/8: 50.0*" in text
    assert "*partial 12/16*" in text, "how its answers ended is of those so far"
    assert (sd["tiny_chain_low"], sd["tiny_chain_high"]) == ("", ""), "no interval as if it were complete"
    assert sd["tiny_story_low"]


def test_the_papers_numbers_stand_beside_ours(tmp_path: Path) -> None:
    questions = [f"q{i}" for i in range(500)]
    target = "model=qwen_math_7b method=single"
    write(tmp_path, target, set(questions[:420]), answers(questions), "math500", size=500)
    report(tmp_path)
    alone = line(tmp_path, "table2", "paper", method="Single Model", family="Qwen2.5-Math-Instruct", target="7B")
    assert [alone[f"MATH500{key}"] for key in ("", "_paper", "_minus_paper")] == ["84", "83.2", "0.8"]
    assert (alone["GSM8K"], alone["GSM8K_paper"], alone["GSM8K_minus_paper"]) == ("", "95.7", "")
    assert (alone["Avg"], alone["Avg_paper"], alone["paper_quality"]) == ("", "65.3", "exact")
    page = (tmp_path / "tables" / "table2.md").read_text()
    assert "84.0 [80.5, 87.0]" in page
    assert "*83.2 (+0.8)*" in page
    slip = line(tmp_path, "table2", "paper", setting="maj@16", family="Qwen2.5-Math-Instruct")
    assert "average 62.75" in slip["paper_note"]
    assert "average 62.75" in page


def test_the_papers_layout(tmp_path: Path) -> None:
    """Its rows and columns in its order, with only the row of a cross-fitted threshold added."""
    write(tmp_path, TARGET, {"a"}, answers("a"))
    report(tmp_path)
    for table, layout in TABLES.items():
        found = [row for row in lines(tmp_path, table, "paper") if "cross-fitted" not in row.get("setting", "")]
        printed = numbers(table)
        own = [column for column in printed[0] if column not in ("quality", "run")]
        assert list(found[0])[: len(own)] == own, table
        assert [[row[label] for label in layout.labels] for row in found] == [
            [row[label] for label in layout.labels] for row in printed
        ]
        for row, theirs in zip(found, printed, strict=True):
            assert all(row[f"{name}_paper"] == theirs[name] for name in (*BENCHMARKS, "Avg") if name in theirs)
            assert not any(row[name] for name in (*BENCHMARKS, "Avg") if name in row), "nothing ran"
    star = line(tmp_path, "table2", "paper", setting="delta*", family="Qwen2.5-Math-Instruct", target="7B", prm="1.5B")
    assert (star["MATH500_delta"], star["MATH500_delta_paper"]) == ("", "0.7/0.8")
    orm = line(tmp_path, "table6", "paper", method="RSD")
    assert (orm["win_rate_pct"], orm["win_rate_pct_paper"]) == ("", "18.85")


@pytest.mark.parametrize("name", ["table2", "table3", "table4", "table5", "tableB1", "tableB2", "tableB3"])
def test_rows_of_an_experiment_stand_in_the_order_of_the_paper(name: str) -> None:
    """What orders the rows of any preset gives the paper's own rows with the paper's models."""

    def read(run: tuple[str, ...]) -> set[str]:
        """What a method reads: majority no PRM, and the target is what is single by default."""
        unread = "prm=" if "method=majority" in run else "method.role=target"
        return {word for word in run if not word.startswith(unread)}

    layout = TABLES[name]
    with configuration():
        found = [[read(run) for run in runs] for runs in runs_of_rows(layout, "paper")]
        assert found == [[read(run) for run in row.runs] for row in rows(layout, "paper")]


def test_reference_grader_has_columns_of_its_own(tmp_path: Path) -> None:
    folder = write(tmp_path, TARGET, {"a", "b"}, answers("abc"))
    verdicts = {"a": True, "b": False, "c": False}
    (folder / "grades-reference.jsonl").write_bytes(
        b"".join(
            orjson.dumps({"question_id": q, "sample": 0, "correct": right, "extracted": "1", "reason": None}) + b"\n"
            for q, right in verdicts.items()
        )
    )
    report(tmp_path)
    alone = line(tmp_path, "table2", method="Single Model", target="m")
    assert (alone["tiny_chain"], alone["tiny_chain_reference"]) == ("66.6667", "33.3333")


def test_two_graders_in_one_column_are_refused(tmp_path: Path) -> None:
    folder = write(tmp_path, TARGET, {"a"}, answers("a"))
    (folder / "grades-reference.jsonl").write_bytes((folder / "grades.jsonl").read_bytes())
    runs, reference = load(tmp_path), load(tmp_path, grader="reference")
    solutions = load(tmp_path, rows="solutions")
    with pytest.raises(ReportError, match="graded by reference stand among those of the default grader"):
        Stored(runs=pd.concat([runs, reference]), solutions=solutions, reference=reference)
    with pytest.raises(ReportError, match="graded by default stand among those of the reference grader"):
        Stored(runs=runs, solutions=solutions, reference=runs)


def test_damaged_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write(tmp_path, TARGET, {"a", "b"}, answers("abc"))
    path = folder / "records.jsonl"
    first, *others = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([first[:-20] + b"\n", *others]))
    report(tmp_path)
    told = capsys.readouterr().err
    assert "records.jsonl" in told
    assert "line 1" in told
    alone = line(tmp_path, "table2", method="Single Model", target="m")
    assert (alone["tiny_chain_n"], alone["tiny_chain_partial"]) == ("2", "50")


def test_what_is_missing_and_what_fills_it(tmp_path: Path) -> None:
    write(tmp_path, TARGET, {"a"}, answers("abc"))
    write(tmp_path, DRAFT, {"a"}, answers("ab"))
    index = Stored.read(tmp_path).index
    with configuration():
        every = len(asked("table3", "preset=tiny"))
        tiny = list(lacking("tiny", index, ["seed=0"], tmp_path))
        (paper,) = lacking("paper", index, [], Path("results"))
        names = ",".join(experiments())
        runs = {run for name in experiments() for run in asked(name, "preset=paper")}
    command = f"python -m rsd.run -m +experiment=table3 preset=tiny seed=0 results_dir={tmp_path}"
    assert f"    table3:   {every - 1} of {every} missing, 1 partial  {command}" in tiny
    assert "      method=single method.role=draft model=tiny seed=0: tiny_chain (2/3), tiny_story" in tiny
    assert sum("method=rsd model=tiny prm=tiny_m delta=0.7 seed=0:" in told for told in tiny) == 1
    assert paper == f"  none of its {len(runs)} runs is there: python -m rsd.run -m +experiment={names} preset=paper"


@pytest.mark.parametrize(
    "overrides",
    [
        ("method=single",),
        ("method=single", "method.role=draft"),
        ("method=speculative",),
        ("method=majority", "method.n=4", "prm=tiny_m"),
        ("method=best_of_n", "method.n=4", "prm=tiny_s", "model=tiny_l"),
        ("method=beam", "method.width=4", "prm=tiny_s"),
        ("method=process_best_of_n", "method.n=8"),
        ("method=rsd", "delta=0.9", "prm=tiny_s"),
        ("method=rsd", "weighting=logistic", "delta=0.7", "score_target=all"),
        ("method=rsd", "seed=3", "limits.total_tokens=256", "tag=again"),
    ],
)
def test_runs_are_found_under_the_id_that_they_are_stored_under(overrides: tuple[str, ...]) -> None:
    plan = make_plan(compose_config("benchmark=tiny_story", *overrides))
    with configuration():
        known = composed(ordered(overrides))
    assert known.identity is not None
    identity = {**known.identity, "benchmark": plan.identity["benchmark"]}
    assert run_id(identity, known.config, known.method) == plan.folder.name
