"""The vocabulary of the models that the page is tried with, and the page in Chromium.

Chromium and its driver are ``chromium`` and ``chromium-driver`` of Debian.
"""

import json
import shutil
from itertools import count

import pytest
from in_node import small_model, small_vocabulary

STILL = "--force-prefers-reduced-motion"  # a piece that is still appearing is no text yet


@pytest.fixture(scope="session")
def vocabulary():
    return small_vocabulary()


@pytest.fixture(scope="module")
def model():
    """Which no test changes."""
    return small_model(small_vocabulary(), norm="pre")


@pytest.fixture(scope="session")
def driver():
    webdriver = pytest.importorskip("selenium.webdriver", reason="there is no selenium")
    chromedriver, chromium = shutil.which("chromedriver"), shutil.which("chromium")
    if not (chromedriver and chromium):
        pytest.skip("there is no chromium with its chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    # Containers have no sandbox of their own, and little shared memory.
    contained = "--no-sandbox", "--disable-dev-shm-usage"
    for option in ("--headless=new", "--disable-gpu", "--lang=en", STILL, *contained):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(chromedriver))
    yield driver
    driver.quit()


@pytest.fixture
def in_chromium(driver, tmp_path):
    """A function: the Page, or one ``of`` another class, of what ``explorer_page`` returns.

    Whatever a test does with it, nothing may be written to the console and nothing asked for from
    elsewhere.
    """
    from in_browser import Page  # which skips where there is no selenium

    numbers = count()

    def show(content, of=Page):
        path = tmp_path / f"page-{next(numbers)}.html"
        path.write_bytes(content)
        return of(driver, path)

    yield show
    assert [entry["message"] for entry in driver.get_log("browser")] == []
    events = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    asked = [e["params"]["request"]["url"] for e in events if e["method"].endswith("WillBeSent")]
    assert {url.split(":")[0] for url in asked} <= {"file", "data", "blob"}
