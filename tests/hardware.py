"""The tables of docs/cluster.md: GPUs that the planner needs, and GPU-hours of the paper's tables.

python -m tests.hardware    # prints both, to be pasted there when a model, the planner or an experiment changes
"""

import json
import tempfile
from collections.abc import Iterator, Sequence
from itertools import product

from hydra import initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser

from rsd.config import RunConfig, build
from rsd.engines.kept import KeptEngine
from rsd.engines.placement import GIB, Need, place
from rsd.errors import ConfigError
from rsd.plan import Plan, Questions, limits_of, make_plan
from rsd.records import Problem, Role
from rsd.sweep.compose import Composer
from rsd.sweep.estimate import estimate
from rsd.sweep.grids import expand
from tests.conftest import ROOT

MEMORY = {"24 GB": 22.0, "48 GB": 44.4, "80 GB": 79.1, "141 GB": 139.8}  # GiB that drivers report, the least of a class
COUNTS = range(1, 9)  # GPUs of a node
DIVISIONS = (1, 2, 4, 8)  # that heads allow
RATE = 40e12  # FLOP/s of one GPU: an assumption, which the page states
EXPERIMENTS = ("table2", "table3", "table5", "tableB1", "tableB2")
SETTINGS = [
    ("qwen_math_7b", "skywork_1p5b"), ("qwen_math_7b", "skywork_7b"), ("qwen_math_7b", "qwen_prm_72b"),
    ("llama_8b", "skywork_7b"), ("qwen_math_72b_1p5b", "skywork_1p5b"), ("qwen_math_72b", "skywork_7b"),
]  # fmt: skip
SHAPES = {  # layers, key-value heads, size of a head: by part of the checkpoint's name
    "1.5B": (28, 2, 128), "72B": (80, 8, 128), "7B": (28, 4, 128), "3.2-1B": (16, 8, 64), "8B": (32, 8, 128),
}  # fmt: skip


def need(path: str, parameters: int | None, tokens: int, parallel: int) -> Need:
    """What a model in bfloat16 asks of its devices, whose longest text has `tokens`."""
    layers, heads, size = next(shape for name, shape in SHAPES.items() if name in path)
    assert parameters is not None, path
    cache = 2 * 2 * layers * heads * size * (tokens + 1)
    return Need(weights=2 * parameters / GIB, cache=cache / GIB, parallel=parallel)


def fits(config: RunConfig, memory: float, count: int, target: int, prm: int) -> bool:
    """Whether the planner places draft, target and PRM on `count` GPUs, the latter two divided over so many."""
    policies, tokens = config.model.policies, limits_of(config)[0].total_tokens
    needs: dict[Role, Need] = {
        role: need(policy.path, policy.parameters, tokens, target if role == "target" else 1)
        for role, policy in policies.items()
    }
    needs["prm"] = need(config.prm.path, config.prm.parameters, config.prm.max_length, prm)
    try:
        place(needs, [memory] * count)
    except ConfigError:
        return False
    return True


def gpus(config: RunConfig, memory: float) -> str:
    """The fewest GPUs of a node, with the least division of target and PRM that fits on them."""
    for count, target, prm in product(COUNTS, DIVISIONS, DIVISIONS):
        if max(target, prm) <= count and fits(config, memory, count, target, prm):
            divided = ", ".join(f"{role} ×{size}" for role, size in (("target", target), ("prm", prm)) if size > 1)
            return f"{count} ({divided})" if divided else str(count)
    return "–"


def plans(experiment: str, results: str) -> Iterator[Plan]:
    """Every run of the experiment on the paper's models, with as many questions as its benchmark should have."""
    lines = [f"+experiment={experiment}", "preset=paper", f"results_dir={results}"]
    read: dict[str, Questions] = {}
    composer = Composer()
    for overrides in expand(OverridesParser.create().parse_overrides(lines)):
        config = composer.configure(overrides)
        key = json.dumps(config.benchmark, sort_keys=True)
        if key not in read:
            benchmark = build(config.benchmark, "benchmark")
            problems = tuple(Problem(question_id=f"{i}", question="", answer="") for i in range(benchmark.size))
            read[key] = Questions(benchmark.name, benchmark.size, problems, data="")
        yield make_plan(config, KeptEngine(config.engine, {}), read)


def table(headers: list[str], rows: list[list[str]]) -> str:
    """In Markdown."""
    return "\n".join(f"| {' | '.join(row)} |" for row in (headers, ["---"] * len(headers), *rows)) + "\n"


def hardware() -> str:
    """GPUs by configuration and memory."""
    rows = []
    for model, prm in SETTINGS:
        config = Composer().configure([f"model={model}", f"prm={prm}"])
        rows.append([f"`{model}`", f"`{prm}`", *(gpus(config, memory) for memory in MEMORY.values())])
    return table(["`model=`", "`prm=`", *MEMORY], rows)


def hours(experiments: Sequence[str] = EXPERIMENTS) -> str:
    """Work of the paper's tables, and GPU-hours at the assumed rate."""
    rows = []
    for experiment in experiments:
        with tempfile.TemporaryDirectory() as results:
            estimates = estimate(plans(experiment, results), {})
        flops = sum(one.flops or 0 for one in estimates.values())
        rows.append([f"`{experiment}`", f"{len(estimates)}", f"{flops / 1e18:.3g}", f"{flops / RATE / 3600:.3g}"])
    return table(["experiment", "runs", "EFLOPs", "GPU-hours"], rows)


if __name__ == "__main__":
    with initialize_config_dir(config_dir=str(ROOT / "conf"), version_base="1.3"):
        print(hardware())
        print(hours())
