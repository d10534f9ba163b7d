"""The store keeps every whole line, whatever happens to the process or to the disk."""

import errno
import os
import signal
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import orjson
import pytest

from rsd.errors import StoreError
from rsd.records import Record, dump
from rsd.store import (
    Attempts,
    GradeRecord,
    JsonLines,
    create_folder,
    is_error,
    read_attempts,
    read_grades,
    read_records,
    write_json,
)

ROOT = Path(__file__).parents[1]
GO_ON = "run the same command again: everything up to here is kept"


def record(
    question_id: str, sample: int = 0, response: str = "", error: str | None = None, invocation: int = 1
) -> Record:
    return Record(
        question_id=question_id,
        sample=sample,
        seed=0,
        invocation=invocation,
        prompt_tokens=1,
        end_reason="eos" if error is None else "error",
        response=response,
        proposals=(),
        error=error,
    )


def write(path: Path, *records: Record) -> None:
    with JsonLines(path) as lines:
        for item in records:
            lines.append(dump(item))


def run(script: str, *arguments: Path) -> str:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=60).stdout


def test_records_are_read_back_as_they_were_appended(tmp_path: Path) -> None:
    first, second = record("a", response="½\u2028\n"), record("a", sample=1)
    write(tmp_path / "records.jsonl", first)
    write(tmp_path / "records.jsonl", second)
    assert read_records(tmp_path) == {("a", 0): first, ("a", 1): second}
    assert (tmp_path / "records.jsonl").read_bytes() == dump(first) + b"\n" + dump(second) + b"\n"


def test_a_run_that_has_not_begun_has_no_records(tmp_path: Path) -> None:
    assert read_records(tmp_path / "none") == {}
    assert read_attempts(tmp_path / "none") == {}
    assert read_grades(tmp_path / "none") == {}


@pytest.mark.parametrize("before", [b"", dump(record("a")) + b"\n"], ids=["only line", "second line"])
def test_a_last_line_cut_at_any_byte_is_ignored_and_dropped(tmp_path: Path, before: bytes) -> None:
    path = tmp_path / "records.jsonl"
    last = dump(record("b", response="½ ∎")) + b"\n"
    whole = {("a", 0): record("a")} if before else {}
    for cut in range(len(last)):
        path.write_bytes(before + last[:cut])
        assert read_records(tmp_path) == whole
        JsonLines(path).close()
        assert path.read_bytes() == before
    write(path, record("c"))
    assert read_records(tmp_path) == {**whole, ("c", 0): record("c")}


@pytest.mark.parametrize("last", [b"\0\0\0\n", b"\n", b'{"schema": \n'])
def test_a_last_line_that_is_not_json_is_ignored_and_dropped(tmp_path: Path, last: bytes) -> None:
    path = tmp_path / "records.jsonl"
    write(path, record("a"))
    whole = path.read_bytes()
    path.write_bytes(whole + last)
    assert set(read_records(tmp_path)) == {("a", 0)}
    JsonLines(path).close()
    assert path.read_bytes() == whole


def test_a_whole_last_line_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    write(path, record("a"), record("b"))
    whole = path.read_bytes()
    JsonLines(path).close()
    assert path.read_bytes() == whole


@pytest.mark.parametrize("line", [b"half a li", b"\0", b'{"schema":9}', b"{}", b""])
def test_a_broken_line_in_the_middle_is_named(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "records-3.jsonl"
    path.write_bytes(dump(record("a")) + b"\n" + line + b"\n" + dump(record("b")) + b"\n")
    for read in (read_records, read_attempts):
        with pytest.raises(StoreError, match=r"records-3\.jsonl, line 2 is broken .*run the same command again"):
            read(tmp_path)


def test_a_last_line_that_is_whole_but_no_record_is_named_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_bytes(b'{"schema":9}\n')
    JsonLines(path).close()
    with pytest.raises(StoreError, match=r"records\.jsonl, line 1 is broken"):
        read_records(tmp_path)


def test_records_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "records.jsonl").mkdir()
    with pytest.raises(StoreError, match=r"cannot read .*records\.jsonl: Is a directory"):
        read_records(tmp_path)


def test_only_an_error_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    write(path, record("a", error="no"), record("b", response="first"), record("c", error="no"))
    write(path, record("a", response="at last"), record("b", response="second"), record("c", error="still no"))
    write(path, record("b", error="no"))
    assert read_records(tmp_path) == {
        ("a", 0): record("a", response="at last"),
        ("b", 0): record("b", response="first"),
        ("c", 0): record("c", error="still no"),
    }


def test_an_error_shows_in_its_end_reason_or_its_message() -> None:
    assert is_error(replace(record("a"), end_reason="error"))
    assert is_error(replace(record("a"), error="no"))
    assert not is_error(record("a"))


def test_shards_are_read_as_one(tmp_path: Path) -> None:
    write(tmp_path / "records-0.jsonl", record("a"), record("b", error="no"))
    write(tmp_path / "records-1.jsonl", record("c", error="no"))
    write(tmp_path / "records-10.jsonl", record("d"))
    write(tmp_path / "records.jsonl", record("b", response="done"), record("c", error="no", invocation=2))
    (tmp_path / "grades.jsonl").write_bytes(b"{}\n{}\n")
    records = read_records(tmp_path)
    assert {key: (item.response, item.error) for key, item in records.items()} == {
        ("a", 0): ("", None),
        ("b", 0): ("done", None),
        ("c", 0): ("", "no"),
        ("d", 0): ("", None),
    }
    assert read_attempts(tmp_path) == {
        ("a", 0): Attempts(answered=True),
        ("b", 0): Attempts(answered=True, failures=1),
        ("c", 0): Attempts(failures=2),
        ("d", 0): Attempts(answered=True),
    }


def test_grades_are_read_by_grader_and_the_last_one_counts(tmp_path: Path) -> None:
    wrong = GradeRecord(question_id="a", sample=0, correct=False, extracted=None, reason="no answer")
    right = GradeRecord(question_id="a", sample=0, correct=True, extracted="1/2", reason=None)
    other = GradeRecord(question_id="a", sample=1, correct=True, extracted="½", reason=None)
    strictly = GradeRecord(question_id="a", sample=2, correct=False, extracted="½", reason=None)
    with JsonLines(tmp_path / "grades.jsonl") as default, JsonLines(tmp_path / "grades-strict.jsonl") as strict:
        for grade in (wrong, other, right):
            default.append(orjson.dumps(grade))
        for grade in (wrong, strictly):
            strict.append(orjson.dumps(grade))
    with (tmp_path / "grades-2.jsonl").open("wb") as shard:
        shard.write(orjson.dumps(asdict(right) | {"question_id": "b"}) + b'\n{"question_id":"c"')
    assert read_grades(tmp_path) == {
        ("a", 0): right,
        ("a", 1): other,
        ("b", 0): GradeRecord(question_id="b", sample=0, correct=True, extracted="1/2", reason=None),
    }
    assert read_grades(tmp_path, "strict") == {("a", 0): wrong, ("a", 2): strictly}


def test_a_broken_grade_is_named(tmp_path: Path) -> None:
    (tmp_path / "grades.jsonl").write_bytes(b'{"question_id":"a"}\n')
    with pytest.raises(StoreError, match=r"grades\.jsonl, line 1 is broken \(not a grade"):
        read_grades(tmp_path)


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
    write(tmp_path / "records.jsonl", record("a"))
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
    write(path, record("b"))
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
