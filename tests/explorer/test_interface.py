"""What the page says and which colours it has, without a browser."""

import json
import re
from decimal import Decimal

import pytest
from in_node import node

from minitransformer.explorer.page import FOLDER

LANGUAGES = {"en", "zh", "de"}
READABLE = 4.5  # the least contrast of text, WCAG 2 level AA
SOURCES = [path.read_text(encoding="utf-8") for path in FOLDER.rglob("*.js")]


def exported(module, name):
    """The JSON of what an expression gives in which a module of the interface is ``m``."""
    script = f"import * as m from {json.dumps((FOLDER / 'ui' / module).as_uri())};"
    script += f"console.log(JSON.stringify({name}))"
    return json.loads(node("--input-type=module", "--eval", script))


@pytest.fixture(scope="module")
def words():
    return exported("words.js", "m.WORDS")


def test_no_language_lacks_a_word(words):
    for key, row in words.items():
        assert set(row) == LANGUAGES, key
        assert all(text.strip() for text in row.values()), key


def test_all_languages_name_the_same_values(words):
    for key, row in words.items():
        named = [sorted(re.findall(r"{\w+}", text)) for text in row.values()]
        assert named[0] == named[1] == named[2], key


def test_words_of_a_kind_of_model_stand_for_others_in_each_language(words):
    for kind, rows in exported("words_of_kinds.js", "m.WORDS_OF_KINDS").items():
        for key, row in rows.items():
            assert set(row) == LANGUAGES, (kind, key)
            named = [sorted(re.findall(r"{\w+}", text)) for text in row.values()]
            assert named[0] == named[1] == named[2], (kind, key)
            assert set(named[0]) <= set(re.findall(r"{\w+}", words[key]["en"])), (kind, key)


def test_every_word_that_is_said_is_there(words):
    said = [key for source in SOURCES for key in re.findall(r'say\(\s*"(\w+)"', source)]
    assert len(said) > 50
    assert set(said) <= set(words)


def test_every_word_that_is_there_is_said(words):
    """By its whole name, or by the beginning of a template such as `about_${kind}`."""
    code = "\n".join(text for text in SOURCES if "export const WORDS" not in text)
    named = set(re.findall(r"\w+", code))
    beginnings = tuple(re.findall(r"`(\w+_)\$\{", code))
    endings = tuple(re.findall(r"\}(_\w+)`", code))
    for key in words:
        assert key in named or key.startswith(beginnings) or key.endswith(endings), key


def test_every_rule_of_the_style_is_for_something_on_the_page():
    page = (FOLDER / "page.html").read_text(encoding="utf-8")
    named = set(re.findall(r"[\w-]+", " ".join([*SOURCES, page])))
    style = re.sub(r"/\*.*?\*/", "", (FOLDER / "style.css").read_text(encoding="utf-8"), flags=re.S)
    selectors = " ".join(re.findall(r"([^{};]+)\{", style))
    used = set(re.findall(r"[.#]([a-z][\w-]*)", selectors))
    assert {"chip", "is-toured"} <= used <= named
    colours = set(re.findall(r"(--[\w-]+):", style))
    assert colours == set(re.findall(r"var\((--[\w-]+)\)", style))


def test_a_difference_is_that_of_the_numbers_as_they_are_shown():
    pairs = [
        [-0.0844, -0.0806],
        [-0.08412, -0.08409],
        [-2, -2],
        [-1e-12, 0],
        [-7.25, -0.5],
        [0, -9],
    ]
    shown = exported("numbers.js", f"{pairs}.map(([a, b]) => m.compared(a, b))")
    for (before, after), words in zip(pairs, shown, strict=True):
        a, b, d = (
            Decimal(words[name].replace("−", "-")) for name in ("before", "after", "difference")
        )
        assert b - a == d
        assert float(d) == pytest.approx(after - before, rel=0.1, abs=1e-9)
        assert len(words["before"].partition(".")[2]) == len(words["difference"].partition(".")[2])
    assert shown[2] == dict(before="−2.000", after="−2.000", difference="0.000")
    assert shown[4] == dict(before="−7.250", after="−0.500", difference="6.750")


def test_no_share_is_written_with_a_power_of_ten():
    shares = {0: "0.0", 3e-9: "< 0.0001", 2e-6: "0.00020", 0.0123: "1.2", 0.995: "100", 1: "100"}
    shown = exported("numbers.js", f"{[*shares]}.map(m.percent)")
    assert [text.replace("\xa0", " ") for text in shown] == [f"{x} %" for x in shares.values()]


def test_text_on_any_colour_can_be_read():
    numbers = "Array.from({ length: 201 }, (_, i) => i / 100 - 1)"
    styles = exported(
        "colours.js",
        f"""["light", "dark"].flatMap((theme) =>
            ["weights", "signed", "lengths"].flatMap((scale) =>
              {numbers}.map((number) => m.style_of(number, scale, theme))))""",
    )
    for style in set(styles):
        *background, ink = re.match(
            r"background:rgb\((\d+),(\d+),(\d+)\);color:#(...)", style
        ).groups()
        assert contrast(luminance(map(int, background)), float(ink == "fff")) >= READABLE, style


def contrast(*luminances):
    dark, light = sorted(luminances)
    return (light + 0.05) / (dark + 0.05)


def luminance(channels):
    """Relative luminance of red, green and blue as WCAG 2 defines it."""
    shares = [value / 255 for value in channels]
    linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return sum(weight * s for weight, s in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("theme", ["", '[data-theme="dark"]'])
def test_the_colours_of_text_can_be_read(theme):
    style = (FOLDER / "style.css").read_text(encoding="utf-8")
    (rules,) = re.findall(rf"^:root{re.escape(theme)} {{(.*?)}}", style, re.MULTILINE | re.DOTALL)
    colours = dict(re.findall(r"--([\w-]+): (#\w+);", rules))
    pairs = [(ink, paper) for ink in ("ink", "quiet", "forward") for paper in ("page", "card")]
    for ink, paper in [*pairs, ("on-forward", "forward"), ("ink", "layer")]:
        lights = (luminance(channels(colours[name])) for name in (ink, paper))
        assert contrast(*lights) >= READABLE, (ink, paper)


def channels(colour):
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    return [int(digits[i : i + 2], 16) for i in (0, 2, 4)]


def test_of_a_worker_s_answers_that_to_what_was_asked_last_is_the_last():
    told = exported(
        "engine.js",
        """(() => {
             let worker;
             globalThis.Worker = class { constructor() { worker = this; } postMessage() {} };
             const page = { config: { kind: "transformer" }, model: {} };
             const told = [];
             const arrive = (state, goes, is_last) => told.push(is_last);
             const engine = m.engine_beside("", "", page, {}, arrive, () => {});
             engine.update({});
             engine.go_back(0);
             for (const answered of [2, 3]) {
               worker.onmessage({ data: { changed: { language: "en" }, answered } });
             }
             return told;
           })()""",
    )
    assert told == [False, True]
