"""Which runs a command asks for."""

from collections.abc import Iterator

import pytest
from hydra import initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser

from rsd.errors import ConfigError
from rsd.sweep.grids import expand
from tests.conftest import ROOT


@pytest.fixture(autouse=True)
def hydra() -> Iterator[None]:
    with initialize_config_dir(config_dir=str(ROOT / "conf"), version_base="1.3"):
        yield


def runs_of(*arguments: str) -> list[tuple[str, ...]]:
    return expand(OverridesParser.create().parse_overrides(list(arguments)))


def test_values_on_the_command_line_are_multiplied() -> None:
    assert runs_of("delta=0.7,0.9", "benchmark=tiny_chain,tiny_story", "limit=5") == [
        ("delta=0.7", "benchmark=tiny_chain", "limit=5"),
        ("delta=0.7", "benchmark=tiny_story", "limit=5"),
        ("delta=0.9", "benchmark=tiny_chain", "limit=5"),
        ("delta=0.9", "benchmark=tiny_story", "limit=5"),
    ]


def test_a_value_may_be_a_list_or_quoted() -> None:
    assert runs_of("subset.level=[4,5]", "tag='a,b'") == [("subset.level=[4,5]", "tag='a,b'")]


def test_a_sweep_is_multiplied_with_the_command_line() -> None:
    runs = runs_of("+sweep=delta_paper", "benchmark=tiny_chain,tiny_story")
    assert len(runs) == 8
    assert ("delta=0.6", "benchmark=tiny_chain") in runs


def test_grids_of_an_experiment_are_a_union() -> None:
    runs = runs_of("+experiment=fig5")
    assert len(runs) == 13
    assert sum("method=rsd" in run for run in runs) == 11
    assert {line for run in runs for line in run if line.startswith("model=")} == {"model=tiny"}


def test_the_command_line_wins_over_the_experiment() -> None:
    runs = runs_of("+experiment=fig5", "delta=0.7", "benchmark=tiny_story", "limit=5")
    assert len(runs) == 3, "equal runs are one"
    assert all({"benchmark=tiny_story", "limit=5"} < set(run) for run in runs)


def test_experiments_are_joined_and_share_runs() -> None:
    assert set(runs_of("+experiment=fig5,figB1")) == set(runs_of("+experiment=fig5"))


def test_a_preset_names_the_models() -> None:
    for run in runs_of("+experiment=fig5", "preset=paper"):
        assert {"model=qwen_math_7b", "benchmark=math500", "preset=paper"} < set(run)


@pytest.mark.parametrize(
    ("argument", "sentence"),
    [
        (
            "+experiment=table22",
            r"\+experiment=table22: there is no experiments/table22.yaml; did you mean table2\?",
        ),
        ("+experiment=fig5,table22", r"\+experiment=table22: there is no experiments/table22.yaml"),
        ("+sweep=delta", r"\+sweep=delta: there is no conf/sweep/delta.yaml; did you mean delta_\w+\?"),
        ("delta=interval(0,1)", r"delta=interval\(0,1\): give a list of values"),
    ],
)
def test_what_is_not_there_is_an_error(argument: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        runs_of(argument)
