"""A run of four questions summed up by hand, and what a terminal shows of it."""

from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import orjson
import pytest
from filelock import FileLock
from rich.console import Console

from rsd.cost import Shape
from rsd.errors import StoreError
from rsd.records import EndReason, Proposal, Record, Role, Usage
from rsd.report.cells import duration, flops_cell, flops_unit
from rsd.report.statistics import bootstrap, wilson
from rsd.report.summary import Summary, summarise, write_summary
from rsd.report.terminal import render
from rsd.store import GradeRecord
from tests.stored import proposal, store
from tests.stored import record as stored_record

SHAPES: dict[Role, Shape] = {
    "draft": Shape(parameters=10**6, matmul_parameters=10**6, layers=1, heads=1, head_dim=1),
    "target": Shape(parameters=5 * 10**6, matmul_parameters=5 * 10**6, layers=1, heads=1, head_dim=1),
    "prm": Shape(parameters=3 * 10**6, matmul_parameters=3 * 10**6, layers=1, heads=1, head_dim=1),
}


def drafted(tokens: int, reward: float, accepted: bool) -> Proposal:
    """A draft proposal of `tokens` after a prompt of 1, judged by the PRM; nothing cached."""
    usage: dict[Role, Usage] = {
        "draft": Usage(generated=tokens, passes=tokens, prompt=1),
        "prm": Usage(prompt=tokens, verified=tokens, passes=1),
    }
    return Proposal(
        step=0, origin="draft", accepted=accepted, kept=accepted, token_ids=(7,) * tokens, text="", reward=reward,
        finish="step", usage=usage, t0=0, t1=0,
    )  # fmt: skip


def targeted(tokens: int, kept: bool = True) -> Proposal:
    usage: dict[Role, Usage] = {"target": Usage(generated=tokens, passes=tokens, prompt=1)}
    return Proposal(
        step=0, origin="target", kept=kept, token_ids=(7,) * tokens, text="", finish="step", usage=usage, t0=0, t1=0
    )


def record(question: str, *proposals: Proposal, sample: int = 0, end_reason: EndReason = "eos") -> Record:
    return Record(
        question_id=question, sample=sample, seed=0, invocation=1, prompt_tokens=1, end_reason=end_reason,
        response="", proposals=proposals, error="failed" if end_reason == "error" else None,
    )  # fmt: skip


def graded(records: list[Record], right: set[str]) -> dict[tuple[str, int], GradeRecord]:
    return {
        r.key: GradeRecord(
            question_id=r.question_id, sample=r.sample, correct=r.question_id in right, extracted="", reason=None
        )
        for r in records
        if r.error is None
    }


RUN = [
    record("a", drafted(10, 0.9, True), drafted(20, 0.71, True)),
    record("b", drafted(4, 0.3, False), targeted(6), drafted(10, 0.8, True), end_reason="max_steps"),
    record("c", drafted(6, 0.95, True)),
    record("d", end_reason="error"),
]


@pytest.fixture
def summary() -> Summary:
    return summarise(RUN, graded(RUN, {"a", "b"}), SHAPES, delta=0.7)


def test_accuracy(summary: Summary) -> None:
    assert (summary.questions, summary.records, summary.errors) == (4, 4, 1)
    assert summary.accuracy == 2 / 4  # a and b right, c wrong, d failed
    assert (summary.interval, summary.interval_method) == (wilson(2, 4), "wilson")
    assert summary.end_reasons == {"eos": 2, "max_steps": 1, "error": 1}


def test_acceptance(summary: Summary) -> None:
    assert (summary.judged, summary.accepted) == (5, 4)
    assert summary.acceptance_rate == 4 / 5
    assert summary.acceptance_rate_tokens == (10 + 20 + 10 + 6) / (10 + 20 + 4 + 10 + 6)
    assert summary.draft_only == 2 / 4  # a and c, right or wrong; b called the target, d gave no answer
    assert (summary.delta, summary.near_delta) == (0.7, 1)  # 0.71 only


def test_steps_scored_beyond_the_prms_trained_context() -> None:
    """Of the inputs of 10, 20, 4, 10 and 6 tokens, rejected ones too."""
    grades = graded(RUN, set())
    assert [summarise(RUN, grades, SHAPES, context=n).beyond_context for n in (3, 10, 20, None)] == [5, 1, 0, None]
    summary = summarise(RUN, grades, SHAPES, context=5)
    assert summary.to_json()["beyond_context"] == 4
    assert line(shown(summary), "prm context")[2:4] == ["4", "steps"]
    assert "prm context" not in "\n".join(shown(summarise(RUN, grades, SHAPES, context=20)))


def test_lengths(summary: Summary) -> None:
    assert summary.steps == (2 + 2 + 1 + 0) / 4
    assert summary.response_tokens == (30 + 16 + 6) / 4


def test_work(summary: Summary) -> None:
    calls = {role: (work.calls, work.tokens, work.discarded) for role, work in summary.work.items()}
    assert calls == {"draft": (5, 50, 4), "target": (1, 6, 0), "prm": (5, 50, 4)}


def test_flops_per_question(summary: Summary) -> None:
    # passes: 50 draft tokens, 6 target tokens, 5 PRM calls; over 4 questions.
    draft, target, prm = 2e6 * 50 / 4, 10e6 * 6 / 4, 6e6 * 5 / 4
    assert {role: work.flops["passes"] for role, work in summary.work.items()} == {
        "draft": draft, "target": target, "prm": prm,
    }  # fmt: skip
    assert summary.flops["passes"] == draft + target + prm
    assert summary.flops["positions"] == draft + target + 6e6 * 50 / 4
    # full: a policy call of t tokens after a prompt of 1 runs positions 0 … t − 1, as does a PRM call of t
    # tokens: contexts 1 … t. With one layer, head and dimension attention is 4 per unit of context.
    contexts = sum(t * (t + 1) // 2 for t in (10, 20, 4, 10, 6))
    attention = 4 * (2 * contexts + 6 * 7 // 2)
    assert summary.flops["full"] == (2e6 * 50 + 10e6 * 6 + 6e6 * 50 + attention) / 4


def test_a_target_that_only_judges_is_a_target_call() -> None:
    """Likelihood ratios ask the target about the draft's step without a proposal of its own."""
    asked = drafted(5, 0.9, True)
    asked = replace(asked, usage={**asked.usage, "target": Usage(verified=5, prompt=5, passes=1)})
    idle = replace(asked, usage={**asked.usage, "target": Usage()})
    records = [record("a", asked), record("b", idle)]
    assert summarise(records, graded(records, set()), SHAPES).draft_only == 1 / 2


def test_discarded_target_tokens() -> None:
    """Search writes target steps that it drops."""
    records = [record("a", targeted(5), targeted(8, kept=False))]
    work = summarise(records, graded(records, {"a"}), SHAPES).work["target"]
    assert (work.calls, work.tokens, work.discarded) == (2, 13, 8)


def test_several_samples_per_question() -> None:
    records = [record("a", targeted(5), sample=sample) for sample in range(4)] + [record("b", targeted(5))]
    grades = {
        r.key: GradeRecord(question_id=r.question_id, sample=r.sample, correct=r.sample == 1, extracted="", reason=None)
        for r in records
    }
    summary = summarise(records, grades, SHAPES)
    assert (summary.questions, summary.records) == (2, 5)
    assert summary.accuracy == (1 / 4 + 0) / 2  # the mean over questions, not 1 of 5 records
    assert (summary.interval, summary.interval_method) == (bootstrap({"a": (1, 4), "b": (0, 1)}), "bootstrap")
    assert summary.flops["passes"] == 10e6 * 5  # of answering once


def test_a_method_that_judges_nothing_has_no_acceptance_rate() -> None:
    records = [record("a", targeted(5))]
    summary = summarise(records, graded(records, {"a"}), SHAPES)
    assert (summary.acceptance_rate, summary.acceptance_rate_tokens, summary.near_delta) == (None, None, None)
    assert set(summary.work) == {"target"}


def test_nothing_yet() -> None:
    summary = summarise([], {}, SHAPES)
    assert (summary.questions, summary.accuracy, summary.interval, summary.steps) == (0, None, None, None)


def test_missing_grade_is_an_error() -> None:
    with pytest.raises(StoreError, match="question c, sample 0 has no grade"):
        summarise(RUN, graded(RUN[:2], {"a"}), SHAPES)


def test_unknown_cache_leaves_full_unmeasured() -> None:
    blind = replace(targeted(5), usage={"target": Usage(generated=5, passes=5, prompt=1, cached=None)})
    records = [*RUN[:3], record("e", blind)]
    summary = summarise(records, graded(records, set()), SHAPES)
    assert summary.flops["full"] is summary.work["target"].flops["full"] is None
    assert summary.work["draft"].flops["full"] is not None
    assert summary.flops["passes"] is not None


def test_json_round_trip(summary: Summary) -> None:
    data = orjson.loads(orjson.dumps(summary.to_json()))
    assert data["accuracy"] == 0.5
    assert data["interval"] == list(wilson(2, 4))
    assert data["work"]["draft"] == {"calls": 5, "tokens": 50, "discarded": 4, "flops": summary.work["draft"].flops}
    assert summarise([], {}, {}).to_json()["interval"] is None


def shown(summary: Summary, width: int = 80, **options: Any) -> list[str]:
    console = Console(width=width, file=StringIO(), record=True)
    console.print(render(summary, title="rsd delta=0.7", **options))
    return console.export_text().splitlines()


def line(lines: list[str], label: str) -> list[str]:
    """The words of the line that starts with `label`."""
    (found,) = [
        words for words in (text.strip("│ ").split() for text in lines) if words[: len(label.split())] == label.split()
    ]
    return found


def test_terminal(summary: Summary) -> None:
    ratios = {"passes": 0.5, "positions": 1.875, "full": None}
    lines = shown(summary, seconds=12.5, questions_per_second=0.32, relative=ratios)
    assert line(lines, "accuracy")[:5] == ["accuracy", "50.0%", "95%", "interval", "[15.0,"]
    assert line(lines, "errors")[1] == "1"
    assert line(lines, "acceptance")[1:4] == ["80.0%", "of", "5"]
    assert line(lines, "near delta")[2] == "20.0%"
    assert line(lines, "draft only")[2] == "50.0%"
    assert line(lines, "wall time") == ["wall", "time", "12.5", "s,", "0.32", "questions/s"]
    # MFLOPs per question: 25, 15 and 7.5 by hand (test_flops_per_question), 47.5 together.
    assert line(lines, "draft 5") == ["draft", "5", "50", "4", "25.0", "25.0", "25.0"]
    assert line(lines, "prm")[4] == "7.50"
    assert line(lines, "all")[1] == "47.5"
    assert line(lines, "vs. target alone")[3:] == ["0.50×", "1.88×", "–"]
    assert len({len(text) for text in lines}) == 1, "the frame is straight"
    assert not any("…" in text for text in lines)


def test_terminal_explains_its_dashes(summary: Summary) -> None:
    blind = replace(targeted(5), usage={"target": Usage(generated=5, passes=5, prompt=1, cached=None)})
    records = [record("a", blind)]
    assert "–: not measured" in "\n".join(shown(summarise(records, graded(records, {"a"}), SHAPES)))
    assert "not measured" not in "\n".join(shown(summary))


def test_terminal_says_why_there_is_no_ratio(summary: Summary) -> None:
    text = "\n".join(shown(summary))
    assert "no run of the target alone found" in text
    assert "wall time" not in text


def test_terminal_of_nothing() -> None:
    assert line(shown(summarise([], {}, {})), "accuracy") == ["accuracy", "–", "0", "questions"]


def test_units() -> None:
    assert flops_unit([3e12, None, 0.0, 2.5e9]) == ("GFLOPs", 1e9), "all of them have digits: 3,000 and 2.50"
    assert flops_unit([None]) == ("MFLOPs", 1e6)
    assert [flops_cell(value, 1e9) for value in (1.234e9, 12.34e9, 1234.5e9, None)] == ["1.23", "12.3", "1,234", "–"]
    assert [duration(hours) for hours in (8.84e-5, 0.25, 1234.56, None)] == ["0.3 s", "15.0 min", "1,234.6 h", "–"]


def test_what_nobody_grades_has_no_accuracy() -> None:
    records = [record("a", targeted(5)), record("b", targeted(5))]
    told = {key: replace(grade, reason="not graded") for key, grade in graded(records, set()).items()}
    assert (summarise(records, told, SHAPES).accuracy, summarise(records, told, SHAPES).interval) == (None, None)
    assert summarise(records, graded(records, set()), SHAPES).accuracy == 0.0


def test_two_shards_that_end_together_leave_the_count_of_both(tmp_path: Path) -> None:
    """What a shard writes while another one writes the summary is counted by its own summary, which comes later."""
    folder = store(tmp_path, "run", [stored_record("a", proposal("draft", 4, 0.9, True))], {"a"})
    with ThreadPoolExecutor() as pool:
        with FileLock(folder / "summary.guard"):  # the other shard is writing
            written = pool.submit(write_summary, folder, delta=0.7, context=None)
            wait([written], timeout=0.5)
            other = store(tmp_path / "b", "run", [stored_record("b", proposal("draft", 4, 0.9, True))], {"b"})
            for name in ("records", "grades"):
                (folder / f"{name}-1.jsonl").write_bytes((other / f"{name}.jsonl").read_bytes())
        written.result()
    assert orjson.loads((folder / "summary.json").read_bytes())["records"] == 2
