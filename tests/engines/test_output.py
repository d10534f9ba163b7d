"""What libraries and their processes print goes to a file, and the terminal is given back."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from rsd.engines.output import last_error, printed_to

LATER = "import sys, time; print('at once', flush=True); time.sleep(0.5); print('later', file=sys.stderr)"


def test_a_started_process_prints_to_the_file_for_good(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "new" / "log"
    print("before")
    with suppress(ValueError), printed_to(log):
        os.write(1, b"from here\n")
        started = subprocess.Popen([sys.executable, "-c", LATER])
        raise ValueError
    print("after")
    started.wait()
    assert sorted(log.read_text().splitlines()) == ["at once", "from here", "later"]
    assert capfd.readouterr().out == "before\nafter\n"


def test_the_last_error_is_the_one_that_others_follow_from(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        "INFO: all is well\n(Worker pid=7) ERROR 11-30 ValueError: no such weight\n  raise e\n"
        "(APIServer pid=3) WARNING 12-01 [a.py:1] This may cause errors like `OSError: Too many open files`.\n"
        "(EngineCore pid=3) RuntimeError: Engine core initialization failed. See root cause above.\n"
    )
    assert last_error(log, besides=["nitialization failed"]) == "ValueError: no such weight"
    log.write_text("INFO: all is well\n")
    assert last_error(log, besides=["nitialization failed"]) is None
