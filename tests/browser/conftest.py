"""A headless Chromium of the system, without a network."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

DESKTOP, PHONE = (1280, 860), (390, 844)
SCREENSHOTS = Path(__file__).parent / "screenshots"
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chrome]:
    driver = shutil.which("chromedriver")
    if driver is None:
        pytest.fail("There is no chromedriver; on Debian: apt-get install chromium chromium-driver.")
    options = ChromeOptions()
    for option in OPTIONS:
        options.add_argument(f"--{option}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with Chrome(options=options, service=Service(driver)) as browser:
        yield browser


@pytest.fixture
def browser(chromium: Chrome, request: pytest.FixtureRequest) -> Iterator[Chrome]:
    """At the size of a desktop; a picture of how each test left it stands in `SCREENSHOTS`. No test leaves an error in
    the console: neither of a script nor of something that the page's policy had to stop."""
    resize(chromium, DESKTOP)
    chromium.get("about:blank")
    yield chromium
    SCREENSHOTS.mkdir(exist_ok=True)
    chromium.save_screenshot(str(SCREENSHOTS / f"{request.node.name}.png"))
    assert chromium.get_log("browser") == []


def resize(browser: Chrome, size: tuple[int, int]) -> None:
    """Make the page as large as `size`, in CSS pixels; a narrow one is a phone's."""
    width, height = size
    told = {"width": width, "height": height, "deviceScaleFactor": 2 if size == PHONE else 1, "mobile": size == PHONE}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", told)
