"""The comparison tool on run folders written to disk."""

import shlex
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import orjson
import pytest

from rsd.compare import main
from rsd.records import PolicyRole, Proposal, Record, Usage, dump, load

SHAPES = {
    role: {"parameters": size, "matmul_parameters": size, "layers": 1, "heads": 1, "head_dim": 1}
    for role, size in (("draft", 10**9), ("target", 4 * 10**9))
}


def write_run(
    folder: Path,
    name: str,
    verdicts: dict[str, list[bool]],
    *,
    tokens: int = 100,
    role: PolicyRole = "target",
    benchmark: str = "math500",
    size: int | None = None,
    longer: str | None = None,
) -> str:
    """Write a run that answered each question, once per verdict, in one proposal of `tokens` by `role`.

    The answer to the question `longer` has twice as many.
    """
    folder.mkdir()
    identity = {"method": {"method": "single", "role": role}}
    manifest = {"name": name, "method": "single", "benchmark": benchmark, "shapes": SHAPES, "identity": identity}
    (folder / "manifest.json").write_bytes(orjson.dumps({**manifest, "benchmark_size": size or len(verdicts)}))
    records, grades = [], []
    for question, verdict in verdicts.items():
        for sample, correct in enumerate(verdict):
            length = 2 * tokens if question == longer else tokens
            usage = Usage(generated=length, passes=length, prompt=10, cached=None)
            proposal = Proposal(
                step=0, origin=role, kept=True, accepted=True if role == "draft" else None, token_ids=(1,) * length,
                text="", finish="eos", usage={role: usage}, t0=0, t1=0,
            )  # fmt: skip
            record = Record(
                question_id=question, sample=sample, seed=0, invocation=1, prompt_tokens=10, end_reason="eos",
                response="", proposals=(proposal,),
            )  # fmt: skip
            grade = {"question_id": question, "sample": sample, "correct": correct, "extracted": "1", "reason": None}
            records.append(dump(record) + b"\n")
            grades.append(orjson.dumps(grade) + b"\n")
    (folder / "records.jsonl").write_bytes(b"".join(records))
    (folder / "grades.jsonl").write_bytes(b"".join(grades))
    return str(folder)


@pytest.fixture
def target(tmp_path: Path) -> str:
    return write_run(tmp_path / "t", "target alone", {f"q{i}": [i < 4] for i in range(10)})


@pytest.fixture
def draft(tmp_path: Path) -> str:
    """Right on q2 … q8 of ten: both 2, won 5 (q4 … q8), lost 2 (q0, q1), neither 1; 50 tokens of a quarter the size."""
    return write_run(
        tmp_path / "d", "draft alone", {f"q{i}": [2 <= i <= 8] for i in range(10)}, tokens=50, role="draft"
    )


def rows(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, list[str]]:
    """Words of each run's two lines, by run name."""
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    names = {
        name: i
        for i, text in enumerate(lines)
        for name in ("target alone", "draft alone")
        if text.strip().startswith(name)
    }
    return {name: (lines[i].strip().removeprefix(name) + " " + lines[i + 1]).split() for name, i in names.items()}


def test_table(capsys: pytest.CaptureFixture[str], target: str, draft: str) -> None:
    found = rows(capsys, target, draft)
    # Target: 4 of 10; 2·4e9·100 FLOPs = 800 GFLOPs; caches unknown; nothing judged.
    assert found["target alone"][:7] == ["10/10", "40.0%", "baseline", "800", "800", "–", "–"]
    # Draft: 7 of 10; +3 of 10; 5 won, 2 lost: p = 2·(1 + 7 + 21)/2⁷ = 0.453; 2·1e9·50 FLOPs = 1/8 of the target's.
    first = ["10/10", "70.0%", "+30.0", "5/2", "100", "100", "–", "100.0%", "100.0%", "50", "–"]
    assert found["draft alone"][:11] == first
    # Wilson: 7/10 in [0.397, 0.892], 4/10 in [0.168, 0.687]; phi = (2·1 − 5·2)/sqrt(7·3·4·6) = −0.356.
    # 0.3 − sqrt(0.303² + 0.713·0.303·0.287 + 0.287²) = −0.186; 0.3 + sqrt(0.192² + 0.713·0.192·0.232 + 0.232²) = 0.650.
    assert found["draft alone"][11:] == ["[39.7,", "89.2]", "[-18.6,", "+65.0]", "p", "0.45", "0.12×", "0.12×", "–"]


def test_other_baseline(capsys: pytest.CaptureFixture[str], target: str, draft: str) -> None:
    for arguments in ((target, "--baseline", draft), (target, draft, "--baseline", draft)):
        found = rows(capsys, *arguments)
        assert found["target alone"][:4] == ["10/10", "40.0%", "-30.0", "2/5"]
        assert "8.00×" in found["target alone"]
        assert found["draft alone"][2] == "baseline"


def test_the_target_alone_is_the_baseline_wherever_it_stands(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, target: str, draft: str
) -> None:
    assert rows(capsys, draft, target)["target alone"][2] == "baseline"
    other = write_run(tmp_path / "other", "target alone", {"q8": [True]}, size=10)
    main([draft, target, other])
    assert "against draft alone" in capsys.readouterr().out, "of two targets none is the usual one"


def test_pairing_is_on_common_questions(capsys: pytest.CaptureFixture[str], tmp_path: Path, target: str) -> None:
    """Two questions that the target has wrong, and one more that it was not asked, of twice the length."""
    verdicts = {"q8": [True], "q9": [True], "new": [True]}
    partial = write_run(tmp_path / "p", "draft alone", verdicts, size=10, longer="new")
    cells = rows(capsys, target, partial)["draft alone"]
    # On its own questions (100 + 100 + 200)/3 tokens of 8 GFLOPs, on the common ones as much as the target.
    assert cells[:5] == ["3/10", "100.0%", "+100.0", "2/0", "1,067"]
    assert cells[-3:] == ["1.00×", "1.00×", "–"]


def interrupted(run: str, asked: int) -> None:
    """Note that `run` was last asked for so many solutions."""
    (Path(run) / "status.json").write_bytes(orjson.dumps({"asked": asked, "error": None, "log": "error.log"}))


def test_an_unfinished_run_has_no_interval_and_is_not_compared(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, target: str
) -> None:
    """Its questions are those that ended first, which are no sample of all."""
    run = write_run(tmp_path / "p", "draft alone", {"q8": [True], "q9": [True]}, size=10)
    interrupted(run, asked=10)
    found = rows(capsys, target, run)
    assert found["draft alone"][:5] == ["2/10", "100.0%", "–", "–", "800"]
    assert "unfinished" in found["draft alone"]
    assert not [cell for cell in found["draft alone"] if cell.startswith("[") or "×" in cell or cell == "p"]
    assert "[16.8," in found["target alone"], "that of the whole run stays"
    assert main((target, run)) == 0
    output = capsys.readouterr().out
    assert "Unfinished, 2 of 10 questions: draft alone." in output
    assert "Won by" not in output
    assert main((target, run, "--baseline", run)) == 0, "nor is another one compared with it"
    output = capsys.readouterr().out
    assert "-60.0" not in output
    assert "Lost by" not in output


def test_a_run_of_chosen_questions_is_compared_when_it_has_them(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, target: str
) -> None:
    run = write_run(tmp_path / "p", "draft alone", {"q8": [True], "q9": [True]}, size=10)
    interrupted(run, asked=2)
    assert rows(capsys, target, run)["draft alone"][:4] == ["2/10", "100.0%", "+100.0", "2/0"]


def test_several_samples_are_bootstrapped(capsys: pytest.CaptureFixture[str], tmp_path: Path, target: str) -> None:
    sampled = write_run(tmp_path / "s", "draft alone", {f"q{i}": [True, False] for i in range(10)})
    cells = rows(capsys, target, sampled)["draft alone"]
    assert cells[:4] == ["10/10", "50.0%", "+10.0", "–"]


def test_questions_won_and_lost(capsys: pytest.CaptureFixture[str], target: str, draft: str) -> None:
    assert main((target, draft)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "Won by draft alone against target alone: q4,q5,q6,q7,q8" in lines
    assert "Lost by draft alone against target alone: q0,q1" in lines
    assert main((target, draft, "--questions", "2")) == 0
    assert "Won by draft alone against target alone: q4,q5 … --questions=5 shows all" in capsys.readouterr().out
    assert main((target, draft, "--questions", "0")) == 0
    assert "Won by" not in capsys.readouterr().out


def test_the_trace_page_of_what_was_won_and_lost(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Where a report has written it, its address is told, with what it is to show."""
    folder = tmp_path / "runs" / "math500"
    folder.mkdir(parents=True)
    runs = [write_run(folder / name, name, {"a": [name == "new"], "b": [True]}) for name in ("t #1", "new")]
    assert main(runs) == 0
    assert "file://" not in capsys.readouterr().out
    page = tmp_path / "traces" / "math500" / "new.html"
    page.parent.mkdir(parents=True)
    page.touch()
    assert main(runs) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[lines.index("Won by new against t #1: a") + 1] == f"  {page.as_uri()}#?show=won&against=t%20%231"


def test_steps_beyond_the_context_of_the_prm(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, target: str, draft: str
) -> None:
    """A PRM trained on 100 tokens scored one step with 101 of them, and one with 100."""
    manifest = orjson.loads((Path(draft) / "manifest.json").read_bytes())
    manifest |= {"prm": "p", "config": {"prm": {"context": 100}}}
    (Path(draft) / "manifest.json").write_bytes(orjson.dumps(manifest))
    lines = (Path(draft) / "records.jsonl").read_bytes().splitlines()
    for i, prompt in enumerate((100, 101)):
        record = orjson.loads(lines[i])
        record["proposals"][0]["usage"]["prm"] = asdict(Usage(prompt=prompt, verified=50, passes=1))
        lines[i] = orjson.dumps(record)
    (Path(draft) / "records.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    assert rows(capsys, target, draft)["draft alone"][10] == "1"


def test_a_damaged_line_is_named_and_left_out(capsys: pytest.CaptureFixture[str], target: str, draft: str) -> None:
    records = Path(draft) / "records.jsonl"
    lines = records.read_bytes().splitlines()
    records.write_bytes(b"\n".join([*lines[:2], b"{half a line", *lines[3:]]) + b"\n")
    assert main((target, draft)) == 0
    output = capsys.readouterr()
    assert f"{records}, line 3 is broken" in output.err
    assert "9/10" in output.out


def test_text_that_nobody_grades_has_no_difference(capsys: pytest.CaptureFixture[str], target: str, draft: str) -> None:
    for run in (target, draft):
        path = Path(run) / "grades.jsonl"
        path.write_bytes(path.read_bytes().replace(b'"reason":null', b'"reason":"not graded"'))
    assert rows(capsys, target, draft)["draft alone"][1:4] == ["–", "–", "–"]


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.count("\n") == 1, "one sentence"
    return output.err


def test_bad_input(capsys: pytest.CaptureFixture[str], tmp_path: Path, target: str) -> None:
    (tmp_path / "empty").mkdir()
    mend = "python -m rsd.status lists the runs that there are"
    assert f"empty is not a run folder: it is empty; {mend}" in refused(capsys, target, str(tmp_path / "empty"))
    assert f"nowhere is not a run folder: it does not exist; {mend}" in refused(capsys, str(tmp_path / "nowhere"))
    assert f"no-*/* is not a run folder: no folder matches it; {mend}" in refused(capsys, str(tmp_path / "no-*" / "*"))
    told = refused(capsys, str(tmp_path))
    assert f"{tmp_path} is not a run folder: it holds several; name them, as {tmp_path}/*" in told
    other = write_run(tmp_path / "g", "other", {"q1": [True]}, benchmark="gsm8k")
    assert "other ran gsm8k and target alone ran math500" in refused(capsys, target, other)
    apart = write_run(tmp_path / "a", "apart", {"x": [True]})
    assert "no question in common" in refused(capsys, target, apart)
    for content in ("[]", "{}", "{", '{"name": "n", "benchmark": "b", "benchmark_size": 1, "shapes": {"draft": {}}}'):
        (Path(apart) / "manifest.json").write_text(content)
        assert "manifest.json is not the manifest of a run" in refused(capsys, target, apart)


def test_run_without_records_or_grades(capsys: pytest.CaptureFixture[str], tmp_path: Path, target: str) -> None:
    run = write_run(tmp_path / "r", "bare", {"q1": [True]})
    (Path(run) / "grades.jsonl").unlink()
    assert "question q1, sample 0 has no grade" in refused(capsys, target, run)
    (Path(run) / "records.jsonl").unlink()
    assert "holds no records" in refused(capsys, run)
    assert "holds no records" in refused(capsys, target, "--baseline", run)


@pytest.mark.parametrize("file", ["manifest.json", "status.json"])
def test_a_run_that_has_answered_nothing_yet_stands_in_no_others_way(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, target: str, draft: str, file: str
) -> None:
    failed = tmp_path / "failed"
    failed.mkdir()
    (failed / file).write_text("{}")
    (failed / "records.jsonl").touch()
    assert main([target, draft, str(failed)]) == 0
    output = capsys.readouterr()
    assert "draft alone" in output.out
    assert output.err == f"Left out: {failed} has no answer yet; python -m rsd.status tells why.\n"


def test_solutions_that_failed_are_told(capsys: pytest.CaptureFixture[str], tmp_path: Path, target: str) -> None:
    failing = write_run(tmp_path / "f", "failing", {"q1": [True], "q2": [False]})
    lines = (Path(failing) / "records.jsonl").read_bytes().splitlines()
    failed = dump(replace(load(lines[1]), error="OSError: gone", end_reason="error"))
    (Path(failing) / "records.jsonl").write_bytes(lines[0] + b"\n" + failed + b"\n")
    assert main([target, failing]) == 0
    assert "Failed, and count as wrong, 1 of 2 solutions: failing.\n" in capsys.readouterr().out


def test_a_reader_that_has_read_enough_is_no_error(target: str, draft: str) -> None:
    command = shlex.join([sys.executable, "-m", "rsd.compare", target, draft])
    done = subprocess.run(f"{command} | head -c 1", shell=True, capture_output=True, text=True, check=True)
    assert (len(done.stdout), done.stderr) == (1, "")


def test_command_line(target: str, draft: str) -> None:
    """As a user runs it, into a pipe: no line is folded or cut."""
    command = [sys.executable, "-m", "rsd.compare", target, draft]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "…" not in done.stdout
    assert "baseline" in done.stdout
