"""The page in a browser, as a person uses it: with a mouse, with keys alone, on a phone."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from in_browser import (
    CSS,
    HTML,
    LESSONS,
    NO_HTML,
    PHONE,
    VIEWS,
    Keys,
    sentences,
    webdriver,
)
from in_node import small_model, small_vocabulary
from in_numpy import Watched, log_probabilities, said
from test_learning import learned

from minitransformer.data.text.vocabulary import BOS, EOS, PAD, UNK, Vocabulary
from minitransformer.explorer.page import Origin, Own, explorer_page
from minitransformer.version import __version__

ROOT = Path(__file__).parents[2]
DETAILS = ["attention&drawn=matrix", "next&box=decoder.1.cross"]
ALL_SEEN = "main > :not(.unseen)"
STOP_AT_THE_FIRST_CHANGE = """
new MutationObserver((_, observer) => {
  if (document.querySelector(".changes li")) {
    observer.disconnect();
    document.getElementById("stop").click();
  }
}).observe(document.getElementById("lesson"), { childList: true });
"""


@pytest.fixture(scope="module")
def content(model):
    return explorer_page(model, small_vocabulary(), sentences(), ("de", "en"), LESSONS)


@pytest.fixture
def page(content, in_chromium):
    return in_chromium(content)


def source_of(text):
    return [*small_vocabulary().encode(text), EOS]


def translation(model, text):
    return small_vocabulary().decode(said(model, source_of(text)))


def test_what_is_typed_is_translated_as_the_package_does(page, model):
    page.open()
    assert page.one("#sentence").text == translation(model, sentences()[0])
    box = page.one("#text")
    box.clear()
    box.send_keys(sentences()[1], Keys.ENTER)
    assert page.one("#sentence").text == translation(model, sentences()[1])
    assert page.texts("#source li")[-1] == "‹end›"


def test_the_translation_goes_on_from_pieces_that_are_chosen_and_back_one_by_one(page, model):
    page.open("#example=1&step=3")
    before = page.texts("#steps button")
    (chosen,) = page.texts("#candidate-4 .piece")
    page.click("#candidate-4")
    once = page.texts("#steps button")
    assert once[:3] == [*before[:2], chosen] != before[:3]
    assert page.texts("#steps .chosen") == [chosen]
    page.click("#steps-3")
    page.click("#candidate-5")
    page.click("#undo")
    assert page.texts("#steps button") == once
    page.click("#undo")
    assert page.texts("#steps button") == before
    assert page.all("#undo") == []
    page.click("#candidate-3")
    page.translate(sentences()[1])
    assert page.one("#sentence").text == translation(model, sentences()[1])


def test_bars_are_as_long_as_the_root_of_how_likely_a_piece_is_and_the_page_says_so(page):
    page.open("#example=1&step=3")
    likely = [numbers(text)[0] for text in page.texts(".bar-row .number")]
    widths = [numbers(bar.get_attribute("style"))[0] for bar in page.all(".bar-row .bar")]
    assert likely == sorted(likely, reverse=True)
    assert len(set(likely)) > 1
    assert widths == pytest.approx([100 * (p / likely[0]) ** 0.5 for p in likely], rel=0.05)
    assert "a bar half as long is a piece a quarter as likely" in page.one("#view-shown").text


def test_the_pieces_that_are_not_shown_have_the_rest_of_the_probability(page):
    rest = []
    for step in (1, 3, 5):
        page.open(f"#example=1&step={step}")
        shown = sum(numbers(text)[0] for text in page.texts(".bar-row .number"))
        rest += numbers(page.one("#others").text)
        assert shown + rest[-1] == pytest.approx(100, abs=1.5)  # all are rounded
    assert len(set(rest)) > 1


def test_a_head_is_switched_off_and_the_page_says_what_that_changed(page):
    page.open("#example=1&view=attention&attention=cross&layer=2")
    page.click("#switch-1")
    assert "decoder layer 2, cross-attention, head 2" in page.one(".changed").text
    before, after, difference = numbers_in(page.texts(".changed p")[-1])
    assert difference == pytest.approx(after - before, abs=1e-9)
    assert difference != 0
    assert not page.is_checked("#switch-1")
    assert page.one("[id='box-decoder.1.cross'] text").text == "Cross-attention (−1)"
    page.click("#heads-0")
    assert page.all(".off > .lines") == []
    page.click("#heads-1")
    assert page.one("#view-shown h2").text.startswith("Head 2, off")
    assert page.all(".off > .lines")  # which is paler
    page.click("#drawn-matrix")
    assert page.all(".off > .scroll")
    page.click("#all-on")
    assert page.all(".changed, .off") == []


def test_each_button_of_a_head_has_a_name_of_its_own(page):
    page.open("#example=1&view=attention")
    names = [button.accessible_name for button in page.all(".heads button")]
    assert len(set(names)) == len(names) == 4


def test_a_chosen_piece_that_is_no_longer_likely_has_its_probability(page):
    """The one that the gradients begin with; without two heads others are likelier."""
    page.open("#example=1&step=1&attention=encoder")
    page.click("#candidate-9")
    (chosen,) = page.texts("#steps .chosen")
    page.click("#view-attention")
    page.click("#switch-0")
    page.click("#switch-1")
    page.click("#view-next")
    assert chosen not in page.texts(".bar-row .piece")
    (shown,) = page.texts(".end.is-next")
    assert shown.endswith("\u00a0%")  # which no line begins with
    page.click("#view-gradients")
    assert shown.split(" · ")[1] in page.texts("#view-shown p")[0]
    assert shown.split(" · ")[1] in page.one("#steps .chosen").get_attribute("aria-label")
    assert numbers(shown.split(" · ")[1])[0] > 0


def numbers_in(text):
    """Those with three digits after the point, or more."""
    return [float(found.replace("−", "-")) for found in re.findall(r"−?\d+\.\d{3,}", text)]


def test_what_is_no_text_has_the_same_words_in_a_box(page):
    page.open("#example=1&box=logits")
    assert "· ‹unknown›:" in page.number(Keys.ARROW_RIGHT)


@pytest.mark.parametrize("head", [1, 2])
def test_the_matrix_of_a_head_is_that_of_the_package(page, model, monkeypatch, head):
    request = dict(source=source_of(sentences()[0]), target=[BOS], position=0, piece=EOS, off=[])
    weights = Watched(monkeypatch, model, request).states["weights"][0]  # (H, S, S)
    page.open(f"#example=1&view=attention&attention=encoder&layer=1&head={head}&drawn=matrix")
    shown = [float(text) for text in page.texts("table.matrix tbody td")]
    assert shown == pytest.approx(weights[head - 1].ravel(), abs=0.0051)
    page.open(f"#example=1&view=attention&head={head}&box=encoder.0.self")
    page.click("[id='parts-encoder.0.self.weights']")
    found = page.number(Keys.ARROW_RIGHT).split(": ")[-1]
    assert float(found) == pytest.approx(weights[head - 1][0, 1], abs=0.0051)


def test_weights_that_are_read_in_the_matrix_are_those_of_the_lines(page):
    page.open("#example=1&view=attention&attention=encoder&layer=1&head=2")
    page.click("#from-2")
    lines = [float(text) for text in page.texts(".to .number")]
    assert sum(lines) == pytest.approx(1, abs=0.05)
    page.click("#drawn-matrix")
    matrix = [float(text) for text in page.texts("tr.is-selected td")]
    assert matrix == pytest.approx(lines, abs=0.0051)
    webdriver.ActionChains(page.driver).move_to_element(page.one("tr.is-selected td")).perform()
    assert numbers_in(page.one("#weight").text) == pytest.approx(lines[:1], abs=0.0051)


def test_a_gradient_leads_to_its_box(page):
    page.open("#example=1&view=gradients")
    assert len(page.all("[id^=gradient-source-]")) == len(page.texts("#source li"))
    assert len(page.all("[id^=flow-]")) == 10
    lengths = [numbers(row.get_attribute("title"))[0] for row in page.all("#source li")]
    darkness = [-sum(rgb_of(chip)) for chip in page.all("#source li")]
    by_length = [dark for _, dark in sorted(zip(lengths, darkness, strict=True))]
    assert by_length == sorted(darkness)  # the longer a gradient, the stronger its colour
    assert min(darkness) < max(darkness)
    page.click("#gradient-source-0")
    assert page.one("#box-title").text == "Source · embedding"
    assert page.focused() == "box-title"


def rgb_of(element):
    return [
        int(n) for n in re.findall(r"\d+", element.value_of_css_property("background-color"))[:3]
    ]


def test_what_is_said_of_the_flow_is_what_its_bars_show(page):
    page.open("#example=1&view=gradients")
    rows = [row.get_attribute("aria-label") for row in page.all("[id^=flow-]")]
    ways = [numbers(row)[-2:] for row in rows]
    past = sum(residual >= sublayer for residual, sublayer in ways)
    shares = [sublayer / (residual + sublayer) for residual, sublayer in ways]
    most = rows[shares.index(max(shares))]
    said = page.texts("#view-shown .hint")[-1]
    assert said.startswith(f"In {past} of 10 blocks")
    assert most.split(":")[0] in said


def test_connections_are_as_wide_as_the_gradient_is_long(page):
    page.open("#example=1&view=gradients")
    bands = page.run(
        """return Array.from(document.querySelectorAll("path.band:not(.memory)"),
           (path) => [path.getAttribute("stroke-width"), path.textContent])"""
    )
    lengths = [numbers(title)[0] for _, title in bands]
    scales = [float(width) / x for (width, _), x in zip(bands, lengths, strict=True)]
    wide = [scale for scale, x in zip(scales, lengths, strict=True) if x > max(lengths) / 4]
    assert wide == pytest.approx([wide[0]] * len(wide), rel=0.06)  # both are rounded
    labels = [row.get_attribute("aria-label") for row in page.all("[id^=flow-]")]
    residual = [path.get_attribute("textContent") for path in page.all("path.band.residual")]
    assert {numbers(label)[-2] for label in labels} == {numbers(title)[0] for title in residual}
    assert {numbers(label)[-1] for label in labels} <= set(lengths)


def numbers(text):
    return [float(found) for found in re.findall(r"\d+(?:\.\d+)?(?:e-?\d+)?", text)]


def test_every_box_opens_with_its_numbers_its_gradient_and_its_lesson(page):
    page.open()
    names = [box.get_attribute("id") for box in page.all("g.box")]
    assert len(names) == 2 * 2 + 4 * 3 + 6 * 3 + 2 + 2
    for name in names:
        page.click_on(name)
        assert page.all("canvas#numbers"), name
        assert bool(page.all("canvas#gradient")) == (name != "box-probabilities"), name
        assert re.match(r"lessons/\d\d\.html$", page.one(".facts a").get_dom_attribute("href"))
    page.press(Keys.ESCAPE)
    assert page.all("#box-title") == []
    assert page.focused() == names[-1]


def test_the_letters_of_a_shape_are_its_sizes(page, model):
    c = model.config
    page.open()
    sizes = dict(H=c.num_heads, K=c.d_model // c.num_heads, F=c.d_ff)
    sizes |= dict(S=len(page.all("#source li")), T=len(page.all("#steps button")))
    for part, letters in {
        "decoder.0.cross.query": "(H, T, K)",
        "decoder.0.cross.key": "(H, S, K)",
        "decoder.0.cross.weights": "(H, T, S)",
        "decoder.0.self.weights": "(H, T, T)",
        "encoder.0.self.weights": "(H, S, S)",
        "encoder.0.feed_forward.relu": "(S, F)",
    }.items():
        page.click_on(f"box-{part.rpartition('.')[0]}")
        page.click(f"[id='parts-{part}']")
        expected = ", ".join(str(sizes[letter]) for letter in re.findall(r"\w", letters))
        assert page.one(".facts dd").text.startswith(f"{letters} = ({expected})"), part


def test_a_number_of_a_box_is_read_with_the_arrow_keys(page, model):
    page.open("#example=1&box=source.embedding")
    found = page.number(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_DOWN).split(": ")[-1]
    (piece, *_) = small_vocabulary().encode(sentences()[0])[1:]
    expected = model.source_embedding.weight.data[piece, 2] * np.sqrt(model.config.d_model)
    assert float(found.replace("−", "-")) == pytest.approx(expected, rel=0.01, abs=0.01)


def test_it_speaks_three_languages(page):
    page.open()
    for language, tab in {"en": "What", "zh": "下一个子词", "de": "Was folgt"}.items():
        page.click(f"#language option[value={language}]")
        assert page.run("return document.documentElement.lang") == language
        assert page.texts("#view button")[0].startswith(tab)


def test_it_is_light_or_dark(page):
    page.open("#example=1&theme=light")
    light = page.one("body").value_of_css_property("background-color")
    page.click("#theme")
    assert page.one("body").value_of_css_property("background-color") != light
    assert page.is_checked("#theme")


@pytest.mark.parametrize("language", ["de", pytest.param("en", marks=pytest.mark.slow)])
@pytest.mark.parametrize("view", VIEWS + DETAILS)
def test_on_a_phone_nothing_is_wider_than_the_screen(page, view, language):
    page.be_wide(PHONE)
    page.open(f"#example=3&language={language}&view={view}")
    assert page.width() == PHONE


def test_keys_alone_are_enough(page):
    page.open("#example=1&step=1")
    page.tab_to("text")
    page.press(Keys.CONTROL, "a")
    page.press(sentences()[1], Keys.ENTER)
    page.tab_to("steps-1")
    page.press(Keys.ARROW_RIGHT)
    assert page.focused() == "steps-2"
    assert page.is_checked("#steps-2")
    page.tab_to("box-source.embedding")
    page.press(Keys.ARROW_UP, Keys.ENTER)
    assert page.focused() == "box-title"
    page.press(Keys.ESCAPE)
    assert page.focused() == "box-source.positions"
    page.tab_to("view-next")
    page.press(Keys.ARROW_RIGHT)
    assert page.focused() == "view-attention"
    page.tab_to("heads-0")
    page.press(Keys.ARROW_RIGHT)
    page.tab_to("switch-1")
    page.press(Keys.SPACE)
    assert "head 2" in page.one(".changed").text
    assert page.focused() == "switch-1"


def test_where_there_is_nothing_to_translate_it_says_so(page):
    page.open()
    before = page.one("#sentence").text
    for text in ("", "   ", "\t", "\x1c", "▁"):
        page.translate(text)
        assert "nothing to translate" in page.one(".note").text
        assert page.one("#sentence").text == before
    page.open("#text=▁")
    assert "nothing to translate" in page.one("#view-shown").text


@pytest.mark.parametrize(("text", "note"), [
    ("Hund " * 2000, "39 pieces at most"),
    ("H" * 10_000, "39 pieces at most"),
    ("Der 🐕 ist müde 👍.", "has never seen these characters"),
    (HTML, "has never seen these characters"),
    ("\u202eDer Hund\u0000 .", ""),
])  # fmt: skip
def test_any_text_is_read_and_shown_as_text(page, text, note):
    page.open()
    page.translate(text)
    assert note in page.one(".note").text
    assert page.all("#steps button")
    for view in VIEWS:
        page.click(f"#view-{view}")
        assert page.all(NO_HTML) == []


def test_pieces_that_are_html_are_shown_as_text(in_chromium):
    words = [HTML, "<!--", "</script>", "&lt;", "{{model}}"]
    hostile = Vocabulary.train([" ".join(words)] * 5, 100)
    page = in_chromium(explorer_page(small_model(hostile), hostile, words))
    for view in VIEWS:
        page.open(f"#example=1&view={view}")
        assert "".join(page.texts("#source li")).startswith("<b>fett</b><img")
        assert page.all(NO_HTML) == []
    assert UNK not in hostile.encode(HTML)


def test_a_script_that_gets_into_the_page_does_not_run(page):
    page.open()
    page.run(
        """const script = document.createElement("script");
           script.textContent = "window.has_run = true";
           document.body.append(script);"""
    )
    assert page.run("return window.has_run") is None
    (refused,) = page.driver.get_log("browser")
    assert "Content Security Policy" in refused["message"]


@pytest.mark.parametrize(("fragment", "shown"), [
    ("#view=attention&attention=decoder&layer=2&head=2", "#kind-decoder[aria-checked=true]"),
    ("#view=gradients&step=2", "#view-gradients[aria-checked=true]"),
    ("#box=encoder.1.self", "#box-title"),
    ("#drawn=matrix&view=attention", "table.matrix"),
    ("#text=Hund&language=de", "#sentence"),
    ("#view=<b>&layer=99&head=-1&step=0.5&box=x&example=7&language=xx&off=1", "#candidate-0"),
    ("#box=logits&part=encoder.0.self.weights&forced=9*+2&off=encoder.9.self.0", "#box-title"),
    ("#%E0%A4%A&&==", "#candidate-0"),
])  # fmt: skip
def test_the_address_says_what_is_shown(page, fragment, shown):
    page.open(fragment)
    assert page.all(shown)


def links_of_lessons():
    """The views that lessons link to: fragments of an address."""
    sources = [path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("lessons/*.py"))]
    return [link for text in sources for link in re.findall(r'#look-inside "#(.*?)"', text)]


def test_lessons_00_08_09_11_and_15_link_to_views_that_there_are(page):
    links = links_of_lessons()
    assert len(links) == 5
    for link in links:
        page.open(f"#{link}")
        assert set(link.split("&")) <= set(page.driver.current_url.split("#")[1].split("&"))


def test_another_address_on_the_same_page_changes_what_is_shown(page):
    page.open("#example=1&view=gradients&box=logits&step=4")
    page.run("location.hash = '#example=2&view=attention'")
    page.until("#switch-0")
    assert page.texts("#source li")[0] != "Ein"
    assert page.all("#box-title") == []


SEEN = """
return [document.documentElement.lang, document.documentElement.dataset.theme,
  document.querySelector("main").innerText,
  ...Array.from(document.querySelectorAll("[aria-checked=true], .chosen"), ({ id }) => id)];
"""


@pytest.mark.parametrize("last", ["view-attention", "box-decoder.1.cross"])
def test_a_link_opens_exactly_what_was_seen(page, last):
    page.open("#example=2&view=attention&attention=encoder&layer=2&drawn=matrix&step=2")
    page.click("#heads-1")
    page.click("#switch-0")
    page.click("#row-2")
    page.click("#view-next")
    page.click("#candidate-3")
    page.click("#steps-3")
    page.click("#theme")
    page.click("#language option[value=de]")
    page.click_on(last)
    if last.startswith("box"):
        page.click("[id='parts-decoder.1.cross.weights']")
        page.click("#box-head-0")
    before = page.run(SEEN)
    page.open("#" + page.driver.current_url.split("#")[1])
    assert page.run(SEEN) == before
    assert len(page.all("#steps .chosen")) == 1
    page.click("#undo")  # what a link has chosen can be taken back
    assert page.all("#steps .chosen") == []


COUNT_ENTRIES = """
window.entries = 0;
const push = history.pushState;
history.pushState = function (...given) { window.entries += 1; push.apply(this, given); };
"""


def test_the_back_button_closes_a_box_and_goes_back_to_the_view_before(page):
    page.open("#example=1&view=next")
    page.click("#view-gradients")
    page.click("#gradient-source-0")
    page.click("#language option[value=de]")  # no place: it is neither an entry, nor taken back
    page.click("#steps-2")
    page.driver.back()
    page.until("#flow-decoder\\.0\\.self")
    assert page.all("#box-title") == []
    assert page.focused() == "box-source.embedding"
    page.driver.back()
    page.until("#candidate-0")
    assert page.run("return document.documentElement.lang") == "de"
    assert page.is_checked("#steps-2")
    page.driver.forward()
    page.until("[id^=flow-]")


def test_a_box_that_was_closed_is_no_place_to_go_back_to(page):
    page.open("#example=1&view=next")
    page.click("#view-gradients")
    page.run(COUNT_ENTRIES)
    for close in (lambda: page.press(Keys.ESCAPE), lambda: page.click("#close")):
        page.click("#gradient-source-0")
        close()
        assert page.all("#box-title") == []
        page.until_run("return !history.state.box")
    assert page.run("return window.entries") == 2  # those of the boxes
    page.driver.back()
    page.until("#candidate-0")


def test_the_tour_makes_no_places_to_go_back_to(page):
    page.open("#example=1")
    page.run(COUNT_ENTRIES)
    page.click("#start-tour")
    for _ in range(6):
        page.press(Keys.ENTER)
    assert page.run("return window.entries") == 0
    page.click("#view-attention")
    assert page.run("return window.entries") == 1


def test_after_the_tour_the_focus_is_where_it_was(page):
    page.open("")
    page.run("localStorage.clear()")
    page.open("")
    page.press(Keys.ESCAPE)
    assert page.focused() == "start-tour"  # on a first visit it was nowhere
    page.open("#example=1")
    page.tab_to("steps-1")
    page.click_on("start-tour")
    page.click("#tour-skip")
    assert page.focused() == "steps-1"


def test_it_opens_on_the_step_of_all_examples_at_which_the_model_is_least_sure(page, model):
    page.open("#language=en")
    entropies = {}
    for i, text in enumerate(sentences()):
        log_p = after_each(model, text, said(model, source_of(text)))
        entropies |= {(i, t): -(np.exp(row) * row).sum() for t, row in enumerate(log_p)}
    example, step = max(entropies, key=entropies.get)
    assert page.one("#text").get_attribute("value") == sentences()[example]
    assert page.is_checked(f"#steps-{step}")
    assert (example, step) != (0, 1)  # where it opened without a reason


def test_arrow_keys_go_the_way_they_point_in_the_diagram(page):
    page.open("#example=1")
    page.tab_to("box-source.embedding")
    for key, reached in [
        (Keys.ARROW_DOWN, "source.embedding"),  # nothing is below it
        (Keys.ARROW_UP, "source.positions"),
        (Keys.ARROW_RIGHT, "target.positions"),
        (Keys.ARROW_RIGHT, "target.positions"),
        (Keys.ARROW_UP, "decoder.0.self.norm"),
        (Keys.ARROW_LEFT, "encoder.0.self.norm"),
        (Keys.ARROW_DOWN, "source.positions"),
        (Keys.END, "probabilities"),
        (Keys.ARROW_UP, "probabilities"),
        (Keys.ARROW_LEFT, "encoder.norm"),
        (Keys.ARROW_UP, "encoder.norm"),
        (Keys.HOME, "source.embedding"),
    ]:
        before = page.one(f"[id='{page.focused()}']").rect
        page.press(key)
        assert page.focused() == f"box-{reached}"
        after = page.one(f"[id='{page.focused()}']").rect
        assert key != Keys.ARROW_UP or after["y"] <= before["y"]


def test_the_name_of_a_box_has_the_words_that_are_written_on_it(page):
    """So that who speaks to a computer can say what they see."""
    page.open("#example=1")
    for label, name in page.run(
        """return Array.from(document.querySelectorAll("g.box"), (box) =>
           [box.querySelector("text").textContent, box.getAttribute("aria-label")])"""
    ):
        seen = label.replace("+ ", "").replace("+", "residual sum")
        assert seen.lower() in name.lower()


SMALL = """
const seen = (element) => element.getClientRects().length > 0;
return Array.from(document.querySelectorAll("button, select, input, summary, dd a, g.box"))
  .filter(seen)
  .map((element) => [element.id || element.textContent, element.getBoundingClientRect()])
  .filter(([, { width, height }]) => width < 24 || height < 24)
  .map(([name, { width, height }]) => `${name}: ${width} by ${height}`);
"""


@pytest.mark.parametrize("view", VIEWS + DETAILS)
def test_on_a_phone_all_that_one_touches_has_24_pixels_each_way(page, view):
    page.be_wide(PHONE)
    page.open(f"#example=3&view={view}")
    assert page.run(SMALL) == []


def test_on_a_phone_a_box_that_is_closed_leaves_the_page_where_it_was(page):
    page.be_wide(PHONE)
    page.open("#example=1&view=next")
    page.run("document.getElementById('box-source.embedding').scrollIntoView()")
    before = page.run("return scrollY")
    page.click_on("box-source.embedding")
    assert page.run("return scrollY") < before  # up to what is in it
    page.click("#close")
    assert page.run("return scrollY") == before > 0


def test_a_finger_reads_the_numbers_of_a_picture_and_of_the_matrix(page):
    page.be_wide(PHONE)
    page.open("#example=1&view=attention&drawn=matrix")
    page.touch("table.matrix tbody td")
    assert numbers_in(page.one("#weight").text)
    page.open("#example=1&box=source.embedding")
    page.touch("#numbers")
    assert re.search(r"number \d+: −?\d", page.one(".readout").text)


def test_in_high_contrast_bars_switches_and_choices_are_seen(page):
    colours = """
        const [bar, paper] = [document.querySelector(".bar") ?? document.body, document.body];
        const style = (element, before) => getComputedStyle(element, before);
        const chosen = [...document.querySelectorAll("main [aria-checked=true]:not(.switch)")];
        const other = (element) =>
          element.parentElement.querySelector("[aria-checked=false]") ?? paper;
        const told = ({ backgroundColor, borderBottomColor }) =>
          backgroundColor + borderBottomColor;
        return {
          bar: style(bar).backgroundColor !== style(paper).backgroundColor,
          switches: [...document.querySelectorAll(".switch")].map((one) =>
            style(one, "::before").backgroundImage),
          chosen: chosen.every((one) => told(style(one)) !== told(style(other(one)))),
        };"""
    forced = [{"name": "forced-colors", "value": "active"}]
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": forced})
    try:
        for theme in ("light", "dark"):
            page.open(f"#example=1&view=next&theme={theme}")
            assert page.run(colours) == {"bar": True, "switches": [], "chosen": True}
            page.open(f"#example=1&view=attention&theme={theme}")
            found = page.run(colours)
            assert found["chosen"]
            assert len(found["switches"]) == 2
            assert all("gradient" in image for image in found["switches"])
    finally:
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_the_first_visit_is_shown_around_and_the_next_is_not(page):
    page.open("")
    page.run("localStorage.clear()")
    page.open("")
    for _ in range(7):
        assert page.one("#tour").is_displayed()
        page.press(Keys.ENTER)  # on the button for the next stop, which has the focus
    assert page.all("#tour") == []
    page.open("")
    assert page.all("#tour") == []


@pytest.mark.parametrize(("chosen", "view"), [(None, "next"), ("gradients", "gradients")])
def test_after_the_tour_the_view_is_as_before_or_the_one_that_was_chosen_since(page, chosen, view):
    page.open("#example=1&view=next")
    page.click("#start-tour")
    for _ in range(5):
        page.click("#tour-next")
    assert page.is_checked("#view-learn")
    if chosen:
        page.click(f"#view-{chosen}")
    page.click("#tour-skip")
    assert page.is_checked(f"#view-{view}")


def test_who_switches_a_head_off_on_the_tour_stays_where_it_looks(page):
    page.open("#example=1&view=next")
    page.click("#start-tour")
    for _ in range(3):
        page.click("#tour-next")
    page.click("#switch-1")
    page.press(Keys.ESCAPE)
    assert page.all("#tour") == []
    assert page.all("#all-on")


def test_who_has_taught_the_model_on_the_tour_stays_with_what_it_learned(page):
    page.open("#example=1&view=next")
    page.click("#start-tour")
    for _ in range(5):
        page.click("#tour-next")
    page.teach()
    page.click("#tour-next")
    page.click("#tour-next")  # the end
    assert page.one("#outcome").is_displayed()


@pytest.mark.parametrize("width", [1400, PHONE])
def test_of_the_tour_the_title_can_be_seen_and_no_stop_lies_under_its_card(page, width):
    page.be_wide(width)
    page.open("#example=1")
    page.click("#start-tour")
    assert page.run("return document.querySelector('h1').getBoundingClientRect().top") > 0
    for _ in range(7):
        top, card = page.run(
            """return [".is-toured", "#tour"].map((selector) =>
               document.querySelector(selector).getBoundingClientRect().top)"""
        )
        assert 0 <= top < card - 40
        page.click("#tour-next")
    assert page.focused() == "start-tour"
    assert 0 <= page.run("return document.activeElement.getBoundingClientRect().top") < 800


def test_the_tabs_stay_where_they_are_whichever_is_chosen(page):
    places = []
    for view in VIEWS:
        page.open(f"#example=1&view={view}")
        places.append([tab.rect for tab in page.all("#views button")])
    assert all(others == places[0] for others in places)


def test_where_a_browser_keeps_nothing_the_page_works(page):
    forbidden = """
        Object.defineProperty(window, "localStorage", { get() { throw new Error("no"); } });
        history.replaceState = () => { throw new Error("no"); };
    """
    added = page.driver.execute_cdp_cmd(
        "Page.addScriptToEvaluateOnNewDocument", {"source": forbidden}
    )
    try:
        page.open("")
        page.press(Keys.ESCAPE)
        assert page.all("#tour") == []
        page.click("#view-gradients")
        assert page.all("[id^=flow-]")
    finally:
        page.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)


def test_what_is_no_code_of_a_language_is_shown_as_it_is(model, vocabulary, in_chromium):
    page = in_chromium(explorer_page(model, vocabulary, sentences(), ("<b>", "toki_pona!")))
    page.open()
    assert "from <b> into toki_pona!" in page.one("header").text


def test_a_post_norm_model_without_examples_begins_with_a_sentence_that_is_typed(
    vocabulary, in_chromium
):
    page = in_chromium(explorer_page(small_model(vocabulary, norm="post"), vocabulary))
    page.open("#view=gradients")
    assert page.all("#steps") == []
    page.translate(sentences()[0])
    assert len(page.all("[id^=flow-]")) == 10
    assert page.all("[id='box-decoder.norm']") == []


def after_each(model, text, ids):
    """log p (T, V) of all that may stand in place of each of these ids in a translation."""
    return log_probabilities(model, source_of(text), [BOS, *ids[:-1]])


def lesson(model, text, *, number=None, wanted=None):
    """A request to learn the candidate of this number in place of the second piece; or a text."""
    source = source_of(text)
    options = dict(source=source, optimizer="adam", learning_rate=0.01, steps=12)
    if wanted:
        return options | dict(pieces=source_of(wanted))
    first, *_ = said(model, source)
    log_p = log_probabilities(model, source, [BOS, first])[1]
    log_p[[PAD, BOS]] = -np.inf  # never said
    piece = int(np.argsort(-log_p)[number])
    return options | dict(target=[BOS, first], position=1, piece=piece)


def after_learning(*requests):
    """The losses of the last, and the model after all of them."""
    model = small_model(small_vocabulary(), norm="pre")
    losses = [[loss for loss, _ in learned(model, request)] for request in requests]
    return losses[-1], model


def curve(page):
    """The probabilities that the curve shows, by where its points are."""
    bottom, _, top = (numbers(path.get_attribute("d"))[1] for path in page.all(".curve .grid"))
    points = page.one(".curve polyline").get_attribute("points").split()
    return [(bottom - float(point.split(",")[1])) / (bottom - top) for point in points]


def teach_second_piece(page, number):
    page.open("#example=1&step=2")
    page.click(f"#candidate-{number}")
    page.click("#view-learn")
    page.click("[id='rate-0.01']")
    return page.teach()


def test_a_chosen_piece_is_learned_as_the_package_learns_it(page, model):
    observed = teach_second_piece(page, 4)
    losses, after = after_learning(lesson(model, sentences()[0], number=4))
    assert curve(page) == pytest.approx(np.exp(-np.array(losses)), abs=0.0005)  # of a tenth of 1 px
    readings = [numbers(text) for text in page.texts(".readings li")]
    assert [t for t, _ in readings] == list(range(13))
    assert [p for _, p in readings] == pytest.approx(100 * np.exp(-np.array(losses)), rel=0.05)
    assert losses[-1] < losses[0] / 2
    assert observed["counts"] == list(range(1, 14))  # each was seen, and the page was drawn between
    assert observed["frames"] > 0
    now_said = page.texts("#lesson p")[1].split("“")[-1]
    assert now_said.startswith(translation(after, sentences()[0]))


def test_what_is_shown_is_of_the_model_that_has_learned(page, model):
    teach_second_piece(page, 4)
    request = lesson(model, sentences()[0], number=4)
    (loss, *_), after = after_learning(request)
    ids = [request["target"][1], request["piece"]]
    piece = np.exp(after_each(after, sentences()[0], ids)[1, request["piece"]])
    shown = page.one("#steps .chosen").get_attribute("aria-label")
    assert numbers(shown)[-1] == pytest.approx(100 * piece, rel=0.05)
    assert piece > 10 * np.exp(-loss)
    assert "no longer the model as it was trained" in page.one("#learned").text
    assert page.all("#architecture .note")
    page.click("#view-gradients")
    log_p = numbers_in(page.one("#view-shown p").text)[0]
    assert log_p == pytest.approx(np.log(piece), abs=6e-4)
    page.open("#example=1")  # the page as it was given
    assert page.texts("#learned, #lesson") == ["", ""]


def test_a_sentence_is_learned_by_keys_alone(page, model):
    wanted = "The girl is tired."
    page.open("#example=2")
    page.tab_to("view-next")
    page.press(Keys.END)
    page.tab_to("teaching-piece")
    page.press(Keys.ARROW_RIGHT)
    page.tab_to("wanted")  # which selects what stands there
    page.press(wanted)
    page.tab_to("optimizer-adam")
    page.tab_to("rate-0.0003")
    page.press(Keys.END)
    page.tab_to("teach")
    page.press(Keys.ENTER)
    page.until("#outcome")
    page.until("#stop[aria-disabled=true]")
    assert page.focused() == "teach"
    losses, after = after_learning(lesson(model, sentences()[1], wanted=wanted))
    assert curve(page) == pytest.approx(np.exp(-np.array(losses)), abs=0.0005)
    assert page.one("#sentence").text == translation(after, sentences()[1])
    assert page.texts("#live-learned") == page.texts("#outcome")
    page.tab_to("undo_learning")
    page.press(Keys.ENTER)
    assert page.focused() == "view-learn"
    assert page.one("#sentence").text == translation(model, sentences()[1])


def expected_changes(before, after, taught, asked):
    """(text, verdict, log p before, log p after) of sentences, with what is asked of each."""
    rows = []
    brought = set(taught) - set(said(before, source_of(sentences()[0])))
    for text, ids in asked.items():
        was, now = (said(model, source_of(text)) for model in (before, after))
        values = [
            after_each(model, text, ids)[range(len(ids)), ids].sum() for model in (before, after)
        ]
        if (was == ids) != (now == ids):
            verdict = "took over" if brought & set(now) - set(was) else "forgotten"
            verdict = "learned" if now == ids else verdict
        else:
            verdict = "better" if values[1] > values[0] else "worse"
        rows.append((text, verdict, *values))
    return rows


def changes_shown(page):
    rows = []
    for item in page.all(".changes li"):
        verdict, text = (item.find_element(CSS, kind).text for kind in ("strong", "span"))
        rows.append((text, verdict, *numbers_in(item.text)[-2:]))
    return rows


def test_what_else_has_changed_is_what_the_package_says_of_it(page, model):
    first, *others = sentences()
    teach_second_piece(page, 2)
    request = lesson(model, first, number=2)
    _, after = after_learning(request)
    asked = {text: said(model, source_of(text)) for text in others}
    rows = expected_changes(model, after, [request["piece"]], asked)
    assert changes_shown(page) == [pytest.approx(row, abs=6e-4) for row in rows]
    verdicts = [verdict for _, verdict, *_ in rows]
    assert len(set(verdicts)) > 1
    counted = dict(text.rsplit(" ", 1) for text in page.one("#counted").text.split(" · "))
    assert counted == {verdict: str(verdicts.count(verdict)) for verdict in verdicts}


def test_no_sentence_at_all_is_not_learned(page):
    page.open("#example=1&view=learn")
    page.click("#teaching-sentence")
    for nothing in ("", "  "):
        page.one("#wanted").clear()
        page.one("#wanted").send_keys(nothing, Keys.ENTER)
        assert page.one("#learned").text == ""
        assert page.one("#stop").get_attribute("aria-disabled") == "true"


def test_a_note_is_of_what_was_done_last(page):
    page.open("#example=1&step=2")
    page.translate("  ")
    assert page.content("#live") == page.one(".note").text != ""
    page.click("#candidate-3")
    assert page.one(".note").text == ""
    assert page.content("#live") == page.one("#sentence").text


def test_a_box_that_is_closed_while_it_learns_leads_back_one_place(page):
    page.open("#example=1&step=2")
    page.click("#view-attention")
    page.click("#view-learn")
    page.click("#num_steps-40")
    page.click("#teach")
    page.click_on("box-logits")
    page.press(Keys.ESCAPE)
    page.until("#learned .changed")
    page.until("#stop[aria-disabled=true]")
    assert "view=learn" in page.run("return location.hash")
    assert "box=" not in page.run("return location.hash")


def test_one_learning_is_undone_and_all_of_them(page):
    page.open("#example=1&view=gradients&step=2")
    trained = page.texts(ALL_SEEN)
    shown = []
    for _ in range(2):
        page.click("#view-learn")
        page.teach()
        page.click("#view-gradients")
        shown.append(page.texts(ALL_SEEN))
    assert trained != shown[0] != shown[1]
    page.click("#undo_learning")
    assert page.texts(ALL_SEEN) == shown[0]
    page.click("#undo_learning")
    assert page.texts(ALL_SEEN) == trained
    page.click("#view-learn")
    page.teach()
    page.teach()
    page.click("#as_trained")
    page.click("#view-gradients")
    assert page.texts(ALL_SEEN) == trained


def test_learning_that_is_stopped_leaves_what_was_learned_until_then(page, model):
    page.open("#example=1&view=learn&step=2")
    page.click("#num_steps-40")
    page.teach("stop", at=4)
    assert len(page.texts(".readings li")) == 4
    assert page.one("#outcome").text.endswith("(steps: 3). It was stopped at step 3 of 40.")
    assert page.texts(".curve .step")[:2] == ["0", "3"]  # so wide is the curve
    assert len(page.texts(".changes li")) == len(sentences()) - 1  # the others were looked at
    assert "no examples" not in page.one("#lesson").text
    page.click("#as_trained")
    page.teach("stop", at=1)  # before the first
    assert page.texts("#learned, #lesson") == ["", ""]


def test_looking_at_other_sentences_can_be_stopped_and_it_says_so(page):
    page.open("#example=1&view=learn&step=2")
    page.run(STOP_AT_THE_FIRST_CHANGE)
    page.teach()
    others = len(sentences()) - 1
    seen = len(page.texts(".changes li"))
    assert 0 < seen < others
    assert f"Stopped after {seen} of {others} sentences." in page.texts("#lesson p")
    assert "stopped at step" not in page.one("#lesson").text


def test_who_stops_in_the_last_step_has_stopped_looking_at_others(page):
    page.open("#example=1&view=learn&step=2")
    page.click("#num_steps-4")
    page.teach("stop", at=5)
    assert f"Stopped after 0 of {len(sentences()) - 1} sentences." in page.texts("#lesson p")
    assert "no examples" not in page.one("#lesson").text


def test_what_is_undone_while_it_is_learned_does_not_come_back(page):
    page.open("#example=1&view=learn&step=2")
    page.teach()
    before = page.texts(".readings li")
    page.teach("undo_learning", at=3)
    assert page.texts("#learned, #lesson") == ["", ""]
    page.teach()
    assert page.texts(".readings li") == before
    assert page.one("#learned p").text.count("“") == 1


@pytest.mark.parametrize(("optimizer", "rate"), [("adam", 0.01), ("sgd", 0.1)])
def test_each_optimizer_has_a_rate_of_its_own(page, model, optimizer, rate):
    page.open("#example=1&view=learn&step=2")
    page.click("[id='rate-0.01']")  # of Adam
    page.click(f"#optimizer-{optimizer}")
    page.click("#num_steps-4")
    if optimizer == "sgd":
        assert page.is_checked("[id='rate-0.01']")
        page.click("[id='rate-0.1']")
    page.teach()
    options = dict(optimizer=optimizer, steps=4, learning_rate=rate)
    losses, _ = after_learning(lesson(model, sentences()[0], number=0) | options)
    assert curve(page) == pytest.approx(np.exp(-np.array(losses)), abs=0.0005)


def test_heads_that_are_off_are_off_while_it_learns(page):
    page.open("#example=1&view=attention&attention=cross&layer=2&step=2")
    page.click("#switch-1")
    page.click("#view-next")
    likely = numbers(page.texts(".is-selected .number")[0])
    page.click("#view-learn")
    page.teach()
    assert numbers(page.texts(".readings li")[0])[1:] == likely


def test_what_it_cannot_read_of_a_sentence_to_learn_it_says(page):
    page.open("#example=1&view=learn")
    page.click("#teaching-sentence")
    assert page.one("#wanted").get_attribute("value") == page.one("#sentence").text
    for text, note in {"The 🐕.": "🐕", "dog " * 50: "39 pieces at most", "": ""}.items():
        page.write("#wanted", text)
        assert note in page.one("#wanted-note").text
        assert bool(note) == bool(page.one("#wanted-note").text)
        page.teach()
        assert page.one("#outcome").text.startswith("The probability")


@pytest.mark.parametrize("kind", ["piece", "sentence"])
def test_what_was_learned_fits_a_phone_and_is_told_in_three_languages(page, kind):
    page.be_wide(PHONE)
    page.open("#example=1&view=learn&theme=dark")
    page.click(f"#teaching-{kind}")
    page.click("#num_steps-40")
    page.teach()
    for language, told in {"de": "Die Wahrsch", "zh": "40 步之内", "en": "The prob"}.items():
        page.click(f"#language option[value={language}]")
        assert page.one("#outcome").text.startswith(told)
        assert len({tab.rect["y"] for tab in page.all("#views button")}) == 1  # in one row
        assert page.width() == PHONE


OWN = Own("mine.py", {"relu": f"def relu(x):  # {HTML}", "linear_backward": "..."}, 12, 3, HTML)
LEARNED = ["Der", "Hund", "ist", "müde"]


@pytest.fixture
def of_a_run(model, vocabulary, in_chromium):
    """A page that knows of a training, and of a learner's functions."""
    origin = Origin("toy", label_smoothing=0.1, words=LEARNED, own=OWN)
    return in_chromium(explorer_page(model, vocabulary, sentences(), origin=origin))


def test_the_foot_says_what_made_the_page_and_of_which_model(page, of_a_run, model):
    page.open()
    foot = page.one("#foot").text
    assert f"minitransformer {__version__}." in foot
    count = f"{model.config.num_parameters():,}".replace(",", "\u202f")  # as all languages read it
    assert f"{count} parameters" in foot
    assert "minitransformer explore RUN" in foot
    assert "toy corpus" not in foot
    for language, words in {"en": "toy corpus", "zh": "玩具语料", "de": "Spielkorpus"}.items():
        of_a_run.open(f"#language={language}")
        assert words in of_a_run.one("#foot").text


def test_it_says_why_a_sure_step_is_not_quite_sure(page, of_a_run):
    page.open()
    assert page.all("#ceiling") == []  # of the training nothing is known
    of_a_run.open()
    most = 1 - 0.1 + 0.1 / len(small_vocabulary())
    assert f"shows about {100 * most:.0f} %" in of_a_run.one("#ceiling").text
    assert f"each other one {100 * 0.1 / 400:.2g}" in of_a_run.one("#ceiling").text
    of_a_run.click("#view-learn")
    of_a_run.teach()
    of_a_run.click("#view-next")
    assert of_a_run.all("#ceiling") == []  # what was taught here may be surer


def test_words_that_the_training_had_not_are_marked(page, of_a_run):
    of_a_run.open()
    of_a_run.translate("Der Hund, müde, hund.")
    assert "has these words: hund." in of_a_run.one(".note").text
    assert "hund" in of_a_run.content("#live")
    marked = of_a_run.texts("#source .never-seen")
    assert "".join(marked) == "hund"
    assert "".join(of_a_run.texts("#source li")).endswith("hund.‹end›")
    assert all(chip.is_displayed() for chip in of_a_run.all("#source li"))
    of_a_run.translate("hund 🐕")
    assert of_a_run.one(".note").text.endswith(": 🐕")  # and no sentence runs on from there
    of_a_run.translate("hund katze " * 50)
    assert "has these words: hund, katze." in of_a_run.one(".note").text
    assert of_a_run.texts("#source li")[-1] == "‹end›" not in of_a_run.texts("#source .never-seen")
    of_a_run.translate("Der Hund ist müde.")
    assert of_a_run.one(".note").text == ""
    assert of_a_run.all("#source .never-seen") == []
    page.open()  # which has no words of its training
    page.translate("Hallo hund")
    assert page.all("#source .never-seen") == []


def test_a_box_shows_what_a_learner_wrote_for_it(of_a_run):
    of_a_run.open("#example=1&box=encoder.0.feed_forward&part=encoder.0.feed_forward.relu")
    of_a_run.click("#own-code summary")
    assert of_a_run.one("#own-code pre").text == OWN.sources["relu"]
    of_a_run.open("#example=1&box=logits")
    of_a_run.click("#own-code summary")
    assert of_a_run.one("#own-code pre").text == OWN.sources["linear_backward"]
    of_a_run.open("#example=1&box=source.embedding")
    assert of_a_run.all("#own-code") == []
    assert "Of 12 sentences the learner’s translated 3 otherwise." in of_a_run.one("#foot").text


def test_without_sentences_nothing_is_said_of_how_many_a_learner_translates(
    model, vocabulary, in_chromium
):
    origin = Origin(own=replace(OWN, compared=0, differ=0))
    page = in_chromium(explorer_page(model, vocabulary, origin=origin))
    page.open("#")
    assert "mine.py" in page.one("#foot").text
    assert "0 sentences" not in page.one("#foot").text
    page.click("#certificate summary")
    assert page.one("#certificate pre").text == HTML
    assert page.all("body img, body b") == []
