"""Whatever stands in an address, a page opens; and what it then shows, its own address says."""

import json
import random

import pytest
from in_node import corpus, model_in, node, small_model

from minitransformer.explorer.page import FOLDER, explorer_page

OPENED = """
import { readFileSync } from "node:fs";
const { load_model } = await import(`${process.argv[1]}/load.js`);
const { choices_of, fragment_of, opened } = await import(`${process.argv[1]}/ui/fragment.js`);
const { FIRST_CHOICES, state_maker } = await import(`${process.argv[1]}/ui/state.js`);
const { model, fragments } = JSON.parse(readFileSync(0, "utf8"));
const page = load_model({ getElementById: () => ({ textContent: model }) });
const state_of = state_maker(page);
const names = Object.keys(FIRST_CHOICES).filter((name) => name !== "undo");
const shown = (fragment) => {
  const first = { ...FIRST_CHOICES, page, text: page.examples[0] };
  const state = state_of(opened(choices_of(fragment, page), first));
  const plain = (value) => (value instanceof Set ? [...value] : value);
  const choices = names.map((name) => [name, plain(state[name])]);
  const said = state.steps.map(({ id }) => id);
  return { choices: Object.fromEntries(choices), said, address: fragment_of(state) };
};
console.log(JSON.stringify(fragments.map((fragment) => {
  const once = shown(fragment);
  return [once, shown(once.address)];
})));
"""
WORDS = {
    "example": ["1", "3", "99", "0", "-1", "1.5"],
    "text": ["Der Hund singt.", "", " ", "a+b & c=d #e", "\u202e😀\ud83d", "H" * 300, "<b>", "%"],
    "view": ["next", "attention", "gradients", "learn", "__proto__"],
    "attention": ["encoder", "decoder", "cross", "constructor"],
    "drawn": ["lines", "matrix", ""],
    "language": ["en", "zh", "de", "toString"],
    "theme": ["light", "dark", "1"],
    "layer": ["1", "2", "3", "1e0", "0x1", "NaN"],
    "head": ["1", "2", "3", "Infinity"],
    "step": ["1", "2", "7", "40", "41", "-0"],
    "source_row": ["1", "5", "40", "9" * 400],
    "box": ["logits", "decoder.1.cross", "encoder.0.feed_forward", "encoder.9.self", "__proto__"],
    "part": ["decoder.1.cross.weights", "encoder.0.feed_forward.relu", "logits", "x"],
    "forced": ["5", "9* 17", "7 3 8*", "0", "2*", "400", "-1", "1", "*", "5 " * 50, "1e1", "-"],
    "epoch": ["3", "7", "0", "-1", "x"],
    "held": ["5 9 3", "7", "-", "400", "0", "5*"],
    "off": ["encoder.0.self.1", "decoder.1.cross.0 decoder.0.self.1", "encoder.0.self.2", "all"],
}  # fmt: skip

# In no address: a link opens the model as it was trained. And a translator draws no pieces.
LEARNING = {"learned", "learning", "teaching", "wanted", "optimizer", "rates", "num_steps"}
DRAWING = {"temperature", "top_k", "seed"}


def invented(seed):
    """An address of known names, each with what it may be, and may not."""
    rng = random.Random(seed)
    names = rng.sample(sorted(WORDS), k=rng.randrange(len(WORDS) + 1))
    pairs = [f"{name}={rng.choice(WORDS[name])}" for name in [*names, *names[:1]]]
    return "#" + "&".join(pairs).replace(" ", rng.choice("+ "))


@pytest.fixture(scope="module")
def shown(vocabulary):
    """A function of fragments that gives, twice, what a page shows of each, and of its address."""
    examples = [german for german, _ in corpus()["validation"][:3]]
    model = small_model(vocabulary)
    page = explorer_page(model, vocabulary, examples, epochs={3: model, 7: model})

    def ask(fragments):
        request = json.dumps(dict(model=model_in(page), fragments=fragments))
        script = ["--input-type=module", "--eval", OPENED, FOLDER.as_uri()]
        return json.loads(node(*script, input=request))

    return ask


def test_a_page_opens_with_any_address_and_its_own_opens_the_same_again(shown, fuzz_cases):
    fragments = ["", "#", "#%", "#%E0%A4%A&&==", *map(invented, fuzz_cases(60))]
    for fragment, (once, again) in zip(fragments, shown(fragments), strict=True):
        assert once["said"], fragment
        assert again == once, fragment


def test_of_an_address_all_that_makes_sense_counts_and_nothing_else(shown):
    sense = (
        "#example=2&forced=9*+17&off=encoder.0.self.1&step=2&source_row=3&view=gradients"
        "&attention=decoder&layer=2&head=2&drawn=matrix&box=decoder.1.cross"
        "&part=decoder.1.cross.weights&language=zh&theme=dark&epoch=7&held=9+17"
    )
    nonsense = (
        "#example=9&forced=9*+400&off=encoder.0.self.7&step=0&source_row=x&view=all"
        "&attention=all&layer=9&head=0&drawn=3d&box=decoder.9.cross&part=x&language=fr&theme=red&epoch=1&held=9+-"
    )
    (found, _), (first, _), (beginning, _) = shown([sense, nonsense, ""])
    assert first == beginning
    choices = found["choices"]
    assert choices["forced"] == [{"id": 9, "chosen": True}, {"id": 17, "chosen": False}]
    assert [piece["id"] for piece in choices["held"]] == found["said"][:2] == [9, 17]
    assert choices["off"] == ["encoder.0.self.1"]
    assert (choices["step"], choices["source_row"], choices["layer"], choices["head"]) == (
        1,
        2,
        1,
        1,
    )
    assert choices["part"] == "decoder.1.cross.weights"
    assert choices["epoch"] == 1  # the second that the page has
    different = {name for name in choices if choices[name] != first["choices"][name]}
    assert (
        different == choices.keys() - {"note"} - {"step"} - LEARNING - DRAWING
    )  # step 2 is the first choice
