"""Grading many responses at once, poisoned ones among them, in processes that die alone and leave nothing behind."""

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rsd
from rsd.errors import RSDError
from rsd.grading import Grade, Grader
from rsd.grading.classes import AnswerClasses
from rsd.grading.equivalence import equivalent_here

ROOT = Path(rsd.__file__).parents[1]
ENDLESS = r"\sum_{n=1}^{10^{9}} n!"  # math-verify adds term after term


@pytest.fixture(scope="module")
def grader() -> Iterator[Grader]:
    with Grader(workers=2, time_limit=1.0) as grader:
        yield grader


def grade(grader: Grader, gold: str, answer: str) -> Grade:
    return asyncio.run(grader.grade(gold=gold, response=rf"so \boxed{{{answer}}}."))


def worker_pids() -> set[int]:
    return {child.pid for child in multiprocessing.active_children() if child.pid is not None}


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def ends_within(pid: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not is_running(pid)


async def started_worker(others: set[int]) -> int:
    """The pid of a process that was not among `others`, as soon as one computes."""
    while True:
        for pid in worker_pids() - others:
            if (
                int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11]) > 250
            ):  # 2.5 s of CPU time, more than a start takes
                return pid
        await asyncio.sleep(0.02)


def test_right_and_wrong_answers(grader: Grader) -> None:
    assert grade(grader, "0.5", r"\frac{1}{2}") == Grade(True, r"\frac{1}{2}", "equal")
    assert grade(grader, "0.5", r"\frac{1}{3}") == Grade(False, r"\frac{1}{3}", "different")


def test_decided_without_a_process() -> None:
    before = worker_pids()
    with Grader() as grader:
        assert grade(grader, r"\frac{1}{2}", r" \frac{1}{2} ") == Grade(True, r" \frac{1}{2} ", "equal")
        assert asyncio.run(grader.grade(gold="7", response="It is 7.")) == Grade(False, None, "no answer")
        assert asyncio.run(grader.grade(gold="7", response="The answer is 7.")) == Grade(True, "7", "equal")
        assert grade(grader, "7", " ") == Grade(False, " ", "no answer")
        assert grade(grader, " ", "7") == Grade(False, "7", "ungradable gold")
        assert grade(grader, "-7", "7 ") == Grade(False, "7 ", "different")
        assert asyncio.run(grader.first_equal("7", ["-7", "70", " 7"])) == 2
        assert asyncio.run(grader.first_equal("7", ["0"])) is None
        assert worker_pids() == before


@pytest.mark.parametrize(("a", "b"), [("0", "1"), ("-5", "5"), ("99999", "100000"), (str(10**30), str(10**30 + 1))])
def test_whole_numbers_that_differ_as_text_differ_by_every_rule(a: str, b: str) -> None:
    assert not equivalent_here(a, b)
    assert not equivalent_here(b, a)


def test_importing_is_light() -> None:
    code = "import sys, rsd.grading; assert not {'sympy', 'math_verify', 'torch', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


@pytest.mark.parametrize(
    ("gold", "answer", "reasons"),
    [
        ("7", "10^{5^{5^{5^{5^5}}}}", {"different"}),
        ("10^{5^{5^{5^{5^5}}}}", "7", {"different"}),
        ("7", r"10^{5^{5^{5^{5^5}}}} + \int_0^1 10^{10^{10}} dx", {"timeout", "crash", "different"}),
        ("7", ENDLESS, {"timeout"}),
        (ENDLESS, "7", {"timeout"}),
        ("7", "{" * 100_000 + "7" + "}" * 100_000, {"different"}),
        ("7", "(" * 1900 + "7" + ")" * 1900, {"different"}),
        ("7", "1*" * 1900 + "7", {"different"}),
        ("7", "7+" * 500_000 + "7", {"different"}),
        ("7", "7" * 1_000_000, {"different"}),
        ("7", r"\begin{pmatrix}" + r"\\".join(["&".join("1" * 200)] * 200) + r"\end{pmatrix}", {"different"}),
        ("7", "\x00\x01\x1b[2J\ud800\u202e\n7", {"different"}),
        ("\ud800", "7", {"different"}),
        ("}{", "7", {"different"}),
    ],
    ids=[
        *("tower", "tower as gold", "integral", "endless sum", "endless gold", "braces", "parentheses", "products"),
        *("1 MB of sums", "1 MB of digits", "matrix", "control characters", "surrogate", "unbalanced"),
    ],
)
def test_poison_costs_only_itself(grader: Grader, gold: str, answer: str, reasons: set[str]) -> None:
    start = time.monotonic()
    poisoned = grade(grader, gold, answer)
    assert not poisoned.correct
    assert poisoned.reason in reasons
    assert time.monotonic() - start < 6
    assert grade(grader, "0.5", r"\frac{1}{2}").correct


def test_hundreds_at_once_with_poison_among_them(grader: Grader) -> None:
    async def all_grades() -> list[Grade]:
        responses = [rf"\boxed{{{ENDLESS if i == 100 else f'{i + i % 2}.0'}}}" for i in range(400)]
        return await asyncio.gather(*(grader.grade(gold=str(i), response=r) for i, r in enumerate(responses)))

    grades = asyncio.run(all_grades())
    assert [g.correct for g in grades] == [i % 2 == 0 and i != 100 for i in range(400)]
    assert [i for i, g in enumerate(grades) if g.reason not in ("equal", "different")] == [100]


def test_starting_a_process_does_not_count_against_the_time_limit() -> None:
    with Grader(time_limit=0.3) as grader:
        assert grade(grader, "0.5", r"\frac{1}{2}").reason == "equal"


def test_killed_processes_are_replaced() -> None:
    before = worker_pids()

    async def kill_while_grading(grader: Grader) -> Grade:
        task = asyncio.create_task(grader.grade(gold="7", response=rf"\boxed{{{ENDLESS}}}"))
        os.kill(await started_worker(before), signal.SIGKILL)
        return await task

    with Grader(time_limit=30) as grader:
        assert asyncio.run(kill_while_grading(grader)).reason == "crash"
        assert grade(grader, "0.5", r"\frac{1}{2}").correct
        (idle,) = worker_pids() - before
        os.kill(idle, signal.SIGKILL)
        assert grade(grader, "0.5", r"\frac{2}{4}").correct


def test_processes_ignore_interrupts_and_have_a_memory_limit() -> None:
    before = worker_pids()
    with Grader(memory_limit=1 << 30) as grader:
        assert grade(grader, "0.5", r"\frac{1}{2}").correct
        (pid,) = worker_pids() - before
        os.kill(pid, signal.SIGINT)
        assert grade(grader, "0.5", r"\frac{2}{4}").correct
        assert worker_pids() - before == {pid}
        limits = Path(f"/proc/{pid}/limits").read_text().splitlines()
        assert next(line for line in limits if line.startswith("Max address space")).split()[3] == str(1 << 30)


def test_no_process_can_start() -> None:
    with Grader(memory_limit=40 << 20) as grader, pytest.raises(RSDError, match="memory_limit=41943040"):
        grade(grader, "0.5", r"\frac{1}{2}")


def test_close_ends_running_grades_and_processes() -> None:
    before = worker_pids()

    async def close_while_grading() -> None:
        grader = Grader(time_limit=60)
        tasks = [asyncio.create_task(grader.grade(gold="7", response=rf"\boxed{{{ENDLESS}}}")) for _ in range(3)]
        pid = await started_worker(before)
        start = time.monotonic()
        grader.close()
        assert all(isinstance(r, asyncio.CancelledError) for r in await asyncio.gather(*tasks, return_exceptions=True))
        assert ends_within(pid, 1)
        assert time.monotonic() - start < 3

    asyncio.run(close_while_grading())


SCRIPT = r"""
import asyncio, multiprocessing, sys, time
from pathlib import Path
from rsd.grading import Grader

with Path("imported").open("a") as file:
    file.write("once\n")

async def main():
    grader = Grader(time_limit=60)
    assert (await grader.grade(gold="0.5", response=r"\boxed{\frac{1}{2}}")).correct
    print(multiprocessing.active_children()[0].pid, flush=True)
    if sys.argv[1:] == ["busy"]:
        await grader.grade(gold="7", response=r"\boxed{\sum_{n=1}^{10^{9}} n!}")
    if sys.argv[1:] == ["idle"]:
        time.sleep(60)

asyncio.run(main())
"""


def run_script(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    (folder / "script.py").write_text(SCRIPT)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, *arguments], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("state", ["busy", "idle"])
def test_no_process_outlives_a_killed_parent(tmp_path: Path, state: str) -> None:
    with run_script(tmp_path, "script.py", state) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        time.sleep(0.5)
        assert is_running(worker)
        parent.kill()
        parent.wait()
        assert ends_within(worker, 1)


@pytest.mark.parametrize("arguments", [["script.py"], ["-m", "script"]], ids=" ".join)
def test_a_script_without_main_guard_runs_once_and_ends(tmp_path: Path, arguments: list[str]) -> None:
    with run_script(tmp_path, *arguments) as parent:
        worker = int(parent.communicate(timeout=20)[0])
    assert parent.returncode == 0
    assert (tmp_path / "imported").read_text() == "once\n"
    assert not is_running(worker)


def test_the_shared_process_serves_without_an_event_loop() -> None:
    assert rsd.grading.grade(gold="0.5", response=r"\boxed{\frac12}") == Grade(True, r"\frac12", "equal")
    assert not rsd.grading.equivalent("7", "10^{5^{5^{5^{5^5}}}}")
    with pytest.raises(TypeError):
        rsd.grading.grade("7", r"\boxed{7}")  # type: ignore[misc]


def test_classes_are_made_within_the_limits(grader: Grader) -> None:
    async def place_all(answers: list[str | None]) -> list[int | None]:
        classes = AnswerClasses(grader.first_equal, [("q", "0.5", 0), ("another", "7", 0)])
        return [await classes.place("q", answer) for answer in answers]

    answers = [None, ENDLESS, r"\frac{1}{2}", "7", "x > 2", r"(2, \infty)", ENDLESS, "0.50"]
    assert asyncio.run(place_all(answers)) == [None, 1, 0, 2, 3, 3, 1, 0]


def test_other_graders_have_their_own_verdicts() -> None:
    verdicts = {}
    for name in ("default", "math_verify", "reference"):
        with Grader(name=name) as other:  # type: ignore[arg-type]
            verdicts[name] = [
                grade(other, gold, answer).correct
                for gold, answer in (("0.5", "50"), ("1/2004!", "1/2006!"), ("2", "2.0"))
            ]
    assert verdicts == {
        "default": [False, False, True],
        "math_verify": [False, True, True],
        "reference": [True, True, True],
    }


@given(st.text(max_size=60))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_text_raises_or_exceeds_a_limit(grader: Grader, text: str) -> None:
    for answer, gold in ((text, "7"), ("7", text), (text, text)):
        found = asyncio.run(grader.grade(gold=gold, response=rf"\boxed{{{answer}}} and {answer}"))
        assert found.reason in ("equal", "different", "no answer", "ungradable gold")
