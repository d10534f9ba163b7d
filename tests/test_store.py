"""The store gives back what was appended, and names what cannot be read."""

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
    is_error,
    read_attempts,
    read_grades,
    read_records,
)


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
