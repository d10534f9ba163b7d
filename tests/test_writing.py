"""What is appended is whole lines, whatever happens to the process or to the disk while it is written."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from rsd.errors import StoreError
from rsd.records import dump
from rsd.store import JsonLines, create_folder, read_records, write_json
from tests.conftest import ROOT
from tests.stored import record

GO_ON = "run the same command again: everything up to here is kept"


def run(script: str, *arguments: Path) -> str:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=60).stdout


def test_a_full_disk_is_told_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.symlink_to("/dev/full")
    with JsonLines(path) as lines, pytest.raises(StoreError) as caught:
        lines.append(b"{}")
    assert str(caught.value) == f"cannot write {path}: the disk is full; free some space and {GO_ON}"


FILL = """
import resource, sys
from pathlib import Path
from rsd.errors import StoreError
from rsd.store import JsonLines, write_json

path, manifest = map(Path, sys.argv[1:])
write_json(manifest, {"old": True})
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
lines = JsonLines(path)
for attempt in ("first", "second"):
    try:
        while True:
            lines.append(b'"' + b"x" * 97 + b'"')  # 100 bytes with the newline
            if attempt == "first" and path.stat().st_size == 900:
                lines.append(b'"' + b"y" * 47 + b'"')  # 50 bytes: the limit lies within the next line
    except StoreError as error:
        print(error)
try:
    write_json(manifest, "x" * 2000)
except StoreError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
lines.append(b'"resumed"')
"""


def test_a_disk_that_fills_up_within_a_line_leaves_whole_lines(tmp_path: Path) -> None:
    path, manifest = tmp_path / "records.jsonl", tmp_path / "manifest.json"
    messages = run(FILL, path, manifest).splitlines()
    fault = f"the limit on the size of files is reached; raise it (`ulimit -f`) and {GO_ON}"
    assert messages == [f"cannot write {path}: {fault}"] * 2 + [f"cannot write {manifest}: {fault}"]
    assert [orjson.loads(line) for line in path.read_bytes().splitlines()] == ["x" * 97] * 9 + ["y" * 47, "resumed"]
    assert orjson.loads(manifest.read_bytes()) == {"old": True}
    assert sorted(os.listdir(tmp_path)) == ["manifest.json", "records.jsonl"]
    with JsonLines(path) as lines:
        lines.append(b'"again"')
    assert path.read_bytes().endswith(b'"resumed"\n"again"\n')


@pytest.mark.parametrize("closed", [False, True], ids=["same process", "next process"])
def test_half_a_line_that_cannot_be_cut_off_is_never_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closed: bool
) -> None:
    path = tmp_path / "records.jsonl"
    lines = JsonLines(path)
    lines.append(dump(record("a")))
    with monkeypatch.context() as broken:
        real_write = os.write

        def write_half(descriptor: int, data: memoryview) -> int:
            real_write(descriptor, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        def refuse(descriptor: int, length: int) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        broken.setattr(os, "write", write_half)
        broken.setattr(os, "ftruncate", refuse)
        for _ in range(2):
            with pytest.raises(StoreError):
                lines.append(dump(record("b")))
        assert not path.read_bytes().endswith(b"\n")
    if closed:
        lines.close()
        lines = JsonLines(path)
    lines.append(dump(record("c")))
    lines.close()
    assert path.read_bytes() == dump(record("a")) + b"\n" + dump(record("c")) + b"\n"


def test_an_interrupt_within_a_line_leaves_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "records.jsonl"
    real_write = os.write

    def write_part(descriptor: int, data: memoryview) -> int:
        if len(data) < 10:
            raise KeyboardInterrupt
        return real_write(descriptor, data[:5])

    with JsonLines(path) as lines:
        monkeypatch.setattr(os, "write", write_part)
        with pytest.raises(KeyboardInterrupt):
            lines.append(dump(record("a")))
        assert path.read_bytes() == b""


def test_a_line_taken_in_parts_is_written_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real_write(descriptor, data[:5]))
    with JsonLines(tmp_path / "records.jsonl") as lines:
        lines.append(dump(record("a")))
    assert read_records(tmp_path) == {("a", 0): record("a")}


@pytest.mark.parametrize(
    ("code", "fault", "mend"),
    [
        (errno.EDQUOT, "the disk quota is used up", "free some space"),
        (errno.EROFS, "the file system is read-only", "make it writable"),
        (errno.EACCES, "permission is denied", "make it writable"),
        (errno.EIO, "Input/output error", "mend that"),
    ],
)
def test_a_write_refused_half_way_undoes_the_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, fault: str, mend: str
) -> None:
    path = tmp_path / "records.jsonl"

    write, written = os.write, []

    def refuse(descriptor: int, data: bytes) -> int:
        if written:
            raise OSError(code, os.strerror(code))
        written.append(write(descriptor, data[:1]))
        return 1

    with JsonLines(path) as lines, monkeypatch.context() as patched:
        patched.setattr(os, "write", refuse)
        with pytest.raises(StoreError) as caught:
            lines.append(b"{}")
    assert str(caught.value) == f"cannot write {path}: {fault}; {mend} and {GO_ON}"
    assert path.read_bytes() == b""


APPEND = """
import sys
from pathlib import Path
from rsd.records import Record, dump
from rsd.store import JsonLines

lines = JsonLines(Path(sys.argv[1]))
for sample in range(10**9):
    lines.append(dump(Record(question_id="a", sample=sample, seed=0, invocation=1, prompt_tokens=1,
                             end_reason="eos", response="x" * 10000, proposals=())))
    print(sample, flush=True)
"""


def test_a_killed_process_loses_nothing_that_it_had_appended(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    command = [sys.executable, "-c", APPEND, str(path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) == 20:
                break
        process.send_signal(signal.SIGKILL)
        appended = [20, *map(int, process.stdout.read().split())][-1] + 1
    records = read_records(tmp_path)
    assert list(records) == [("a", sample) for sample in range(len(records))]
    assert len(records) in (appended, appended + 1)  # killed after appending, before saying so
    with JsonLines(path) as lines:
        lines.append(dump(record("b")))
    assert list(read_records(tmp_path)) == [*records, ("b", 0)]


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=rf"cannot write {tmp_path}: Is a directory; .*{GO_ON}"):
        JsonLines(tmp_path)


def test_a_folder_is_created_with_its_parents(tmp_path: Path) -> None:
    folder = create_folder(tmp_path / "tiny" / "0123")
    assert create_folder(folder) == folder == tmp_path / "tiny" / "0123"
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("place", ["file", "file/tiny", "/proc/none/tiny", "/proc/self"])
def test_a_folder_that_cannot_be_written_names_results_dir(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    folder = tmp_path / place
    with pytest.raises(StoreError) as caught:
        create_folder(folder)
    assert str(caught.value).startswith(f"cannot write into {folder}: ")
    assert str(caught.value).endswith("; set results_dir to a folder that can be written")


def test_json_is_replaced_at_once(tmp_path: Path) -> None:
    path = tmp_path / "summary.json"
    write_json(path, {"n": 1})
    with path.open("rb") as old:
        write_json(path, {"n": 2})
        assert orjson.loads(old.read()) == {"n": 1}
    assert orjson.loads(path.read_bytes()) == {"n": 2}
    assert os.listdir(tmp_path) == ["summary.json"]


def test_json_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "summary.json").mkdir()
    with pytest.raises(StoreError, match=rf"cannot write .*summary\.json: Is a directory; .*{GO_ON}"):
        write_json(tmp_path / "summary.json", {})
    assert os.listdir(tmp_path) == ["summary.json"]
