"""A page in which a worker computes: it does what others do, and answers meanwhile.

As in ``test_browser.py``, which has the browser, nothing may be written to the console and nothing
asked for from elsewhere.
"""

import pytest
from in_node import small_model, small_vocabulary

from minitransformer.explorer import page as pages
from minitransformer.explorer import stored
from minitransformer.explorer.page import explorer_page

browser = pytest.importorskip("test_browser")
Keys, driver, pytestmark = browser.Keys, browser.driver, browser.pytestmark
# What is shown at each place, and what the address says.
SHOWN = """
return [location.hash, ...["input", "learned", "epochs", "source", "translation", "architecture",
        "views", "view-shown", "lesson", "foot"].map((id) => document.getElementById(id).innerText)]
"""


class Settled(browser.Page):
    """A page whose worker has come to its end, whatever was asked of it."""

    def __init__(self, driver, path):
        super().__init__(driver, path)
        self.path = path

    def open(self, fragment="#example=1"):
        self.driver.get("about:blank")
        self.driver.get(self.address + fragment)
        self.settle()

    def settle(self):
        self.until("main[aria-busy=false]")

    def click(self, selector):
        super().click(selector)
        self.settle()

    def press(self, *keys):
        super().press(*keys)
        self.settle()

    def shown(self):
        self.settle()
        return self.run(SHOWN)


@pytest.fixture(scope="module")
def model():
    return small_model(small_vocabulary(), norm="pre")


@pytest.fixture
def both(driver, model, tmp_path):
    """A page whose worker computes, and one of the same numbers that does it at once."""
    rounded = stored.as_stored(model, 8)
    epochs = {3: small_model(small_vocabulary(), norm="pre")}
    epochs[3].flat.data[:] *= 0.9
    made = []
    for name, shown, change in (
        ("beside", model, {(stored, "LARGEST"): 0, (pages, "AT_ONCE"): 0}),
        ("here", rounded, {}),
    ):
        with pytest.MonkeyPatch.context() as patch:
            for (module, constant), value in change.items():
                patch.setattr(module, constant, value)
            page = explorer_page(
                shown, small_vocabulary(), browser.sentences(), ("de", "en"), epochs=epochs
            )
        path = tmp_path / f"{name}.html"
        path.write_bytes(page)
        made.append(Settled(driver, path))
        made[-1].be_wide(1400)
    yield made
    assert [entry["message"] for entry in driver.get_log("browser")] == []
    assert browser.requests(driver) <= {"file", "data", "blob", "about"}


def teach(page):
    page.click("#teach")
    page.until("#outcome")
    page.until("#stop[aria-disabled=true]")


def quickly(page):
    """Before any of it is computed."""
    page.run(
        """for (const id of ["steps-1", "view-gradients", "steps-3", "theme"]) {
             document.getElementById(id).click();
           }"""
    )


ACTS = {
    "other text": lambda page: page.translate("Der Hund ist müde."),
    "no text": lambda page: page.translate(" "),
    "an example": lambda page: page.click("#examples option:nth-child(3)"),
    "another step": lambda page: page.click("#steps-2"),
    "much at once": quickly,
    "a piece that is chosen": lambda page: (page.click("#view-next"), page.click("#candidate-4")),
    "undone": lambda page: page.click("#undo"),
    "a head that is off": lambda page: (page.click("#view-attention"), page.click("#switch-1")),
    "a gradient's box": lambda page: (
        page.click("#view-gradients"),
        page.click("#gradient-source-0"),
    ),
    "a box by a key": lambda page: page.press(Keys.ESCAPE),
    "back": lambda page: (page.driver.back(), page.until("#switch-1")),
    "learned": lambda page: (page.click("#view-learn"), page.click("#num_steps-4"), teach(page)),
    "learned twice": teach,
    "one taken back": lambda page: page.click("#undo_learning"),
    "in German": lambda page: page.click("#language option[value=de]"),
    "all taken back": lambda page: page.click("#as_trained"),
    "held": lambda page: page.click("#hold"),
    "an earlier epoch": lambda page: (page.one("#epoch").send_keys(Keys.HOME), page.settle()),
    "another link": lambda page: page.run("location.hash = '#example=2&step=3&view=attention'"),
    "the tour": lambda page: (page.click("#start-tour"), page.click("#tour-next")),
}


def test_it_shows_what_a_page_does_that_computes_at_once(both):
    """With all that can be done; the feet differ, as one says that its numbers were rounded."""
    ends = []
    for page in both:
        page.open("#example=1")
        shown = {"at first": page.shown()}
        for name, act in ACTS.items():
            act(page)
            shown[name] = page.shown()
        ends.append(shown)
    beside, here = ends
    for (name, one), other in zip(beside.items(), here.values(), strict=True):
        assert one[:-1] == other[:-1], name
    assert "its numbers were rounded to 8 bits." in beside["at first"][-1]
    assert len({tuple(shown) for shown in here.values()}) > len(here) - 4  # they do something


def test_it_says_how_far_it_is(both):
    page, _ = both
    page.open("#example=1")
    page.run(
        """window.told = [];
           const working = document.getElementById("working");
           new MutationObserver(() => told.push(working.textContent))
             .observe(working, { childList: true });"""
    )
    page.translate("Der Hund ist müde.")
    page.settle()
    steps = len(page.all("#steps button"))
    said = [f"The model writes: {i + 1} pieces …" for i in range(steps)]
    rest = ["All boxes are being computed …", "The gradients are being computed …", ""]
    assert page.run("return told") == [*said, *rest]


def test_a_worker_that_has_stopped_is_told(driver, both, tmp_path):
    text = both[0].path.read_text(encoding="utf-8")
    path = tmp_path / "broken.html"
    path.write_text(text.replace('id="worker">', 'id="worker">throw new Error("full");'))
    page = Settled(driver, path)
    driver.get(page.address)
    page.until_run("return document.getElementById('working').textContent.includes('stopped')")
    (logged,) = driver.get_log("browser")
    assert "full" in logged["message"]
