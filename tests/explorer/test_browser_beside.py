"""A page in which a worker computes: it does what others do, and answers meanwhile."""

from itertools import pairwise

import pytest
from in_browser import Keys, Page, sentences
from in_node import masked_vocabulary, small_model, small_vocabulary
from test_texts import characters

from minitransformer.explorer import page as pages
from minitransformer.explorer import stored
from minitransformer.explorer.page import explorer_page

# What is shown at each place, and what the address says.
SHOWN = """
const ids = ["input", "learned", "epochs", "source", "translation", "architecture", "views",
             "view-shown", "lesson", "tour", "foot"];
return [location.hash, ...ids.map((id) => document.getElementById(id)?.innerText)];
"""


class Settled(Page):
    """A page whose worker has come to its end, whatever was asked of it."""

    def open(self, fragment="#example=1"):
        self.go(fragment)
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
def contents(model):
    """Of a page whose worker computes, and of one of the same numbers that does it at once."""
    epoch = small_model(small_vocabulary(), norm="pre")
    epoch.flat.data[:] *= 0.9
    more = small_vocabulary(), sentences(), ("de", "en")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored, "LARGEST_FLOAT32", 0)
        patch.setattr(pages, "AT_ONCE", 0)
        beside = explorer_page(model, *more, epochs={3: epoch})
    return beside, explorer_page(stored.as_stored(model, 8), *more, epochs={3: epoch})


@pytest.fixture
def both(contents, in_chromium):
    return [in_chromium(content, Settled) for content in contents]


@pytest.fixture
def beside(both):
    return both[0]


@pytest.fixture
def slow(contents, in_chromium):
    """The page whose worker computes, which waits before it does."""
    at_once, slowly = b"setTimeout(() => told_of_failure(compute)", b", 700"
    assert contents[0].count(at_once + b")") == 1
    return in_chromium(contents[0].replace(at_once, at_once + slowly), Settled)


def teach(page):
    page.click("#teach")
    page.until("#outcome")
    page.until("#stop[aria-disabled=true]")


ACTS = {
    "other text": lambda page: page.translate("Der Hund ist müde."),
    "no text": lambda page: page.translate(" "),
    "an example": lambda page: page.click("#examples option:nth-child(3)"),
    "another step": lambda page: page.click("#steps-2"),
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
    for (before, _), (name, _) in pairwise(here.items()):
        assert here[before] != here[name], name  # each does something


def test_it_says_how_far_it_is(beside):
    beside.open("#example=1")
    beside.run(
        """window.told = [];
           const working = document.getElementById("working");
           new MutationObserver(() => told.push(working.textContent.trim()))
             .observe(working, { childList: true, subtree: true });"""
    )
    beside.translate("Der Hund ist müde.")
    steps = len(beside.all("#steps button"))
    said = [f"The model writes. Pieces so far: {i + 1}" for i in range(steps)]
    rest = ["All boxes are being computed …", "The gradients are being computed …", ""]
    assert beside.run("return told") == [*said, *rest]


# A page, opened on a view, that is asked for all of these at once shows at the end what it does
# after some of them.
AT_ONCE = {
    "of the old text nothing is chosen in the new one": (
        "next",
        ["#translate", "#candidate-4", "#steps-4", "#hold"],
        ["#translate"],
    ),
    "nor is it taught": ("learn", ["#translate", "#teach"], ["#translate"]),
    "no head is switched in what is computed anew": (
        "attention",
        ["#switch-1", "#switch-0"],
        ["#switch-1"],
    ),
    "what is of no text is all done": (
        "next",
        ["#view-gradients", "#theme", "#view-attention"],
        ["#theme", "#view-attention"],
    ),
    "a choice is made once": ("next", ["#candidate-4", "#candidate-4"], ["#candidate-4"]),
}


@pytest.mark.parametrize("clicked", AT_ONCE.values(), ids=AT_ONCE)
def test_what_is_shown_of_an_earlier_choice_can_not_be_chosen(clicked, slow, both):
    view, several, counted = clicked
    ends = []
    for page, selectors in ((slow, several), (both[1], counted)):
        page.open(f"#example=1&step=3&view={view}")
        page.run(
            """document.getElementById("text").value = "Der Hund ist müde.";
               for (const selector of arguments[0]) document.querySelector(selector).click();""",
            selectors,
        )
        ends.append(page.shown()[:-1])  # both pages are in one window
    assert ends[0] == ends[1]


def test_who_goes_on_typing_keeps_what_was_typed(slow):
    slow.open("#example=1")
    box = slow.one("#text")
    box.clear()
    box.send_keys("Der Hund", Keys.ENTER)
    slow.run(
        """const box = document.getElementById("text");
           box.value = "Der Hund ist grau";
           box.dispatchEvent(new Event("input"));
           box.focus();
           box.setSelectionRange(4, 4);"""
    )
    slow.settle()
    assert "text=Der+Hund&" in slow.run("return location.hash")
    state = "const b = document.activeElement; return [b.id, b.value, b.selectionStart]"
    assert slow.run(state) == ["text", "Der Hund ist grau", 4]


def test_a_box_that_opens_late_does_not_take_the_focus_from_where_it_went(slow):
    slow.open("#example=1&view=gradients")
    slow.run(
        """document.getElementById("gradient-source-0").click();
           document.getElementById("text").focus();"""
    )
    slow.settle()
    assert slow.all("#box-title")
    assert slow.focused() == "text"


def test_the_way_back_stays_while_a_lesson_is_learned(beside):
    beside.open("#example=1&view=learn&step=2")
    beside.click("#num_steps-4")
    assert "is gone then" not in beside.one("#epochs").text
    teach(beside)
    assert "is gone then" in beside.one("#epochs").text  # which another epoch takes away
    beside.run(
        """window.redrawn = 0;
           new MutationObserver(() => (redrawn += 1))
             .observe(document.getElementById("learned"), { childList: true });"""
    )
    teach(beside)
    assert beside.run("return redrawn") == 1  # when it had been learned


@pytest.mark.parametrize("page", ["beside", "here"])
def test_pieces_that_are_held_are_the_same_after_each_epoch(page, both):
    page = both[page == "here"]
    page.open("#example=1")
    page.click("#candidate-3")

    def after(key):
        page.one("#epoch").send_keys(key)
        page.settle()
        probabilities = [s.get_attribute("aria-label") for s in page.all("#steps button")]
        return page.texts("#steps button"), probabilities, page.texts("#steps .chosen")

    free = after(Keys.END), after(Keys.HOME)
    assert free[0][0] != free[1][0]
    after(Keys.END)
    assert "are held" not in page.one("#translation").text
    page.click("#hold")
    assert "are held" in page.one("#translation").text
    held = after(Keys.END), after(Keys.HOME)
    assert held[0][0] == held[1][0] == free[0][0]
    assert held[0][1] != held[1][1]
    assert held[0][2] == held[1][2] == free[0][2] != []  # what was chosen is still marked
    page.click("#hold")
    assert after(Keys.HOME) == free[1]
    page.click("#undo")
    page.click("#hold")
    page.click("#candidate-4")
    assert not page.one("#hold").is_selected()


KINDS = {
    "language-model": (
        characters,
        "Ein Mann",
        [
            "#candidate-4", "#undo", "#way-drawn", "#again", "#hold", "#again", "#way-likeliest",
            "#view-attention", "#switch-1", "#view-gradients", "#steps-9",
        ],
    ),
    "masked-language-model": (
        masked_vocabulary,
        "Der ___ ist sehr ___.",
        ["#steps-1", "#candidate-2", "#hold", "#view-attention", "#switch-0", "#undo"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_so_does_a_model_of_another_kind(kind, in_chromium, monkeypatch):
    vocabulary, text, acts = KINDS[kind]
    model = small_model(vocabulary(), kind)
    ends = []
    for limit in (0, pages.AT_ONCE):
        monkeypatch.setattr(pages, "AT_ONCE", limit)
        content = explorer_page(model, vocabulary(), [text], ("de", "de"), epochs={1: model})
        page = in_chromium(content, Settled)
        page.open("#example=1")
        shown = [page.shown()]
        for act in acts:
            page.click(act)
            shown.append(page.shown())
        ends.append(shown)
    assert ends[0] == ends[1]


FAILS = {
    "as it begins": ('id="worker">', 'id="worker">throw new Error("full");', []),
    "as it computes": ("engine.update(...now)", 'engine.update(oops("full"))', []),
    "as it learns": (
        "const is_going_on = ",
        'throw new Error("full"); const is_going_on = ',
        ["#view-learn", "#teach"],
    ),
}


@pytest.mark.parametrize("fault", FAILS.values(), ids=FAILS)
def test_a_worker_that_fails_is_told_of_and_not_asked_again(fault, driver, contents, in_chromium):
    before, after, clicked = fault
    head, worker = contents[0].decode().split('<script type="text/plain" ')
    worker, main = worker.split("<script type=", 1)
    assert before in worker
    worker = worker.replace(before, after, 1)
    broken = f'{head}<script type="text/plain" {worker}<script type={main}'
    page = in_chromium(broken.encode(), Page)
    page.go("#example=1")
    stopped = "return document.getElementById('working').textContent.includes('has stopped')"
    for selector in clicked:
        page.until(f"main[aria-busy=false] {selector}")
        page.run("document.querySelector(arguments[0]).click()", selector)
    page.until_run(stopped)
    page.click_on("view-attention")
    assert page.run(stopped)
    assert [entry for entry in driver.get_log("browser") if "full" not in entry["message"]
            and "oops" not in entry["message"]] == []  # fmt: skip


def test_what_fails_in_the_page_itself_is_told_of_and_asked_again(driver, contents, in_chromium):
    page = in_chromium(contents[1])
    page.open("#example=1")
    page.run("window.kept = Math.exp; Math.exp = () => { throw new Error('full'); }")
    page.translate("Der Hund ist müde.")
    assert "has stopped" in page.content("#working")
    assert page.one("main").get_attribute("aria-busy") == "false"
    (told,) = driver.get_log("browser")
    assert "full" in told["message"]
    page.run("Math.exp = kept")
    page.click("#translate")
    assert page.content("#working").strip() == ""
    assert "text=Der+Hund+ist" in page.run("return location.hash")


@pytest.mark.parametrize("language", ["en", "zh", "de"])
def test_on_a_small_phone_the_epochs_stand_on_one_line_of_the_screen(language, both):
    _, page = both
    page.be_wide(320)
    page.open(f"#example=1&language={language}&epoch=3")
    overflows = "const e = document.getElementById('epochs'); return e.scrollWidth > e.clientWidth"
    assert not page.run(overflows)
    boxes = [one.rect for one in page.all("label[for=epoch], #epoch, output[for=epoch]")]
    middles = [box["y"] + box["height"] / 2 for box in boxes]
    assert max(middles) - min(middles) < 4
