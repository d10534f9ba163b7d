"""Every experiment composes and instantiates, and asks for the runs that the paper's table or figure shows."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hydra import initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser

from rsd.config import build
from rsd.sweep.compose import Composer
from rsd.sweep.grids import expand
from tests.conftest import ROOT, SHARED

EXPERIMENTS = sorted(path.stem for path in (ROOT / "experiments").glob("*.yaml"))
SWEEPS = sorted(path.stem for path in (ROOT / "conf" / "sweep").glob("*.yaml"))


@pytest.fixture(autouse=True)
def hydra() -> Iterator[None]:
    with initialize_config_dir(config_dir=str(ROOT / "conf"), version_base="1.3"):
        yield


def runs_of(*arguments: str) -> list[tuple[str, ...]]:
    return expand(OverridesParser.create().parse_overrides(list(arguments)))


def covering(runs: Sequence[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """As few of the runs as show every pair of a method with a value of another key."""
    seen: set[tuple[str, str]] = set()
    for run in runs:
        method = next((line for line in run if line.startswith("method=")), "")
        pairs = {(method, line) for line in run}
        if pairs - seen:
            seen |= pairs
            yield run


def instantiate(overrides: Sequence[str]) -> None:
    config = Composer().configure(overrides)
    weighting = build(config.weighting, "weighting")
    build(config.method, "method", weighting=weighting, score_target=config.score_target or None)
    for key in ("benchmark", "engine", "logger"):
        build(getattr(config, key), key)


@pytest.mark.parametrize("preset", ["tiny", "paper"])
@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_experiment_composes_and_instantiates(experiment: str, preset: str) -> None:
    for overrides in covering(runs_of(f"+experiment={experiment}", f"preset={preset}")):
        instantiate(overrides)


@pytest.mark.parametrize("sweep", SWEEPS)
def test_every_sweep_composes_and_instantiates(sweep: str) -> None:
    for overrides in covering(runs_of(f"+sweep={sweep}", "method=majority" if sweep == "n_samples" else "method=rsd")):
        instantiate(overrides)


def test_the_paper_preset_chooses_real_models_and_the_command_line_wins() -> None:
    config = Composer().configure(["preset=paper"])
    assert (config.model.name, config.prm.name, config.benchmark["name"]) == ("qwen_math_7b", "skywork_7b", "math500")
    assert config.engine["_target_"] == "rsd.engines.vllm.VLLMEngine"
    assert Composer().configure(["preset=paper", "model=tiny"]).model.name == "tiny"


MODELS = {  # family, target, draft: model=
    ("Qwen2.5-Math-Instruct", "7B", "1.5B"): "qwen_math_7b",
    ("Qwen2.5-Math-Instruct", "72B", "7B"): "qwen_math_72b",
    ("Qwen2.5-Math-Instruct", "72B", "1.5B"): "qwen_math_72b_1p5b",
    ("Qwen2.5-Instruct", "7B", "1.5B"): "qwen_7b",
    ("Llama-3.1-Instruct", "8B", "1B"): "llama_8b",
}
BENCHMARKS = {
    "MATH500": "math500", "GSM8K": "gsm8k", "GaoKao2023En": "gaokao2023en", "OlympiadBench": "olympiadbench",
    "GPQA_Diamond": "gpqa_diamond", "MMLU_STEM": "mmlu_stem", "Minerva_Math": "minerva_math",
    "CN_Middle_School_24": "cn_middle_school", "College_Math": "college_math",
}  # fmt: skip
PRMS = {"1.5B": "prm=skywork_1p5b", "7B": "prm=skywork_7b", "Skywork-o1-Open-PRM-1.5B": "prm=skywork_1p5b",
        "Skywork-o1-Open-PRM-7B": "prm=skywork_7b", "Qwen2.5-Math-PRM-7B": "prm=qwen_prm_7b",
        "Qwen2.5-Math-PRM-72B": "prm=qwen_prm_72b", "1.5B*": "prm=skywork_1p5b_merged",
        "7B*": "prm=skywork_7b_merged"}  # fmt: skip


def wanted(row: dict[str, str]) -> list[set[str]]:
    """What overrides the runs behind a row of a paper's table have, beside the benchmark."""
    target, draft = (row.get(key, "-").removeprefix("Qwen2.5-Math-Instruct-") for key in ("target", "draft"))
    draft = row.get("base_or_draft", draft)
    family, setting = row.get("family", "Qwen2.5-Math-Instruct"), row.get("setting", "")
    merged = "_merged_draft" * draft.endswith("*") + "_merged_target" * target.endswith("*")
    target, draft = target.rstrip("*"), draft.rstrip("*")
    model = next(
        name
        for (of, large, small), name in MODELS.items()
        if of == family and target in (large, "-") and draft in (small, "-")
    )
    prm = {PRMS[row["prm"]]} if row.get("prm", "-") != "-" else set()
    number = setting.rpartition("@" if "@" in setting else "=")[2]
    match row["method"]:
        case "Single Model" | "Single Target Model":
            methods = [{"method=single"} | ({"method.role=draft"} if target == "-" else set())]
        case "SD":
            methods = [{"method=speculative"}]
        case "Majority Voting":
            methods = [{"method=majority", f"method.n={number}"}]
        case "Best-of-N":
            methods = [{"method=best_of_n", f"method.n={number}"}]
        case "Process Best-of-N":
            methods = [{"method=process_best_of_n", f"method.n={number}"}]
        case "Beam Search":
            methods = [{"method=beam", f"method.width={number}"}]
        case _:
            deltas = ["0.6", "0.7", "0.8", "0.9"] if setting == "delta*" else [row.get("delta") or number]
            methods = [{"method=rsd", f"delta={delta}"} for delta in deltas]
    return [{f"model={model}{merged}", *method, *prm} for method in methods]


@pytest.mark.parametrize("table", ["table2", "table3", "table5", "tableB1", "tableB2", "tableB3"])
def test_an_experiment_asks_for_every_cell_of_its_table(table: str) -> None:
    path: Path = SHARED / "paper" / f"{table}.csv"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    runs = [set(run) for run in runs_of(f"+experiment={table}", "preset=paper")]
    needed = 0
    for row in csv.DictReader(path.open()):
        for benchmark in (name for column, name in BENCHMARKS.items() if column in row):
            for overrides in wanted(row):
                cell = {*overrides, f"benchmark={benchmark}"}
                assert any(cell <= run for run in runs), (row, cell)
                needed += 1
    assert needed >= 8
