"""The command line: help, completion, and one clear sentence for whatever is wrong."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rsd.run import main
from rsd.store import read_records
from tests.conftest import ROOT, Command, command, environment


def fails(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    """Run the command in this process; it must end with status 2 and one line, before a model loads."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a model was loaded before the configuration was found wrong")

    monkeypatch.setattr("transformers.PreTrainedModel.from_pretrained", refuse)
    monkeypatch.setattr(sys, "argv", ["rsd.run", *arguments])
    monkeypatch.delenv("HYDRA_FULL_ERROR", raising=False)
    monkeypatch.setattr("rsd.command._failures", [])
    status = main()
    errors = capsys.readouterr().err.strip()
    assert status == 2
    assert len(errors.splitlines()) == 1, errors
    return errors


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["lmit=5"], "There is no key lmit; did you mean limit?"),
        (["modle=tiny"], "There is no key modle; did you mean model?"),
        (["+lmit=5"], "There is no key lmit; did you mean limit?"),
        (["limits.stps=5"], "There is no key limits.stps; did you mean steps?"),
        (["sampling.n=5"], "There is no key sampling.n; sampling takes temperature, top_p."),
        (["+limits.stps=5"], "There is no key limits.stps; did you mean steps?"),
        (["+weighting.p=0.5"], "There is no key weighting.p"),
        (["+engine.max_row=3"], "There is no key engine.max_row; did you mean max_rows?"),
        (["+model.draft.pth=x"], "There is no key model.draft.pth; did you mean path?"),
        (["+experiment=table2"], "There is no key experiment"),
        (["+foo-bar=1"], "There is no key foo-bar"),
        (["+limits.foo-bar=1"], "There is no key limits.foo-bar"),
        (["+weighting.0=1"], "There is no key weighting.0"),
        (["seed=99999999999999999999"], "seed=99999999999999999999 is wrong"),
        (["seed=-1"], "seed=-1 is wrong"),
        (["model.reference_prompt=hello"], "must hold {question} in reference_prompt"),
        (["sampling.temperature=inf"], "sampling.temperature=inf is wrong"),
        (["weighting=logistic", "weighting.alpha=-3"], "weighting.alpha=-3 is wrong"),
        (["benchmark.name=../../x"], "benchmark.name='../../x' is wrong"),
        (["ids=[]"], "ids=[] is wrong"),
        (["delta=7"], "delta=7 is outside the reward's range [0, 1]"),
        (["delta=-0.1"], "delta=-0.1 is outside the reward's range [0, 1]"),
        (["delta=nan"], "weighting.delta=nan is wrong"),
        (["delta=high"], "delta='high' is wrong"),
        (["weighting=constant", "weighting.p=1.5"], "weighting.p=1.5 is wrong"),
        (["weighting=logistic", "weighting.alpha=nan"], "weighting.alpha=nan is wrong"),
        (["prm.adapter=null"], "prm=tiny_m has no adapter; set prm.adapter"),
        (["prm.adapter=rsd.rewards.chat.Nothing"], "prm.adapter: there is no class 'rsd.rewards.chat.Nothing'"),
        (["model.target=null"], "needs a target model, and model=tiny has none"),
        (["method=single", "model.target=null"], "needs a target model, and model=tiny has none"),
        (["model.draft=null"], "needs a draft model, and model=tiny has none"),
        (["model.draft.path=/no/such/folder"], "model.draft.path: there is no folder /no/such/folder"),
        (["model.draft.dtype=float8"], "model.draft.dtype='float8' is wrong"),
        (["model.target.context=100"], "model.target.context=100 leaves less than 256 tokens"),
        (["method=single", "method.role=prm"], "method.role='prm' is wrong"),
        (["limit=0"], "limit=0 is wrong"),
        (["samples=0"], "samples=0 is wrong"),
        (["offset=500"], "offset=500 leaves none of the 500 questions"),
        (["ids=[abc]"], "ids: tiny_chain has no question abc"),
        (["concurrency=0"], "concurrency=0 is wrong: it should be greater than or equal to 1 or 'auto'"),
        (["concurrency=x"], "concurrency='x' is wrong: it should be a valid integer or 'auto'"),
        (["score_target=2"], "score_target=2 is wrong: it should be 'rejected' or 'all' or False"),
        (["limit=true"], "limit=True is wrong: it should be a number"),
        (["method=beam", "method.width=true"], "method.width=True is wrong: it should be a number"),
        (["temperature=0.6"], "There is no key temperature; did you mean sampling.temperature?"),
        (["method=beem"], "There is no method=beem; did you mean beam?"),
        (["+foo=1"], "There is no key foo; --help lists the keys"),
        (["prm=null"], "Got NoneType; write model=tiny, the name of one option"),
        (["~delta"], "weighting.delta: Interpolation key 'delta' not found"),
        (["hydra/launcher=slurm"], "hydra/launcher=slurm is for sweeps; add -m"),
        (["sampling.temperature=-1"], "sampling.temperature=-1"),
        (["sampling.top_p=0"], "sampling.top_p=0"),
        (["step.delimiter=''"], "step.delimiter"),
        (["tag='a/b'"], "tag='a/b' is wrong: it should match pattern"),
        (["model=huge"], "There is no model=huge; there are llama_8b, qwen_7b, "),
        (["benchmark.path=/no/such/file.jsonl"], "benchmark.path: cannot read /no/such/file.jsonl"),
        (["method._target_=rsd.methods.rsd.Nothing"], "method._target_: there is no class"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_setting_is_one_sentence_before_any_model_loads(
    arguments: list[str],
    sentence: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    assert sentence in fails(capsys, monkeypatch, f"results_dir={tmp_path}", *arguments)
    assert not list(tmp_path.rglob("records.jsonl"))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ('{"question": "1+1?", "answer": "2"}\n{"question": "2+', "line 2 of {path} is not JSON"),
        ('{"question": "1+1?", "answer": "2"}\n[1]\n', "line 2 of {path} is not a JSON object"),
        ('{"question": "1+1?", "answer": "2"}\n\n{"question": "2+2?"}\n', "line 3 of {path} has no gold answer"),
        ('{"question": "1+1?", "answer": null}\n', "line 1 of {path} has no gold answer"),
        ('{"question": "1+1?", "answer": NaN}\n', "line 1 of {path} has no gold answer"),
        (
            '{"question": "?", "answer": "C", "kind": "choice", "choices": [1, 2]}',
            "has no letter from A to B as gold answer",
        ),
        (
            '{"question": "?", "answer": "2", "kind": "choice"}',
            "has no letter from A to J as gold answer, but '2'",
        ),
        ('{"question": "  ", "answer": "2"}\n', "line 1 of {path} has no question"),
        ("", "{path} holds no question"),
        ("\n\n", "{path} holds no question"),
        ("\xff", "cannot read {path}"),
        ('{"question": "\\ud800", "answer": "2"}\n', "line 1 of {path} holds half of a character"),
    ],
)
def test_a_broken_benchmark_names_file_and_line(
    content: str, sentence: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_bytes(content.encode("latin-1"))
    errors = fails(capsys, monkeypatch, f"results_dir={tmp_path}", f"benchmark.path={path}")
    assert sentence.format(path=path) in errors


def test_a_results_folder_that_cannot_be_written_is_one_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    errors = fails(capsys, monkeypatch, f"results_dir={tmp_path / 'file'}")
    assert "set results_dir to a folder that can be written" in errors


def test_a_full_disk_stops_the_run_in_one_sentence_and_keeps_what_is_done(cli: Command, tmp_path: Path) -> None:
    assert cli("limit=5").returncode == 0
    (records,) = (tmp_path / "results").rglob("records.jsonl")
    kept = records.read_bytes()
    # a limit on the size of files fails writes in the middle of a line, as a full disk does
    limit = len(kept) + 300
    script = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}));"
        "from rsd.run import main; sys.exit(main())"
    )
    full = subprocess.run(
        [sys.executable, "-c", script, f"results_dir={tmp_path / 'results'}", "limit=30"],
        capture_output=True, text=True, cwd=ROOT, env=environment(), check=False,
    )  # fmt: skip
    assert full.returncode == 2
    assert f"cannot write {records}" in full.stderr
    assert len(full.stderr.strip().splitlines()) == 1
    assert records.read_bytes().startswith(kept)
    assert all(json.loads(line) for line in records.read_bytes().splitlines())
    after = cli("limit=30")
    assert after.returncode == 0
    assert len(records.read_bytes().splitlines()) == 30


def test_corrupt_weights_are_one_sentence_and_the_traceback_is_there_on_demand(cli: Command, tmp_path: Path) -> None:
    broken = tmp_path / "model"
    broken.mkdir()
    (broken / "config.json").write_text("{")
    plain = cli(f"model.draft.path={broken}")
    assert plain.returncode == 2
    assert plain.stderr.startswith("Error: model.draft.path: cannot read the weights")
    assert len(plain.stderr.strip().splitlines()) == 1
    full = cli(f"model.draft.path={broken}", HYDRA_FULL_ERROR="1")
    assert full.returncode == 2
    assert "Traceback (most recent call last)" in full.stderr


def test_help_and_cfg_answer_without_loading_anything_heavy() -> None:
    for arguments in (["--help"], ["--cfg", "job"], ["--info", "defaults"]):
        script = (
            "import sys\nfrom rsd.run import main\n"
            "try:\n    main()\nexcept SystemExit:\n    pass\n"
            "print([name for name in ('torch', 'transformers', 'scipy', 'sympy', 'pydantic') if name in sys.modules])"
        )
        shown = subprocess.run(
            [sys.executable, "-c", script, *arguments], capture_output=True, text=True, cwd=ROOT, check=True
        )
        *text, loaded = shown.stdout.strip().splitlines()
        assert loaded == "[]"
        assert "tiny" in "\n".join(text)


def test_help_names_groups_and_keys(cli: Command) -> None:
    shown = cli("--help").stdout
    for word in (
        "method: beam, best_of_n, majority, process_best_of_n, rsd, rsd_speculative, sample, single, speculative",
        "weighting: binary, clipping, constant, likelihood_ratio, logistic, reward_ratio, sigmoidal",
        "delta: 0.7",
    ):
        assert word in shown


@pytest.mark.parametrize("name", ["fetch", "serve"])
def test_help_is_of_the_command_that_is_asked(name: str) -> None:
    command = [sys.executable, "-m", f"rsd.{name}", "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment(), check=True).stdout
    assert f"python -m rsd.{name} model=qwen_math_7b" in shown
    assert "python -m rsd.run" not in shown


def test_a_reader_that_has_read_enough_is_no_failure_of_questions(tmp_path: Path) -> None:
    run = shlex.join(command(f"results_dir={tmp_path}", "method=single", "method.role=draft", "limit=3"))
    done = subprocess.run(
        ["bash", "-c", f"{run} | head -n 1; exit ${{PIPESTATUS[0]}}"],
        capture_output=True, text=True, cwd=ROOT, env=environment(), check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")
    (folder,) = (tmp_path / "runs" / "tiny_chain").iterdir()
    assert len(read_records(folder)) == 3


def test_shell_completion_knows_groups_and_keys() -> None:
    def complete(line: str) -> list[str]:
        shown = subprocess.run(
            [Path(sys.executable).parent / "rsd-run", "-sc", "query=bash"],
            capture_output=True,
            text=True,
            cwd=ROOT,
            check=True,
            env={**os.environ, "COMP_LINE": line, "COMP_POINT": str(len(line))},
        )
        return shown.stdout.split()

    assert "weighting=binary" in complete("rsd-run weighting=b")
    assert "limits.step_tokens=" in complete("rsd-run limits.st")


def test_the_tiny_family_runs_from_anywhere_and_prints_its_summary(tmp_path: Path) -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "rsd.run", "limit=5", "prm.context=60"],
        capture_output=True, text=True, cwd=tmp_path, env=environment(), check=True,
    )  # fmt: skip
    assert "accuracy" in shown.stdout
    assert "5 questions" in shown.stdout
    (folder,) = (tmp_path / "results" / "runs" / "tiny_chain").iterdir()
    scored = [p.usage["prm"].prompt for r in read_records(folder).values() for p in r.proposals if "prm" in p.usage]
    beyond = json.loads((folder / "summary.json").read_text())["beyond_context"]
    assert 0 < sum(tokens > 60 for tokens in scored) == beyond < len(scored)
    assert f"{beyond}  steps scored beyond the length it was trained on" in shown.stdout
    assert not (tmp_path / "outputs").exists(), "Hydra leaves no folders of its own"


def test_an_interrupt_that_a_library_made_an_error_of_its_own_of_is_still_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(*_: object) -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)
        except KeyboardInterrupt as error:  # as the import system does while it initialises an extension module
            raise ImportError("initialization failed") from error

    monkeypatch.setattr(sys, "argv", ["rsd.run", f"results_dir={tmp_path}", "limit=1"])
    monkeypatch.delenv("HYDRA_FULL_ERROR", raising=False)
    monkeypatch.setattr("rsd.engines.transformers.load_model", load)
    monkeypatch.setattr("rsd.command._failures", [])
    monkeypatch.setattr("rsd.signals._came", [])
    assert main() == 130
    assert capsys.readouterr().err == "Error: Interrupted; what was done is kept, and the same command goes on.\n"
