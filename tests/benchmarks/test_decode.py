"""The benchmark of decoding: a fair opponent, honest figures."""

import os

import numpy as np
import pytest

pytest.importorskip("torch")

import decode
import torch_decode
from torch_model import TorchTransformer, load_ours

from minitransformer import Transformer, TransformerConfig
from minitransformer.data.text.vocabulary import EOS
from minitransformer.decoding import translate_ids

pytestmark = pytest.mark.slow
torch_decode.torch.set_num_threads(1)  # on arrays this small, threads only wait for one another

SEARCHES = [
    (torch_decode.greedy, dict()),
    (torch_decode.recomputing_greedy, dict()),
    (torch_decode.beam_search, dict(beam_size=4, alpha=0.6)),
    (torch_decode.beam_search, dict(beam_size=3, alpha=2.0)),
]


def both_models(norm):
    """One model in two libraries, whose translations end at many lengths or not at all."""
    sizes = dict(d_model=16, num_heads=2, d_ff=24, num_encoder_layers=2, num_decoder_layers=2)
    model = Transformer(TransformerConfig(12, 12, norm=norm, max_length=40, **sizes))
    rng = np.random.default_rng(2)
    model.flat.data += 0.2 * rng.standard_normal(model.flat.data.size)
    table = model.positional_encoding.table
    table[:] = 2 * rng.standard_normal(table.shape)
    weights = {path: parameter.data for path, parameter in model.named_parameters()}
    twin = load_ours(TorchTransformer(model.config), weights).eval()
    twin.positions.copy_(torch_decode.torch.tensor(table))
    return model, twin


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize(("search", "options"), SEARCHES)
def test_pytorch_says_what_we_say(norm, search, options):
    model, twin = both_models(norm)
    rng = np.random.default_rng(2)
    sources = [[*map(int, rng.integers(4, 12, length)), EOS] for length in rng.integers(0, 9, 40)]
    found = torch_decode.translate(twin, sources, search, max_tokens=60, **options)
    options = {"beam_size": 1, **options}
    ours = translate_ids(model, sources, **options)
    assert found == [best.ids + [EOS] * best.finished for best, *_ in ours]
    endings = {ids[-1] == EOS for ids in found}
    assert len({len(ids) for ids in found}) > 4
    assert endings == {True, False}


@pytest.mark.parametrize(("search", "options"), SEARCHES)
def test_pytorch_searches_where_the_model_is(search, options):
    _, twin = both_models("pre")
    sources = [[4, 7, 5, EOS], [6, EOS]]
    found = torch_decode.translate(twin, sources, search, max_tokens=60, **options)
    with torch_decode.torch.device("meta"):  # whatever lands there cannot meet the model's arrays
        again = torch_decode.translate(twin, sources, search, max_tokens=60, **options)
    assert again == found


class Side:
    """Says what it is told to, after seconds that it is told."""

    def __init__(self, seconds, said):
        self.seconds, self.said = iter(seconds), said

    def translate(self, search):
        return self.said, next(self.seconds)


@pytest.fixture
def ask(monkeypatch):
    monkeypatch.setattr(decode, "_ask", lambda side, method, *args: getattr(side, method)(*args))


def test_ratios_are_of_all_rounds_and_of_each_without_the_first_pass(ask):
    said = [[4, 3], [5, 5, 3]]
    ours, torch = Side([100, 1, 2, 1], said), Side([1, 3, 2, 3], said)
    found = decode.compare({"ours": (ours, "greedy"), "cache": (torch, "greedy_cache")}, 2, 3)
    assert found["ratio"] == {"cache": 2.0}
    assert found["ratio_of_rounds"] == {"cache": [3, 1, 3]}
    assert found["sentences_per_second"] == {"ours": 1.5, "cache": 0.75}
    assert found["same_sentences"] == {"cache": 1.0}
    assert found["target_tokens"] == 5


def test_nothing_is_measured_where_the_sides_say_different_things(ask):
    said = [[4, 3]] * 20
    ours, torch = Side([1], said), Side([1], [[5, 3], *said[1:]])
    with pytest.raises(SystemExit, match=r"95\.0% of the sentences agree with PyTorch \(cache\)"):
        decode.compare({"ours": (ours, "greedy"), "cache": (torch, "greedy_cache")}, 20, 1)


class Environment(Side):
    def variables(self):
        return dict(os.environ)


def test_a_side_may_have_variables_of_its_own():
    before = dict(os.environ)
    with decode._process(Environment, (), (), {"OF_ITS_OWN": "1"}) as side:
        assert decode._ask(side, "variables")["OF_ITS_OWN"] == "1"
        assert dict(os.environ) == before


def test_a_side_that_fails_ends_the_benchmark(capfd):
    with decode._process(Side, (), ()) as side, pytest.raises(SystemExit, match="a side failed"):
        decode._ask(side, "no_such_method")
    assert "no_such_method" in capfd.readouterr().err


def test_a_run_is_translated_alike_by_all_sides(ran):
    searches = ran("decode").result["searches"]
    same = {name: search["same_sentences"] for name, search in searches.items()}
    assert same == {"greedy": {"cache": 1.0, "recompute": 1.0}, "beam": {"cache": 1.0}}
