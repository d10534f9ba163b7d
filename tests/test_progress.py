"""Progress: a bar on a terminal, lines in a log, nothing where it is off."""

import os
import pty
import re
import subprocess
import time
from pathlib import Path

import pytest

from rsd.progress import RunProgress
from rsd.store import GradeRecord
from tests.conftest import ROOT, command, environment

RIGHT = GradeRecord(question_id="q", sample=0, correct=True, extracted="1", reason=None)


def shown(results: Path, *arguments: str) -> str:
    """What a run writes to a terminal on its standard error."""
    terminal, end = pty.openpty()
    with subprocess.Popen(
        command(f"results_dir={results}", "limit=5", *arguments),
        stdout=subprocess.DEVNULL, stderr=end, cwd=ROOT, env=environment(TERM="xterm"),
    ) as process:  # fmt: skip
        os.close(end)
        written = b""
        try:
            while part := os.read(terminal, 4096):
                written += part
        except OSError:  # the other end is closed
            pass
    os.close(terminal)
    assert process.returncode == 0
    return written.decode()


def test_a_terminal_shows_a_bar_with_the_time_left(tmp_path: Path) -> None:
    told = shown(tmp_path)
    assert "ETA" in told
    assert "5/5" in told
    assert "right so far" in told


def test_off_is_off_on_a_terminal_too(tmp_path: Path) -> None:
    assert shown(tmp_path, "progress=off") == ""


def test_a_log_gets_a_line_every_so_many_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    with RunProgress(total=4, label="rsd", every=0.05) as progress:
        time.sleep(0.12)
        progress.told(RIGHT)
        progress.told(None)
        time.sleep(0.12)
    first, *_, last = capsys.readouterr().err.splitlines()
    assert first == "rsd: 0 of 4"
    assert re.fullmatch(r"rsd: 2 of 4, 50% right so far, \d+\.\d q/s, 0 min \d s left", last)


def test_a_log_gets_no_line_before_its_time_and_none_where_progress_is_off(capsys: pytest.CaptureFixture[str]) -> None:
    for every in (60, None):
        with RunProgress(total=4, label="rsd", every=every) as progress:
            progress.told(RIGHT)
    assert capsys.readouterr().err == ""
