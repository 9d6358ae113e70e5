"""The page computes what the package computes: every box, every gradient, to 1e-9."""

import re
from pathlib import Path

import numpy as np
import pytest
from in_node import ask, decoded, runs, small_model
from in_numpy import Watched, log_probabilities

from minitransformer.data.text.vocabulary import BOS, EOS
from minitransformer.decoding import greedy
from minitransformer.explorer.page import explorer_page
from minitransformer.layers.softmax import softmax

ROOT = Path(__file__).parents[2]
TOLERANCE = dict(rtol=1e-9, atol=1e-9)  # both compute in float64
KINDS = {
    "pre-norm, one matrix": dict(norm="pre"),
    "post-norm, two matrices": dict(norm="post", tying="two-way", num_decoder_layers=1),
    "pre-norm, three matrices": dict(norm="pre", tying="none", num_heads=4, num_encoder_layers=1),
    "GPT": dict(kind="language-model"),
    "GPT, post-norm, two matrices": dict(kind="language-model", norm="post", tying="none"),
    "BERT": dict(kind="masked-language-model", positions="sinusoidal", num_layers=3),
    "BERT with a window": dict(kind="masked-language-model", window=2, norm="post"),
    "as GPT-2 has it": dict(
        kind="language-model", activation="gelu-by-tanh", bias="all", scaled_embedding=False
    ),
    "as Llama has it": dict(
        kind="language-model",
        d_model=16,
        num_heads=4,
        num_groups=2,
        normalisation="rms-norm",
        positions="rotary",
        activation="swiglu",
        bias="none",
        scaled_embedding=False,
    ),
    "halves, GELU, a window": dict(
        kind="language-model",
        positions="rotary",
        rotary_pairs="halves",
        rotary_base=100.0,
        activation="gelu",
        window=3,
    ),
    "ALiBi, SiLU, one group": dict(
        kind="language-model", positions="alibi", activation="silu", num_groups=1, window=4
    ),
    "BERT, no positions, ALiBi": dict(
        kind="masked-language-model", positions="alibi", bias="none", normalisation="rms-norm"
    ),
    "no positions, no biases": dict(kind="language-model", positions="none", bias="none"),
}


PARTS = {  # of names that in_numpy.py has for several
    "attention": ("self", "cross"),
    "turned": ("turned_query", "turned_key"),
    "maps": ("gate", "up", "feed_forward"),
}
NUMBERS = [12, pytest.param(100, marks=pytest.mark.slow)]  # of sentences


@pytest.fixture(scope="module", params=NUMBERS, ids=str)
def number(request):
    return request.param


@pytest.fixture(scope="module", params=KINDS.values(), ids=KINDS)
def compared(request, number, vocabulary):
    """(found in Node, Watched in NumPy) of each sentence."""
    model = small_model(vocabulary, **request.param)
    asked = runs(vocabulary, number, model.config.kind)
    answer = ask(explorer_page(model, vocabulary), runs=asked)
    with pytest.MonkeyPatch.context() as patch:
        return list(zip(answer["runs"], (Watched(patch, model, r) for r in asked), strict=True))


def of_part(named, part):
    """The arrays of (name, array) pairs whose name ends with this part, in order."""
    parts = PARTS.get(part, (part,))
    return [decoded(array) for name, array in named if name.split(".")[-1] in parts]


def in_order(gradients, states):
    """The gradients of boxes as (name, array) pairs in the order of the boxes."""
    return [(name, gradients[name]) for name, _ in states if name in gradients]


def differences(found, watched):
    """The names of what differs between a run in Node and the same in NumPy."""
    gradients = dict(found["gradients"])
    pairs = {
        "logits": (of_part(found["states"], "logits"), [watched.logits]),
        "probabilities": (of_part(found["states"], "probabilities"), [softmax(watched.logits)[0]]),
        "gradient of logits": ([decoded(gradients["logits"])], [watched.dlogits]),
        "log_probability": ([found["log_probability"]], [watched.log_probability]),
    }
    if found["steps"]:  # none of a masked model
        pairs["steps"] = [decoded(step)[0] for step in found["steps"]], list(watched.logits)
    for part, values in watched.states.items():
        pairs[part] = of_part(found["states"], part), values
    for part in watched.states:
        boxes = in_order(gradients, found["states"])
        pairs[f"gradient of {part}"] = of_part(boxes, part), watched.gradients[part]
    for path, value in watched.parameters.items():
        pairs[f"gradient of {path}"] = [decoded(gradients[path])], [value]
    for way, values in zip(("residual", "sublayer"), zip(*watched.flow, strict=True), strict=True):
        pairs[f"flow, {way}"] = [decoded(entry[way]) for entry in found["flow"]], values
        norms = [entry["norms"][f"{way}_norm"] for entry in found["flow"]]
        pairs[f"flow, {way}_norm"] = norms, [np.linalg.norm(value) for value in values]
    memory = [decoded(entry["memory"]) for entry in found["flow"] if entry["memory"]]
    attentions = [name for name, _ in found["states"] if name.split(".")[-1] in ("self", "cross")]
    if any(name.endswith("cross") for name in attentions):
        others = zip(attentions, watched.gradients["other"], strict=True)
        cross = [value for name, value in others if name.endswith("cross")]
        pairs["flow, memory"] = memory, cross[::-1]
    return [name for name, pair in pairs.items() if not same(*pair)]


def same(found, expected):
    return len(found) == len(expected) > 0 and all(
        np.shape(a) == np.shape(b) and np.allclose(a, b, **TOLERANCE)
        for a, b in zip(found, expected, strict=True)
    )


def test_all_boxes_and_gradients_of_sentences_are_those_of_the_package(compared, number):
    assert len(compared) == number
    assert [name for pair in compared for name in differences(*pair)] == []


def test_every_box_but_the_last_has_a_gradient(compared):
    found, _ = compared[0]
    boxes = {name for name, _ in found["states"]}
    assert boxes - dict(found["gradients"]).keys() == {"probabilities"}


def test_the_functions_of_a_box_are_in_a_file_that_its_lesson_names(compared):
    """Or that is beside it in the map of the code; or the class, where there are no functions."""
    found, _ = compared[0]
    package = ROOT / "minitransformer"
    files = [*package.glob("layers/*.py"), package / "models/sublayers.py"]
    texts = {path: path.read_text(encoding="utf-8") for path in files}
    map_of_code = (ROOT / "docs/code.md").read_text(encoding="utf-8").splitlines()
    for box in found["boxes"]:
        names = box["functions"].split(" / ")
        (path,) = [
            path
            for path, text in texts.items()
            if all(re.search(rf"^(def|class) {name}\(", text, re.MULTILINE) for name in names)
        ]
        (lesson,) = (ROOT / "lessons").glob(f"{box['lesson']}_*.py")
        row = re.search(r"In the package.*", lesson.read_text(encoding="utf-8"))
        rows = [row[0], *(row for row in map_of_code if f"/{lesson.stem}.ipynb" in row)]
        assert any(f"{path.parent.name}/{path.name}`" in row for row in rows), box


def test_a_head_that_is_off_gives_zeros_forward_and_backward(vocabulary, monkeypatch):
    model = small_model(vocabulary, norm="pre")
    off = ["encoder.0.self.1", "decoder.1.self.0", "decoder.1.cross.0"]
    asked = [run | {"off": off} for run in runs(vocabulary, 10)]
    answer = ask(explorer_page(model, vocabulary), runs=asked)
    width = model.config.d_model // model.config.num_heads
    rows = [slice(width, None), slice(width), slice(width)]  # of W^O, which the heads go through
    attentions = [
        model.encoder.layers[0].self_attention,
        model.decoder.layers[1].self_attention,
        model.decoder.layers[1].cross_attention,
    ]
    for attention, part in zip(attentions, rows, strict=True):
        attention.w_output.data[part] = 0
    allowed = {"heads", "gradient of heads"} | {
        f"gradient of {path}" for path, _ in model.named_parameters() if path.endswith("w_output")
    }
    for found, request in zip(answer["runs"], asked, strict=True):
        assert set(differences(found, Watched(monkeypatch, model, request))) <= allowed
        heads = decoded(dict(found["states"])["decoder.1.cross.heads"])
        assert [bool(head.any()) for head in heads] == [False, True]


def translations(model, vocabulary, **options):
    sources = [run["source"] for run in runs(vocabulary, 10)]
    asked = [dict(source=source, forced=[], off=[]) | options for source in sources]
    return sources, ask(explorer_page(model, vocabulary), translations=asked)["translations"]


def test_the_translation_is_that_of_greedy_search(model, vocabulary):
    sources, found = translations(model, vocabulary)
    for source, steps in zip(sources, found, strict=True):
        (hypothesis,) = greedy(model, np.array([source]))
        ids = [*hypothesis.ids, EOS] if hypothesis.finished else hypothesis.ids
        assert [step["id"] for step in steps] == ids
        total = sum(np.log(step["candidates"][0]["probability"]) for step in steps)
        assert total == pytest.approx(hypothesis.log_probability, rel=1e-9)


def test_it_goes_on_from_a_piece_that_is_forced(model, vocabulary):
    forced = [7, 11]
    sources, found = translations(model, vocabulary, forced=forced)
    for source, steps in zip(sources, found, strict=True):
        ids = [step["id"] for step in steps]
        assert ids[:2] == forced
        rows = np.exp(log_probabilities(model, source, [BOS, *ids[:-1]]))
        for step, p in zip(steps, rows, strict=True):
            assert step["probability"] == pytest.approx(p[step["id"]])  # also beyond the likeliest
            p[[0, BOS]] = 0  # never said
            likeliest = np.argsort(-p)[:10]
            assert [c["id"] for c in step["candidates"]] == likeliest.tolist()
            assert [c["probability"] for c in step["candidates"]] == pytest.approx(p[likeliest])
        assert [step["forced"] for step in steps] == [True, True] + [False] * (len(ids) - 2)
