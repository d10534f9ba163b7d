"""An engine that ends by itself is one sentence, with the cause and the log, and ends the run."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rsd.engines.base import Context, ModelSource
from rsd.engines.endings import has_ended, not_served
from rsd.engines.served import Replicas
from rsd.engines.transformers import TransformersEngine
from rsd.errors import EngineError
from rsd.state import stored_state
from rsd.store import read_records
from tests.conftest import Run

SOURCE = ModelSource(key="model.draft.path", path="m", revision=None, dtype="float32", context=512)
DEAD = "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above).\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Of an engine that told of an error, and of what followed from that."""
    log = tmp_path / "vllm-draft.log"
    log.write_text(f"(EngineCore pid=7) ERROR 11-30 [core.py:1] RuntimeError: no such offset\n{DEAD}")
    return log


@pytest.mark.parametrize(
    ("status", "cause"),
    [
        (None, "RuntimeError: no such offset"),
        (1, "RuntimeError: no such offset"),
        (-9, "it was ended by SIGKILL, as the system does when memory runs out"),
        (-15, "it was ended by SIGTERM"),
    ],
)
def test_the_cause_is_the_signal_or_else_the_error_that_others_follow_from(
    status: int | None, cause: str, log: Path
) -> None:
    told = str(has_ended("draft", SOURCE, log, status))
    assert told == f"engine.draft: vLLM, which served m, has ended ({cause}); see {log}."


def test_a_log_without_an_error_leaves_the_status(log: Path) -> None:
    log.write_text(DEAD)
    assert "(it ended with status 1)" in str(has_ended("draft", SOURCE, log, 1))
    log.write_text(f"(APIServer pid=3) WARNING 12-01 [a.py:1] MPClient: engine core exited unexpectedly\n{DEAD}")
    assert "(its engine was killed)" in str(has_ended("draft", SOURCE, log, 1))
    failed = "Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': -9}"
    assert "vLLM cannot serve m (it was ended by SIGKILL" in str(not_served("draft", SOURCE, log, failed))
    log.write_text(f"INFO: all is well\n(APIServer pid=3) ERROR 12-01 RuntimeError: {failed}\n")
    assert "vLLM cannot serve m (it was ended by SIGKILL" in str(not_served("draft", SOURCE, log, "it ended", 1))
    log.write_text("INFO: all is well\n")
    assert "vLLM cannot serve m (it said so)" in str(not_served("draft", SOURCE, log, "it said so"))


class Ending:
    """An engine of vLLM's, as far as it is asked, that is dead, or that refuses a request."""

    def __init__(self, *, errored: bool) -> None:
        self.errored = errored
        manager = SimpleNamespace(processes=[SimpleNamespace(exitcode=code) for code in (None, 1)])
        self.engine_core = SimpleNamespace(resources=SimpleNamespace(engine_manager=manager))

    async def generate(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise ValueError("EngineCore encountered an issue")
        yield


@pytest.mark.parametrize("errored", [True, False])
def test_only_an_engine_that_has_ended_ends_the_run(errored: bool, log: Path) -> None:
    replicas = Replicas("draft", SOURCE)
    replicas.add(Ending(errored=errored), log)
    with pytest.raises(EngineError if errored else ValueError, match="no such offset" if errored else "EngineCore"):
        asyncio.run(replicas.request(Context(prompt=(1,)), "generate", None))


@pytest.mark.parametrize(("settings", "name"), [(["method=rsd"], "rsd"), (["method=best_of_n", "method.n=2"], "best")])
def test_no_question_fails_for_an_engine_that_has_ended(
    settings: list[str], name: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same command goes on as if nothing had been asked."""

    class Ended:
        labels = 1

        def __init__(self, classifier: Any) -> None:
            self.tokenizer = classifier.tokenizer

        async def classify(self, context: Context) -> Any:
            raise EngineError("engine.prm: vLLM has ended.")

    async def before(_: Any) -> list[float]:
        return []

    load = TransformersEngine.load_classifier
    with monkeypatch.context() as patch:
        patch.setattr("rsd.invocation.fixed_rewards", before)  # asked for before any question, of an engine that lives
        patch.setattr(TransformersEngine, "load_classifier", lambda self, source: Ended(load(self, source)))
        with pytest.raises(EngineError, match=r"^engine\.prm: vLLM has ended\.$"):
            run("limit=3", *settings)
    (folder,) = (tmp_path / "runs" / "tiny_chain").glob(f"{name}*")
    assert not read_records(folder)
    assert stored_state(folder).error == "engine.prm: vLLM has ended."
    assert all(record.error is None for record in run("limit=3", *settings).values())
