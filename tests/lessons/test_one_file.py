"""The Transformer in one file: its loss and gradients are the package's, and it learns."""

import ast
import sys
from pathlib import Path

import numpy as np
import pytest
from elsewhere import module_at, python

from minitransformer.loss.cross_entropy import cross_entropy, cross_entropy_backward
from minitransformer.models.transformer import Transformer
from minitransformer.models.transformer_config import TransformerConfig

PATH = Path(__file__).parents[2] / "lessons" / "one_file.py"
SUBLAYERS = {"self_attention": "self", "cross_attention": "cross", "feed_forward": "network"}
NORM = {"gamma": "gain", "beta": "shift"}


@pytest.fixture(scope="module")
def one_file():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")  # which it would set for the tests after it, too
        return module_at(PATH)


def test_it_has_300_lines_at_most_and_needs_numpy_alone():
    text = PATH.read_text(encoding="utf-8")
    nodes = list(ast.walk(ast.parse(text)))
    named = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    named |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    assert named - sys.stdlib_module_names == {"numpy"}
    assert text.count("\n") <= 300
    assert text.index('"OMP_NUM_THREADS"') < text.index("import numpy")  # which reads it once


def test_its_loss_and_all_its_gradients_are_those_of_the_package(one_file):
    rng = np.random.default_rng(0)
    w = one_file.new_weights(rng, num_tokens=11)
    w = {name: array + rng.normal(0, 0.1, array.shape) for name, array in w.items()}
    source = np.array([[3, 4, 5, 6, 4], [7, 8, 0, 0, 0]])
    target = np.array([[1, 9, 10, 2, 0, 0], [1, 5, 3, 3, 9, 2]])
    loss, g = one_file.loss_and_gradients(w, source, target)

    model = Transformer(config(one_file), dtype=np.float64)
    parameters = {name_in_one_file(name): p for name, p in model.named_parameters()}
    assert parameters.keys() == w.keys() == g.keys()
    for name, parameter in parameters.items():
        parameter.data[...] = w[name]
    logits, cache = model.forward(source, target[:, :-1])
    (expected, _), loss_cache = cross_entropy(logits, target[:, 1:], one_file.SMOOTHING)
    model.backward(cross_entropy_backward(1.0, loss_cache), cache)
    np.testing.assert_allclose(loss, expected, rtol=1e-12)
    for name, parameter in parameters.items():
        largest = np.abs(parameter.grad).max()
        np.testing.assert_allclose(g[name], parameter.grad, rtol=0, atol=1e-11 * largest)


def config(one_file):
    sizes = dict(d_model=one_file.D, num_heads=one_file.H, d_ff=one_file.F, dropout=0.0)
    sizes |= dict.fromkeys(("num_encoder_layers", "num_decoder_layers"), one_file.LAYERS)
    return TransformerConfig(11, 11, **sizes)


def name_in_one_file(name):
    """``encoder.layers.0.self_attention.w_query`` is ``encoder.self.0.query`` there."""
    if "embedding" in name:
        return "embedding"
    side, _, number, place, *_, array = name.split(".")
    sublayer = SUBLAYERS[place.removesuffix("_residual")]
    if sublayer != "network":
        array = array.removeprefix("w_")
    return f"{side}.{sublayer}.{number}.{NORM.get(array, array)}"


def test_german_sentences_are_made_by_its_rules(one_file):
    class First:
        """Chooses what comes first, and no adjective, plural or reason."""

        def choice(self, things):
            return things[0]

        def random(self):
            return 1.0

    made = [one_file.sentence(First(), [first]) for first in ("subject", "adverb", "weil")]
    assert [" → ".join(map(" ".join, pair)) for pair in made] == [
        "der hund sieht den hund → the dog sees the dog",
        "heute sieht der hund den hund → today the dog sees the dog",
        "weil der hund den hund sieht → because the dog sees the dog",
    ]


@pytest.mark.slow
def test_it_translates_what_it_has_never_seen():
    share = float(python(PATH).stdout.splitlines()[-1].partition("%")[0])
    assert share >= 95
