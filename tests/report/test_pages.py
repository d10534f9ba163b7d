"""Pages as files: what they hold of every method's records, that no text becomes markup, and when they are written."""

import base64
import hashlib
import os
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import orjson
import pytest

from rsd.errors import StoreError
from rsd.grade import problems_of
from rsd.report.pages import trace_page
from rsd.report.pages.index import marked
from rsd.report.pages.mathml import ATTRIBUTES, ELEMENTS, Formulas, converted
from tests.paged import ATTACK, BROKEN, LINK, OWN, QUESTIONS, pages_in, runs_in
from tests.stored import RSD, TARGET, manifest, proposal, record, store

LOADS = {"src", "srcset", "data", "action", "poster", "background"}  # attributes that make a browser fetch something


class Page(HTMLParser):
    """The elements of a page, and the texts of its scripts by id."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: dict[str | None, str] = {}
        self.script = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.script = tag == "script"

    def handle_endtag(self, tag: str) -> None:
        self.script = False

    def handle_data(self, data: str) -> None:
        if self.script:
            name = self.elements[-1][1].get("id")
            self.scripts[name] = self.scripts.get(name, "") + data

    @property
    def summary(self) -> Any:
        return orjson.loads(self.scripts["summary"])

    @property
    def lines(self) -> list[Any]:
        return [orjson.loads(line) for line in self.scripts["lines"].split("\n")]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    runs_in(folder)
    pages_in(folder)
    return folder


def page_of(results: Path, run_id: str) -> Page:
    return Page(trace_page(results, results / "runs" / "asked" / run_id).read_text(encoding="utf-8"))


def plain(text: Any, formulas: list[Any]) -> str:
    """A text with the words of its formulas in their places."""

    def words(tree: Any) -> str:
        return tree if isinstance(tree, str) else "".join(map(words, tree[2:]))

    return text if isinstance(text, str) else "".join(words(formulas[p]) if isinstance(p, int) else p for p in text)


def test_no_text_of_a_run_becomes_markup(results: Path) -> None:
    """Question, answer, response, error and name hold scripts, and so does the run's folder; all stay texts."""
    for run_id in ("target", OWN, "speculative", "samples"):
        page = page_of(results, run_id)
        assert [told.get("id") for tag, told in page.elements if tag == "script"] == ["summary", "lines", None]
        assert not [tag for tag, _ in page.elements if tag in ("img", "b", "table", "iframe", "object")]
    assert page_of(results, "target").lines[-1]["id"] == ATTACK
    page = page_of(results, OWN)
    found = {line["id"]: line for line in page.lines}
    texts = [plain(line["question"], line["formulas"]) for line in page.lines]
    assert texts[1] == QUESTIONS[1]["question"], "it is told as it stands"
    assert BROKEN in texts[3]
    attacked = found[page.summary["questions"][1][0]]["samples"][0]["steps"][0][0]
    assert attacked["text"] == ATTACK
    index = Page((results / "index.html").read_text(encoding="utf-8"))
    assert len([tag for tag, _ in index.elements if tag == "script"]) == 1
    assert all(
        told["href"].startswith(("./traces/", "#")) for tag, told in index.elements if tag == "a" and told["href"]
    )


def test_pages_load_nothing_and_allow_only_their_own_script(results: Path) -> None:
    for path in (results / "index.html", *results.glob("traces/*/*.html")):
        page = Page(path.read_text(encoding="utf-8"))
        for tag, told in page.elements:
            assert tag != "link"
            assert all(str(told[name]).startswith("data:") for name in LOADS & told.keys()), (path, tag)
        (policy,) = [told["content"] for _, told in page.elements if told.get("http-equiv")]
        own = base64.b64encode(hashlib.sha256(page.scripts[None].encode()).digest()).decode()
        assert policy == f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{own}'"


def test_the_index_links_to_the_trace_of_every_run(results: Path) -> None:
    index = Page((results / "index.html").read_text(encoding="utf-8"))
    links = {unquote(str(told["href"])) for tag, told in index.elements if tag == "a" and "traces" in str(told["href"])}
    assert links == {f"./{path.relative_to(results)}" for path in results.glob("traces/*/*.html")}
    assert len(links) == 6


def test_what_a_page_tells_of_rsd(results: Path) -> None:
    page = page_of(results, OWN)
    summary, first = page.summary, page.lines[0]
    assert (summary["delta"], summary["range"]) == (0.7, [0.0, 1.0])
    assert [listed[2:] for listed in summary["questions"]] == [
        [1.0, "dxtd"],
        [1.0, "dxtd"],
        [0.0, "dxtd"],
        [0.0, "dxtd"],
    ]
    others = {other["run"]: other["right"] for other in summary["others"]}
    assert others["target"] == [1.0, 0.0, 1.0, 0.0], "so the run wins the second question and loses the third"
    assert others["samples"] == [1.0, 0.0, 0.0, 0.0]
    (solution,) = first["samples"]
    assert (solution["correct"], solution["tokens"]) == (True, {"draft": 31.0, "target": 15.0, "prm": 31.0})
    steps = [[(p["origin"], p["kept"], p.get("accepted"), p.get("reward")) for p in step] for step in solution["steps"]]
    assert steps == [
        [("draft", True, True, 0.9)],
        [("draft", False, False, 0.2), ("target", True, None, None)],
        [("draft", True, True, 0.8)],
    ]
    # passes: 2 FLOPs for each of the draft's 1,000 parameters and ten tokens, and one pass of the PRM's 3,000
    assert solution["steps"][0][0]["flops"] == 2 * 1_000 * 10 + 2 * 3_000
    assert solution["flops"]["passes"] == 2 * (1_000 * 31 + 7_000 * 15 + 3_000 * 3)


def test_what_pages_tell_of_other_methods(results: Path) -> None:
    samples = page_of(results, "samples")
    assert [one["sample"] for one in samples.lines[0]["samples"]] == [0, 1, 2]
    best = page_of(results, "best")
    other, chosen = best.lines[0]["samples"][0]["steps"][0]
    assert (other["kept"], other["sample"], other["class"], other["text"]) == (False, 0, 1, "")
    assert (chosen["kept"], chosen["sample"], chosen["reward"]) == (True, 1, 0.3)
    assert best.summary["drawn"] == "./samples.html"
    assert page_of(results, "target").summary["drawn"] is None
    beam = page_of(results, "beam").lines[0]["samples"][0]["steps"]
    assert [[p["kept"] for p in step] for step in beam] == [[False, False, False, True], [False, True]]
    speculative = page_of(results, "speculative")
    assert speculative.lines[0]["samples"][0]["steps"][0][0]["ahead"] == [16, 12, 5]
    failed = speculative.lines[3]["samples"][0]
    assert (failed["end"], failed["steps"], failed["correct"]) == ("error", [], False)
    assert ATTACK in failed["error"]


def test_a_page_is_written_when_what_it_shows_changes(tmp_path: Path) -> None:
    runs_in(tmp_path)
    pages = pages_in(tmp_path)[1:]

    def written() -> set[str]:
        before = {page: os.stat(page).st_ino for page in pages}
        pages_in(tmp_path)
        return {page.stem for page in pages if os.stat(page).st_ino != before[page]}

    assert written() == set()
    grades = tmp_path / "runs/asked/target/grades.jsonl"
    grades.write_bytes(grades.read_bytes().replace(b'"correct":true', b'"correct":false'))
    before = page_of(tmp_path, OWN)
    assert written() == {page.stem for page in pages}, "all of the benchmark are compared with it"
    after = page_of(tmp_path, OWN)
    (told,) = [other for other in after.summary["others"] if other["run"] == "target"]
    assert told["right"] == [0.0] * 4
    assert after.lines == before.lines
    own = page_of(tmp_path, "target")
    assert {right for _, _, right, _ in own.summary["questions"]} == {0.0}
    assert not any(line["samples"][0]["correct"] for line in own.lines)
    assert {**after.summary, "others": before.summary["others"]} == before.summary
    assert written() == set()
    (tmp_path / "traces/asked/beam.html").unlink()
    pages = [page for page in pages if page.stem != "beam"]
    assert written() == set()
    assert (tmp_path / "traces/asked/beam.html").exists()


def test_questions_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The pages are there, in the order of question_ids; and a manifest makes nothing but a benchmark."""
    names = runs_in(tmp_path)
    (tmp_path / "data/questions.jsonl").unlink()
    pages_in(tmp_path)
    assert "traces without questions" in capsys.readouterr().err
    page = page_of(tmp_path, "target")
    assert [(line["id"], line["question"]) for line in page.lines] == [
        (name, None) for name in sorted([*names, ATTACK])
    ]
    path = tmp_path / "runs/asked/target/manifest.json"
    told = orjson.loads(path.read_bytes())
    for target in ("os.system", "rsd.benchmarks.jsonl.hashlib.new", "rsd.benchmarks.jsonl.data_hash"):
        told["config"]["benchmark"] = {"_target_": target, "command": "true"}
        path.write_bytes(orjson.dumps(told))
        with pytest.raises(StoreError, match=f"{target}, which is no benchmark"):
            problems_of(path.parent)


def test_formulas() -> None:
    formulas = Formulas()
    assert formulas.text(r"Let $x^2$ be \(x^2\), or \boxed{\frac{1}{2}}.") == ["Let ", 0, " be ", 0, ", or ", 1, "."]
    assert formulas.trees[0][2:] == [["mrow", {}, ["msup", {}, ["mi", {}, "x"], ["mn", {}, "2"]]]]
    for text in ("$5 and $10", "a plain text", r"\$5$", "$$", r"\boxed{unclosed", "$x^$", "$" + "x" * 2000 + "$"):
        assert formulas.text(text) == text, "what is no formula, or none that is understood, stays as it stands"
    parts = formulas.text(
        "So\n\\begin{align*}a &= b \\\\ &= c\\end{align*}\nand \\[d\\], where \\begin{align} ends nowhere"
    )
    assert parts == ["So\n", 2, "\nand ", 3, ", where \\begin{align} ends nowhere"]
    assert [tree[1]["display"] for tree in formulas.trees] == ["inline", "inline", "block", "block"]
    assert formulas.answer("366") == "366"
    assert formulas.answer(r"\frac{1}{2}") == [4]


@pytest.mark.parametrize(
    "source", [LINK, r"\href{javascript:1}{x}", r"\style{background:url(x)}{x}", "{" * 900, r"\left("]
)
def test_formulas_hold_nothing_but_formulas(source: str) -> None:
    def check(tree: Any) -> None:
        if isinstance(tree, list):
            assert tree[0] in ELEMENTS
            assert set(tree[1]) <= ATTRIBUTES
            for child in tree[2:]:
                check(child)

    check(converted(source, False) or "")
    assert "javascript" not in str(converted(r"\href{javascript:1}{x}", False))


def test_sentences_of_tables() -> None:
    assert marked("*Italics n/N*: delta\\* < `k`") == "<em>Italics n/N</em>: delta* &lt; <code>k</code>"
    assert marked("*50.0 [15.0, 85.0] 4/8*") == "<em>50.0 [15.0, 85.0] 4/8</em>"


def test_a_partial_run_has_no_interval(tmp_path: Path) -> None:
    """Neither on its own page nor among all runs."""
    store(tmp_path, "cut", [record("a", proposal("target", 4))], {"a"}, manifest("asked", 4, settings=TARGET))
    pages_in(tmp_path)
    trace = trace_page(tmp_path, tmp_path / "runs" / "asked" / "cut").read_text(encoding="utf-8")
    for page in (trace, (tmp_path / "index.html").read_text(encoding="utf-8")):
        assert "100.0% partial" in page
        assert "100.0% [" not in page


def test_a_run_is_offered_the_target_of_its_family_in_one_go_first(tmp_path: Path) -> None:
    """Whatever the folders are called."""
    stepwise = {**TARGET, "stepwise": True}
    for run_id, name, settings, model in (
        ("a", "target alone (stepwise)", stepwise, "pair"), ("b", "target alone", TARGET, "other pair"),
        ("c", "target alone", TARGET, "pair"), ("d", "rsd binary delta=0.7", RSD, "pair"),
    ):  # fmt: skip
        told = manifest("asked", 1, name, settings=settings, model=model)
        store(tmp_path, run_id, [record("q", proposal("target", 4))], {"q"}, told)
    pages_in(tmp_path)
    assert [other["run"] for other in page_of(tmp_path, "d").summary["others"]] == ["c", "b", "a"]
