"""Every command, setting, name, file and link in README.md and docs/ is there, and commands compose or run."""

import ast
import gzip
import inspect
import json
import pkgutil
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hydra import compose
from hydra._internal.utils import get_args_parser
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

import rsd.compare
import rsd.grade
import rsd.merge
import rsd.report.__main__
import rsd.report.export
import rsd.status
from rsd.config import MergeConfig, RunConfig, ServeConfig, build, check_as
from rsd.plan import Questions
from rsd.records import Problem
from rsd.report import load
from rsd.sweep.compose import Composer, configuration
from rsd.sweep.grids import expand
from rsd.sweep.runs import planned
from tests.conftest import ROOT
from tests.pages import COMMAND, EXTENDING, SETTINGS, Command, Page, script_of, script_of_spans, told

PAGES = [Page(path) for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))]
OTHERS = [Page(ROOT / "rsd" / "tiny" / "README.md"), Page(ROOT / "results" / "shipped" / "README.md")]
FILES = re.compile(r"# my\w*/")  # begins a block of files, which tests/test_extending.py writes and runs
GROUPS = {"experiment", *(str(path.parent.relative_to(ROOT / "conf")) for path in (ROOT / "conf").rglob("*.yaml"))}
SHIPPED = ROOT / "results" / "shipped" / "runs"
SHORT = 5  # questions of a run
NAMED = {"ids": lambda page: page.name}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place with a few short runs, under the names that the pages use."""
    folder = tmp_path_factory.mktemp("docs")
    for run in ("rsd-binary-delta=0.7-tiny-tiny-m-b38879a28f", "target-alone-tiny-f6c87a592d"):
        shipped = SHIPPED / "tiny_chain" / run
        for benchmark in ("tiny_chain", "math500"):
            place = folder / "results" / "runs" / benchmark / run
            place.mkdir(parents=True)
            shutil.copy(shipped / "manifest.json", place)
            for name in ("records", "grades"):
                with gzip.open(shipped / f"{name}.jsonl.gz", "rb") as lines:
                    (place / f"{name}.jsonl").write_bytes(b"".join(sorted(lines)[:SHORT]))
    return folder


class Checks:
    """What is made of each command: run where it is small, composed as the program would compose it elsewhere."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._composer = Composer()
        self._read: dict[str, Questions] = {}
        self._right: set[tuple[str, ...]] = set()  # what was found right before
        self._programs: dict[str, Callable[[Sequence[str]], None]] = {
            "make": make,
            "python": self.python,
            "rsd-run": self.run,
            SETTINGS: lambda words: self.run(["model=qwen_math_7b", "hydra/launcher=slurm", *words]),
            ".ci/run": lambda _: None if (ROOT / ".ci" / "run").is_file() else pytest.fail("there is no .ci/run"),
            "alpaca_eval": lambda _: None,  # not ours
        }
        self._modules: dict[str, Callable[[Sequence[str]], None]] = {
            "rsd.run": self.run,
            "rsd.serve": self.serve,
            "rsd.fetch": self.run,
            "rsd.merge": self.merge,
            "rsd.report": self.report,
            **{f"rsd.{tool}": self.tool(main) for tool, main in {
                "compare": rsd.compare.main, "grade": rsd.grade.main, "status": rsd.status.main,
                "report.export": rsd.report.export.main,
            }.items()},
        }  # fmt: skip

    def __call__(self, command: Command) -> None:
        """Raises AssertionError, with the command and its place, where it does not work."""
        try:
            self._programs[command.program](command.words)
        except (Exception, SystemExit) as error:
            said = " ".join((command.program, *command.words))
            raise AssertionError(f"{command.place}: {said}\n{type(error).__name__}: {error}") from error

    def python(self, words: Sequence[str]) -> None:
        option, module, *rest = words
        assert option == "-m", "a command of the documentation begins with python -m"
        assert find_spec(module), f"there is no module {module}"
        assert module in self._modules, f"nothing here checks what python -m {module} is told"
        self._modules[module](rest)

    def run(self, words: Sequence[str]) -> None:
        options = get_args_parser().parse_args(list(words))
        if options.config_dir:
            assert shlex.join(["python", "-m", "rsd.run", *words]) in EXTENDING, "its folder is shown nowhere"
            return
        if options.shell_completion:  # tests/test_cli.py asks it
            assert options.overrides == ["install=bash"]
            return
        own = tuple(word for word in options.overrides if word.startswith("hydra"))
        if own not in self._right:
            compose("config", overrides=list(own), return_hydra_config=True)
            self._right.add(own)
        rest = [word for word in options.overrides if word not in own]
        runs = expand(OverridesParser.create().parse_overrides(rest)) if options.multirun else [tuple(rest)]
        assert runs
        kinds = {tuple(w.partition("=")[0] if not w.startswith("method=") else w for w in run): run for run in runs}
        for overrides in {*kinds.values()} - self._right:  # of runs that set the same keys, one
            self._plan(self._composer.configure(overrides), overrides)
            self._right.add(overrides)

    def serve(self, words: Sequence[str]) -> None:
        config = check_as(ServeConfig, OmegaConf.to_container(compose("serve", overrides=list(words)), resolve=True))
        self._plan(config, tuple(words))

    def _plan(self, config: RunConfig, overrides: tuple[str, ...]) -> None:
        """Plan the run, with made-up questions in the place of those that lie on the hub."""
        key = json.dumps(config.benchmark, sort_keys=True)
        problems = tuple(Problem(question_id=f"{i}", question="1+1?", answer="2") for i in range(60))
        self._read.setdefault(key, Questions(config.benchmark["name"], None, problems, data=""))
        run = planned(config, overrides, self._read)
        assert run.error is None or "python -m rsd.merge" in run.error, run.error
        build(config.engine, "engine")

    def merge(self, words: Sequence[str]) -> None:
        merged: list[MergeConfig] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rsd.merge, "merge", lambda config: merged.append(config) or True)
            assert rsd.merge.main(words) == 0
        assert merged

    def report(self, words: Sequence[str]) -> None:
        reported: list[Any] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rsd.report.__main__, "report", lambda *told, **_: reported.append(told) or [])
            assert rsd.report.__main__.main(words) == 0
        ((_, overrides, presets),) = reported
        self._composer.configure((*(f"preset={preset}" for preset in presets or ()), *overrides))

    def tool(self, main: Callable[[Sequence[str]], int]) -> Callable[[Sequence[str]], None]:
        def check(words: Sequence[str]) -> None:
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir(self._folder)
                assert main(words) == 0

        return check


@cache
def _made(words: tuple[str, ...]) -> str | None:
    """What make says against a command, without running it."""
    ended = subprocess.run(
        ["make", "-n", "--no-print-directory", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return ended.stderr if ended.returncode else None


def make(words: Sequence[str]) -> None:
    wrong = _made(tuple(words))
    assert wrong is None, wrong


@pytest.fixture(scope="module")
def checks(folder: Path) -> Iterator[Checks]:
    with configuration():
        yield Checks(folder)


@pytest.mark.parametrize("page", PAGES, **NAMED)
def test_every_command_of_a_block_works(page: Page, folder: Path, checks: Checks) -> None:
    commands = told(script_of(page), folder)
    for block in page.blocks:
        if block.language is None:
            found = sum(command.place == block.place for command in commands)
            assert found >= max(1, block.commands), f"{block.place}: a line of this block was not come to"
        else:
            checked = block.language == "python" or FILES.match(block.text)
            assert checked, f"{block.place}: a block of {block.language}; nothing here checks it"
            assert not block.commands, f"{block.place}: commands stand indented, not in a fence"
    for command in commands:
        checks(command)


@pytest.mark.parametrize("page", PAGES, **NAMED)
def test_every_command_in_the_text_works(page: Page, folder: Path, checks: Checks) -> None:
    commands = told(script_of_spans(page), folder)
    assert len(commands) == sum(COMMAND.match(f"{span} ") is not None for _, span in page.spans)
    for command in commands:
        checks(command)


@pytest.mark.parametrize("page", PAGES, **NAMED)
def test_every_line_of_python_compiles_and_imports_what_is_there(page: Page) -> None:
    for block in page.blocks:
        if block.language == "python" and not FILES.match(block.text):
            tree = compile(block.text, block.place, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            for node in ast.walk(tree):
                if isinstance(node, ast.ImportFrom):
                    module = import_module(str(node.module))
                    assert all(hasattr(module, name.name) for name in node.names), f"{block.place}: {ast.unparse(node)}"


def test_the_examples_from_python_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On shipped runs, in the place of those of the paper's models."""
    for pattern in ("rsd-binary-delta=0.[6-9]-*", "target-alone-*"):
        for run in (SHIPPED / "tiny_chain").glob(pattern):
            shutil.copytree(run, tmp_path / "runs" / "tiny_chain" / run.name)
    here = {"benchmark": "tiny_chain", "model": "tiny"}

    def load_here(*, results: str = "", **told: Any) -> Any:
        return load(tmp_path, **{key: here.get(key, value) for key, value in told.items()})

    monkeypatch.setattr("rsd.report.load", load_here)
    names: dict[str, Any] = {}
    for block in Page(ROOT / "docs" / "api.md").blocks:
        if block.language == "python":
            exec(compile(block.text, block.place, "exec"), names)
    assert names["found"].n == names["star"].questions == 500


def keys_of(path: Path) -> Iterator[str]:
    """The keys that a file of conf/ sets, with those above them."""
    group = str(path.parent.relative_to(ROOT / "conf"))
    prefix = {".": "", "prompt": "model.", "sweep": "", "preset": ""}.get(group, f"{group.replace('/', '.')}.")
    prefix = "" if "@package _global_" in path.read_text() else prefix
    for key in _flat(OmegaConf.to_container(OmegaConf.load(path))):
        yield prefix + key


def _flat(node: Any) -> Iterator[str]:
    for key, value in node.items() if isinstance(node, dict) else ():
        yield str(key)
        yield from (f"{key}.{inner}" for inner in _flat(value))


@cache
def known_keys() -> frozenset[str]:
    """What may stand before a = in the text: keys and groups of the configuration, of rsd.merge, and of `load`."""
    found = {key for path in (ROOT / "conf").rglob("*.yaml") for key in keys_of(path)}
    return frozenset({*found, *GROUPS, *MergeConfig.model_fields, *inspect.signature(load).parameters})


def wrong_in(span: str) -> str | None:
    """What a span of code names that is not there, or settings that are written as none can be."""
    if re.fullmatch(r"(?:[+~]?[a-z_/.]+=\S*\s?)+", span):
        OverridesParser.create().parse_overrides(shlex.split(span))
    for word in span.split():
        setting = re.fullmatch(r"[+~]?((?:hydra/)?[a-z_]+(?:\.[a-z_]+)*)=(\S*)", word)
        if setting and setting[1] not in known_keys():
            return f"there is no key {setting[1]}"
        if setting and setting[1] in GROUPS and re.fullmatch(r"[a-z]\w*(,[a-z]\w*)*", setting[2]):
            options = {path.stem for path in (ROOT / "conf" / setting[1]).glob("*.yaml")}
            absent = set(setting[2].split(",")) - options
            return f"{setting[1]} has no {', '.join(absent)}" if absent else None
    key = re.fullmatch(r"([a-z]+)\.[a-z_]+(\.[a-z_]+)*", span)
    if key and key[1] in {name.partition(".")[0] for name in known_keys() if "." in name} and span not in known_keys():
        return f"there is no key {span}"
    if re.fullmatch(r"(rsd|conf|docs|experiments|tests|notebooks|hydra_plugins|results/shipped)/[\w./-]*", span):
        return None if (ROOT / span).exists() else f"there is no {span}"
    if re.match(r"rsd(\.\w+)+(\(|$)", span):
        try:
            pkgutil.resolve_name(span.partition("(")[0])
        except (ImportError, AttributeError) as error:
            return str(error)
    return None


@pytest.mark.parametrize("page", PAGES, **NAMED)
def test_every_key_file_and_name_in_the_text_is_there(page: Page) -> None:
    spans = [(place, span) for place, span in page.spans if not COMMAND.match(span)]  # those are composed
    faults = [f"{place}: `{span}`: {fault}" for place, span in spans if (fault := wrong_in(span))]
    assert not faults, "\n".join(faults)


def test_the_first_page_leads_to_all_others() -> None:
    first, *others = PAGES
    named = {target.partition("#")[0] for _, target in first.links}
    assert named >= {page.name for page in others}


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], **NAMED)
def test_every_link_leads_somewhere(page: Page) -> None:
    pages = {other.path: other for other in (*PAGES, *OTHERS)}
    for place, target in page.links:
        name, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        path = (page.path.parent / name).resolve() if name else page.path
        assert path.exists(), f"{place}: there is no {target}"
        assert not anchor or anchor in pages[path].anchors, f"{place}: {path.name} has no heading #{anchor}"
