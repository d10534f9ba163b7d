"""The pages as somebody uses them: sorted, filtered, stepped through, linked to, on a phone, on paper, under attack."""

import base64
from pathlib import Path
from urllib.parse import quote

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select

from rsd.report.__main__ import report
from rsd.report.pages import decided_by, trace_page
from tests.browser.conftest import PHONE, resize
from tests.paged import ATTACK, NAME, OWN, benchmark, pages_in, rsd_steps, runs_in, told
from tests.report.wanted import golden
from tests.stored import RSD, record, store

pytestmark = pytest.mark.browser
MANY = 5_000


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    runs_in(folder)
    pages_in(folder)
    return folder


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a whole report."""
    results = golden(tmp_path_factory.mktemp("golden"))
    report(results, chosen=["tiny"])
    return results / "index.html"


def open_trace(browser: Chrome, results: Path, run_id: str, fragment: str = "") -> None:
    page = trace_page(results, results / "runs" / "asked" / run_id)
    browser.get(page.as_uri() + fragment)


def texts(browser: Chrome, selector: str) -> list[str]:
    return [found.text for found in browser.find_elements(By.CSS_SELECTOR, selector)]


def listed(browser: Chrome) -> list[str]:
    """Numbers of the questions in the list."""
    return texts(browser, "#list .place")


def shown(browser: Chrome) -> str:
    return browser.find_element(By.CSS_SELECTOR, "article h2").text.split()[1]


def click(browser: Chrome, selector: str) -> None:
    """Click, and wait until the page has followed a link within itself."""
    browser.find_element(By.CSS_SELECTOR, selector).click()
    browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")


def press(browser: Chrome, key: str) -> None:
    ActionChains(browser).send_keys(key).perform()


def test_index_sorts_and_filters(browser: Chrome, index: Path) -> None:
    browser.get(index.as_uri())
    names = "#runs tbody:not([hidden]) td:nth-child(2)"
    accuracies = "#runs tbody td:nth-child(6)"
    heading = browser.find_element(By.XPATH, "//*[@id='runs']//th[6]/button")
    for order, sign in (("ascending", 1), ("descending", -1)):
        heading.click()
        values = [sign * float(text.split("%")[0]) for text in texts(browser, accuracies)]
        assert values == sorted(values), order
        assert heading.find_element(By.XPATH, "..").get_attribute("aria-sort") == order
    browser.find_element(By.ID, "find").send_keys("RSD 0.7")
    assert texts(browser, names) == ["rsd binary delta=0.7"]


def test_index_links_a_cell_to_its_trace(browser: Chrome, index: Path) -> None:
    browser.get(f"{index.as_uri()}#tiny-table2")
    click(browser, "#tiny-table2 td a")
    assert browser.find_element(By.TAG_NAME, "h1").text == "target alone"
    click(browser, ".home")
    assert browser.current_url == index.as_uri()
    drawn = "return document.querySelector('#tiny-fig5 img').naturalWidth"
    assert browser.execute_script(drawn) > 500


def test_steps_of_a_question(browser: Chrome, results: Path) -> None:
    open_trace(browser, results, OWN)
    assert texts(browser, ".proposal .who") == [
        "draft, accepted", "draft, rejected", "target, kept", "draft, accepted"
    ]  # fmt: skip
    struck = browser.find_element(By.CSS_SELECTOR, ".proposal.rejected .text")
    assert "line-through" in struck.value_of_css_property("text-decoration")
    assert texts(browser, ".measures b")[:2] == ["r = 0.900 ≥ δ = 0.7", "r = 0.200 < δ = 0.7"]
    colours = {
        browser.execute_script("return getComputedStyle(arguments[0]).borderLeftColor", step)
        for step in browser.find_elements(By.CSS_SELECTOR, ".proposal.kept")
    }
    assert colours == {"rgb(86, 180, 233)", "rgb(0, 0, 0)"}, "those of the figures"
    bar = browser.find_element(By.CSS_SELECTOR, ".bar")
    filled, mark = bar.find_element(By.TAG_NAME, "i"), bar.find_element(By.TAG_NAME, "u")
    assert filled.size["width"] == pytest.approx(0.9 * bar.size["width"], abs=1)
    assert mark.location["x"] - bar.location["x"] == pytest.approx(0.7 * bar.size["width"], abs=2)
    assert len(browser.find_elements(By.CSS_SELECTOR, ".question mfrac")) == 2, "formulas are drawn"


def test_filters_and_keyboard(browser: Chrome, results: Path) -> None:
    """Of the four questions, the run has the first two right, and the target the first and the third."""
    open_trace(browser, results, OWN)
    for chosen, questions in {
        "wrong": ["3", "4"], "right": ["1", "2"], "disagrees": ["2", "3"], "won": ["2"], "lost": ["3"],
    }.items():  # fmt: skip
        Select(browser.find_element(By.ID, "show")).select_by_value(chosen)
        assert listed(browser) == questions
    Select(browser.find_element(By.ID, "show")).select_by_value("disagrees")
    click(browser, "#list a")
    walk = []
    for key in ("j", "j", "k", "\ue014", "\ue012"):  # the last two are arrows to the right and to the left
        press(browser, key)
        walk.append(shown(browser))
    assert walk == ["3", "3", "2", "3", "2"]
    browser.find_element(By.ID, "find").send_keys("attack jj")
    assert (listed(browser), shown(browser)) == ([], "2"), "keys that are typed into a field move nothing"


def test_deep_links(browser: Chrome, results: Path) -> None:
    open_trace(browser, results, OWN)
    click(browser, "#list li:nth-child(3) a")
    question = browser.find_element(By.CSS_SELECTOR, "article h2 small").text
    assert browser.current_url.endswith(f"#{question}")
    click(browser, ".facts a")
    assert (browser.find_element(By.TAG_NAME, "h1").text, shown(browser)) == ("target alone", "3")
    browser.back()
    assert shown(browser) == "3"
    open_trace(browser, results, "samples", f"#{question}/2")
    assert texts(browser, ".samples [aria-current]") == ["3"]
    page = trace_page(results, results / "runs" / "asked" / OWN)
    browser.get(decided_by(page, "target", "lost"))
    assert (listed(browser), shown(browser)) == (["3"], "3")
    open_trace(browser, results, "best", f"#{question}")
    click(browser, "details.others summary")
    click(browser, "details.others a")
    assert (browser.find_element(By.TAG_NAME, "h1").text, shown(browser)) == ("draft alone", "3")


@pytest.mark.parametrize("run_id", [pytest.param(OWN, id="rsd"), "target", "samples", "best", "speculative"])
def test_no_text_runs_as_a_script(browser: Chrome, results: Path, run_id: str) -> None:
    """In question, question_id, gold, response, error, run name, folder name and address."""
    hostile = "#%22%3E%3Cimg%20src=x%20onerror=document.title='attacked'%3E?find=%3Cscript%3E&show=javascript:1"
    open_trace(browser, results, run_id, hostile)
    open_trace(browser, results, run_id)
    for _ in range(5):
        press(browser, "j")
        assert browser.title != "attacked"
        assert browser.execute_script("return document.scripts.length") == 3
        assert not browser.find_elements(
            By.CSS_SELECTOR, "main img, main script, main b b, main table, [href^=javascript]"
        )
    browser.get((results / "index.html").as_uri())
    assert browser.title == "RSD results"
    assert NAME in texts(browser, "#runs td:nth-child(2)")


def test_an_attack_is_shown_as_it_stands(browser: Chrome, results: Path) -> None:
    open_trace(browser, results, OWN)
    press(browser, "j")
    assert texts(browser, ".proposal .text")[0] == ATTACK
    open_trace(browser, results, "target", "#" + quote(ATTACK, safe="'"))
    assert (shown(browser), browser.find_element(By.CSS_SELECTOR, "article h2 small").text) == ("5", ATTACK)
    assert browser.find_element(By.CSS_SELECTOR, "#list [aria-current]").get_attribute("href") == browser.current_url


def test_on_a_phone(browser: Chrome, results: Path, index: Path) -> None:
    resize(browser, PHONE)
    for address in (index.as_uri(), trace_page(results, results / "runs" / "asked" / OWN).as_uri()):
        browser.get(address)
        assert browser.execute_script("return document.scrollingElement.scrollWidth") <= PHONE[0]
    assert not browser.find_element(By.ID, "questions").is_displayed()
    click(browser, "#open")
    assert listed(browser) == ["1", "2", "3", "4"]
    click(browser, "#list li:nth-child(2) a")
    assert shown(browser) == "2"
    assert not browser.find_element(By.ID, "questions").is_displayed()
    click(browser, "#previous")
    assert shown(browser) == "1"
    for button in browser.find_elements(By.CSS_SELECTOR, "footer button"):
        assert button.size["height"] >= 40, "large enough for a finger"


def test_a_table_on_a_phone_shows_its_numbers(browser: Chrome, index: Path) -> None:
    """Each under its heading, below what its row is; what has no number takes no place."""
    resize(browser, PHONE)
    browser.get(index.as_uri())
    inside = "return arguments[0].getBoundingClientRect().right"
    for table, least in (("#tiny-table2 .wide:first-of-type", 4), ("#runs", 20)):
        cells = [cell for cell in browser.find_elements(By.CSS_SELECTOR, f"{table} td[data-of]") if cell.is_displayed()]
        assert len(cells) >= least
        assert all(browser.execute_script(inside, cell) <= PHONE[0] for cell in cells)
    first = browser.find_element(By.CSS_SELECTOR, "#tiny-table2 td[data-of]")
    assert first.text == "66.7 [20.8, 93.9]"
    heading = "return getComputedStyle(arguments[0], '::before').content"
    assert browser.execute_script(heading, first) == '"tiny_chain"'
    assert not browser.find_element(By.CSS_SELECTOR, "#tiny-table2 td[data-of]:empty").is_displayed()
    assert "Empty: not run yet" in browser.find_element(By.CSS_SELECTOR, "#tiny-table2 .note").text


def test_on_paper(browser: Chrome, results: Path) -> None:
    open_trace(browser, results, OWN)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert not browser.find_element(By.ID, "questions").is_displayed()
        assert not browser.find_element(By.TAG_NAME, "footer").is_displayed()
        assert browser.find_element(By.CSS_SELECTOR, ".proposal").is_displayed()
        paper = base64.b64decode(browser.print_page())
        assert paper.startswith(b"%PDF")
        assert len(paper) > 10_000
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_many_questions(browser: Chrome, tmp_path: Path) -> None:
    """The list has as many elements as are seen, wherever it stands, and every question can be reached."""
    asked, names = benchmark(tmp_path / "data", ({"question": f"Question {i}?", "answer": "1"} for i in range(MANY)))
    records = [record(name, *rsd_steps("So.", f"{name}.")) for name in names]
    store(tmp_path, "many", records, set(names[::2]), told(asked, MANY, "many", RSD))
    pages_in(tmp_path)
    open_trace(browser, tmp_path, "many")
    assert len(browser.find_elements(By.CSS_SELECTOR, "#list a")) < 40
    assert browser.find_element(By.ID, "count").text == "5,000 of 5,000"
    browser.execute_script("document.getElementById('list').scrollTop = 1e9")
    browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    assert listed(browser)[-1] == "5000"
    click(browser, "#list li:last-child a")
    assert shown(browser) == "5000"
    assert len(browser.find_elements(By.CSS_SELECTOR, "#list a")) < 40
    assert texts(browser, ".proposal .text")[-1] == f"{names[-1]}."
    open_trace(browser, tmp_path, "many", f"#{names[2999]}")
    assert texts(browser, "#list [aria-current] .place") == ["3000"], "a link brings the list along"
