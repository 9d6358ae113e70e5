"""The page of a model that does not translate in a browser: what it has beside a translator's."""

import re

import pytest
from in_browser import HTML, LESSONS, NO_HTML, PHONE, Keys
from in_browser import VIEWS as ALL_VIEWS
from in_node import masked_vocabulary, small_model
from test_equal_to_numpy import KINDS as CHOICES
from test_texts import characters, scored

from minitransformer.data.text.vocabulary import EOS
from minitransformer.explorer.page import Origin, explorer_page
from minitransformer.inference.filler import Filler
from minitransformer.inference.generator import TextGenerator

VIEWS = [view for view in ALL_VIEWS if view != "learn"]  # which translators alone do
GAPS = ["Der ___ ist sehr ___.", "Die Frau liest ein ___."]
ALIBI = dict(kind="language-model", positions="alibi", activation="gelu", norm="post")
KINDS = {  # its choices and its vocabulary, texts to begin with, how many boxes the diagram has
    "GPT": (CHOICES["GPT"], characters, ["Ein Mann", "Die Frau"], 2 + 2 * 6 + 1 + 2),
    "Llama": (CHOICES["as Llama has it"], scored, ["Der Hund"], 1 + 2 * 6 + 1 + 2),
    "ALiBi": (ALIBI, characters, ["Ein Mann"], 1 + 2 * 6 + 2),
    "BERT": (dict(kind="masked-language-model"), masked_vocabulary, GAPS, 2 + 2 * 6 + 1 + 2),
}


@pytest.fixture(scope="module")
def trained():
    """What generates or fills with a model of each kind."""
    made = {}
    for name, (choices, vocabulary_of, *_) in KINDS.items():
        use, vocabulary = Filler if name == "BERT" else TextGenerator, vocabulary_of()
        made[name] = use(small_model(vocabulary, **choices), vocabulary)
    return made


@pytest.fixture
def page_of(trained, in_chromium):
    """A function that gives the page of one of KINDS."""

    def opened(name, **more):
        model, vocabulary, texts = trained[name].model, trained[name].vocabulary, KINDS[name][2]
        return in_chromium(explorer_page(model, vocabulary, texts, ("de", "de"), LESSONS, **more))

    return opened


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name != "GPT")) for name in KINDS]
)
def test_every_box_opens_and_every_view_is_told_in_three_languages(name, page_of):
    page = page_of(name)
    page.open("#example=1")
    boxes = [box.get_attribute("id") for box in page.all("g.box")]
    assert len(boxes) == KINDS[name][-1]
    for box in boxes:
        page.click_on(box)
        parts = [part.get_attribute("id") for part in page.all("#parts button")]
        for part in (parts if ".0." in box else []) or [None]:
            if part:
                page.click(f"[id='{part}']")
            assert page.all("canvas#numbers"), (box, part)
            assert bool(page.all("canvas#gradient")) == (box != "box-probabilities"), (box, part)
            letters, sizes = re.match(r"\((.*?)\) = \((.*?)\)", page.one(".facts dd").text).groups()
            assert len(letters.split(", ")) == len(sizes.split(", ")), (box, part)
    page.press(Keys.ESCAPE)
    for language in ("zh", "de", "en"):
        page.click(f"#language option[value={language}]")
        for view in VIEWS:
            page.click(f"#view-{view}")
            assert not re.search("undefined|NaN|null", page.one("body").text), (language, view)
    page.click("#start-tour")
    for _ in range(6):
        assert "translat" not in page.one("#tour").text
        assert page.all("#views [aria-checked=true]")  # it leads to no view that there is not
        page.click("#tour-next")
    assert page.all("#tour") == []


def test_what_is_looked_at_of_a_gap_is_its_own_row(page_of):
    page = page_of("BERT")
    page.open("#example=1&view=attention")  # Der ___ ist sehr ___.
    rows = []
    for gap in (0, 1):
        page.click(f"#steps-{gap}")
        rows.append(int(re.search(r"source_row=(\d+)", page.run("return location.hash"))[1]))
    before, between = ([*masked_vocabulary().encode(part)] for part in ("Der", "ist sehr"))
    assert rows == [2 + len(before), 3 + len(before) + len(between)]  # counted from the start


@pytest.mark.parametrize(("name", "told"), [("GPT", True), ("BERT", False)])
def test_of_gaps_in_which_some_pieces_alone_may_stand_no_ceiling_is_told(name, told, page_of):
    page = page_of(name, origin=Origin(label_smoothing=0.1))
    page.open("#example=1")
    assert bool(page.all("#ceiling")) == told


def test_a_piece_that_is_chosen_within_the_beginning_is_not_one_that_was_given(page_of):
    page = page_of("GPT")
    page.open("#text=Ein&step=2")
    assert len(page.all("#steps .given")) == 3
    page.click("#candidate-4")
    assert len(page.all("#steps .given")) == 1
    assert page.one("#steps .chosen").get_attribute("aria-label").startswith("piece 2: ")


def test_a_link_to_no_text_at_all_opens_what_goes_on_from_nothing(page_of):
    page = page_of("GPT")
    page.open("#text=")
    assert page.one("#text").get_attribute("value") == ""
    assert page.all("#steps .given") == []
    assert sentence(page)


@pytest.mark.parametrize("width", [PHONE, 320])
@pytest.mark.parametrize("name", ["GPT", "BERT"])
def test_on_a_phone_nothing_is_wider_than_the_screen(name, width, page_of):
    page = page_of(name)
    page.be_wide(width)
    for view in (*VIEWS, "attention&drawn=matrix"):
        page.open(f"#example=1&language=de&temperature=0.5&view={view}")
        assert page.width() == width, view


def sentence(page):
    """What was written, as it is seen, with each blank."""
    return page.run("return document.getElementById('sentence').innerText")


def test_a_text_goes_on_by_keys_alone(page_of, trained):
    page = page_of("GPT")
    page.open("#example=1")
    assert sentence(page) == trained["GPT"].generate("Ein Mann", 32, temperature=0)
    page.tab_to("text")  # what is in a field is selected then
    page.press("Der  Hund", Keys.ENTER)
    assert sentence(page) == trained["GPT"].generate("Der  Hund", 31, temperature=0)
    assert "".join(page.texts("#steps .given")) == "Der␣␣Hund"
    page.tab_to("way-likeliest")
    page.press(Keys.ARROW_RIGHT)
    page.tab_to("seed")
    page.press("7", Keys.TAB)
    drawn = trained["GPT"].generate("Der  Hund", 31, seed=7)
    assert sentence(page) == drawn
    page.tab_to("steps-9")
    page.press(Keys.ARROW_RIGHT)
    assert page.focused() == "steps-10"
    page.tab_to("candidate-0")
    page.press(Keys.ARROW_DOWN, Keys.ENTER)
    (chosen,) = page.texts("#steps .chosen")
    assert chosen == page.texts(".bar-row .piece")[1]
    page.tab_to("view-next")
    page.press(Keys.ARROW_RIGHT)
    page.tab_to("switch-1")
    page.press(Keys.SPACE)
    assert "decoder layer 1, self-attention, head 2" in page.one(".changed").text


def test_what_was_drawn_comes_again_with_its_address_and_differs_with_another_seed(page_of):
    page = page_of("Llama")
    page.open("#example=1&temperature=2&top_k=40&seed=5")
    before = sentence(page)
    assert "2 gives" in page.one("#chance").text
    page.click("#again")
    assert page.one("#seed").get_attribute("value") == "6"
    assert sentence(page) != before
    page.run("arguments[0].value = '-1'; arguments[0].dispatchEvent(new Event('change'))",
             page.one("#seed"))  # fmt: skip
    assert page.one("#seed").get_attribute("value") == "6"
    page.open("#" + page.driver.current_url.split("#")[1].replace("seed=6", "seed=5"))
    assert sentence(page) == before
    assert page.one("#top_k").get_attribute("value") == "40"


def test_heads_of_a_group_have_one_key(page_of):
    page = page_of("Llama")
    page.open("#example=1&box=decoder.0.self")
    page.click("[id='parts-decoder.0.self.turned_key']")
    assert page.one(".facts dd").text.startswith("(G, T, K) = (2, ")
    ranges = []
    for head in range(4):
        page.click(f"#box-head-{head}")
        ranges.append(page.one(".readout").text)
    assert ranges[0] == ranges[1] != ranges[2] == ranges[3]


def test_gaps_are_filled_and_each_can_be_looked_at(page_of, trained):
    page = page_of("BERT")
    page.open("#example=1")
    filling = trained["BERT"].fill(GAPS[0], top=10)
    assert sentence(page) == filling.text
    assert page.all(".note")[0].text == ""
    assert page.texts("#source li").count("‹gap›") == 2
    page.click("#steps-1")
    assert page.texts(".bar-row .piece") == [piece for piece, _ in filling.gaps[1]]
    page.click("#candidate-3")
    assert page.texts("#steps button") == [filling.gaps[0][0][0], filling.gaps[1][3][0]]
    page.click("#view-attention")
    assert page.one("#from [aria-checked=true]").text == "‹gap›"
    assert page.all("#kind") == []
    page.click("#switch-0")
    assert "encoder layer 1, self-attention, head 1" in page.one(".changed").text
    page.click("#undo")
    for text, note in {
        "Die Frau liest.": "no gap to fill",
        "___ " * 39: "This page takes 38 pieces at most",
    }.items():
        page.translate(text)
        assert note in page.one("#view-shown").text


def test_any_beginning_is_read_and_shown_as_text(page_of):
    page = page_of("GPT")
    page.open("#example=1")
    for text in ("", "   ", HTML, "Der Hund " * 50, "\u202e🐕"):
        page.translate(text)
        assert page.all("#steps button"), text
        assert page.all(NO_HTML) == []


@pytest.mark.parametrize("fragment", [
    "#attention=cross&layer=9&head=9&box=source.embedding&temperature=-1&top_k=x&seed=1e99",
    "#step=64&view=attention&drawn=matrix&attention=decoder&layer=2",
    "#text=&box=target.positions",
    "#box=decoder.1.cross",
])  # fmt: skip
def test_any_address_shows_something(fragment, page_of):
    page = page_of("GPT")
    page.open(fragment)
    assert page.all("#steps button")


def test_a_text_that_was_stopped_before_its_end_says_so(page_of):
    page = page_of("GPT")
    page.open("#example=1")
    steps = page.texts("#steps button")
    assert steps[-1] != "‹end›"
    assert f"It was stopped after {len(steps)} pieces" in page.one("#translation").text
    page.open(f"#example=1&forced={EOS}")
    assert page.texts("#steps button") == ["‹end›"]
    assert "stopped" not in page.one("#translation").text
    page = page_of("BERT")
    page.open("#example=1")
    assert "stopped" not in page.one("#translation").text
