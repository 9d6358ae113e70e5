"""Functions of the second part of ``own.py`` in models of today's blocks, which speak."""

import re

import gguf_file
import numpy as np
import pytest
from exercise_files import written
from own_files import SOLUTION, solution_of_only, text_with
from rounding import assert_but_for_rounding

from minitransformer.commands.cli import main
from minitransformer.core.errors import InputError
from minitransformer.course.own import own
from minitransformer.course.own.layers import parts_for
from minitransformer.course.own.package import parts_of_blocks, parts_of_the_transformer
from minitransformer.gradcheck import CheckError
from minitransformer.models.language_model import LanguageModel, LanguageModelConfig

OF_BLOCKS = "grouped_query_attention", "rms_norm", "rotary", "rotary_table", "silu", "swiglu"
OTHER_PAIRS = text_with(rotary={"cos, sin, pairs), (": "cos, -sin, pairs), ("})
SIZES = dict(vocabulary_size=19, d_model=16, num_heads=4, d_ff=24, num_layers=2, dropout=0.0)
BLOCKS = {
    "as Llama has them": dict(
        normalisation="rms-norm", positions="rotary", activation="swiglu", num_groups=2, bias="none"
    ),
    "halves": dict(positions="rotary", rotary_pairs="halves"),
    "multi-query": dict(num_groups=1, bias="none", tying="none"),
    "a SiLU": dict(activation="silu", normalisation="rms-norm", window=3),
    "one norm alone": dict(normalisation="rms-norm", norm="post"),
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return gguf_file.imported(tmp_path_factory.mktemp("imported"))


@pytest.fixture
def chat(run, capsys):
    """Status, output and errors of a conversation with some options."""

    def said(*options):
        capsys.readouterr()
        texts = "ab", "c", "--length", "9", "--device", "cpu"
        return main(["chat", str(run), *texts, *map(str, options)]), *capsys.readouterr()

    return said


def test_a_model_speaks_on_ones_own_functions_and_is_told_whose_they_were(chat):
    _, expected, _ = chat()
    status, out, error = chat("--own", SOLUTION)
    assert (status, out) == (0, expected)
    yours, packages = re.search("of what spoke, yours: (.*); the package's: (.*)\n", error).groups()
    assert set(OF_BLOCKS) <= set(yours.split(", "))
    assert packages == "none that yours could replace"


def test_a_wrong_rotation_is_refused_and_heard_anyway(chat, tmp_path):
    wrong = written(tmp_path / "own.py", OTHER_PAIRS)
    status, out, error = chat("--own", wrong)
    assert (status, out) == (1, "")
    assert f"wrong in {wrong}: rotary." in error
    assert "--anyway" in error
    _, expected, _ = chat()
    status, out, error = chat("--own", wrong, "--anyway")
    assert status == 0
    assert out != expected
    assert "wrong, and used anyway: rotary\n" in error


def test_what_is_not_written_yet_is_the_packages(chat, tmp_path):
    mine = solution_of_only(tmp_path / "own.py", "rms_norm")
    _, expected, _ = chat()
    status, out, error = chat("--own", mine)
    assert (status, out) == (0, expected)
    assert "of what spoke, yours: rms_norm; the package's: " in error
    assert "rotary" in error.rpartition("the package's: ")[2]


@pytest.mark.parametrize("blocks", BLOCKS.values(), ids=BLOCKS)
def test_losses_and_gradients_are_the_packages(blocks):
    config = LanguageModelConfig(**SIZES | blocks)
    ids = np.random.default_rng(1).integers(1, 19, (2, 7))
    found = []

    def learned():
        model = LanguageModel(config, seed=3, dtype=np.float64)
        logits, cache = model.logits(ids)
        model.backward(np.cos(logits), cache)
        return logits, model.flat.grad

    found.append(learned())
    with own(SOLUTION, parts_for(config)) as mine:
        found.append(learned())
    for expected, mine_of in zip(*found, strict=True):
        assert_but_for_rounding(mine_of, expected)
    assert mine.others == set()
    grouped = {"grouped_query_attention", "grouped_query_attention_backward"}
    assert (grouped <= mine.used) == (not config.paper_attention)


def test_where_an_attention_of_ones_own_looked_is_not_guessed_from_its_cache():
    config = LanguageModelConfig(**SIZES | BLOCKS["as Llama has them"])
    attention = LanguageModel(config).stack.layers[0].self_attention
    x = np.ones((1, 3, config.d_model), np.float32)
    with own(SOLUTION, parts_for(config)):
        _, cache = attention.forward(x, x, x)
    with pytest.raises(InputError, match="look with the package's"):
        attention.weights(cache)


def test_each_model_takes_the_parts_that_it_can_run_on():
    assert parts_for(LanguageModelConfig(**SIZES)) == parts_of_the_transformer()
    assert parts_for(LanguageModelConfig(**SIZES, positions="rotary")) == parts_of_blocks()
    for field, value in (("bias", "all"), ("positions", "alibi")):
        with pytest.raises(CheckError, match=f"{field}='{value}' makes an attention that is not"):
            parts_for(LanguageModelConfig(**SIZES, **{field: value}))
