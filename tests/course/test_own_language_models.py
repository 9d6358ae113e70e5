"""Functions of ``own.py`` in the models that are half of a Transformer: they go on with a text."""

import re
from functools import partial
from pathlib import Path

import pytest
from exercise_files import written
from own_files import FUNCTIONS, PART_OF, RUNNING, SOLUTION, command, solution_of_only, text_with
from rounding import additions_of, assert_but_for_rounding
from tiny_run import resize_toy_corpus
from training_in_miniature import LETTERS, MODELS, OF_TRANSLATORS

from minitransformer.course.own import own
from minitransformer.course.own.layers import require_paper_layers
from minitransformer.decoding.states import text_decoder_for
from minitransformer.gradcheck import CheckError
from minitransformer.inference.generator import TextGenerator
from minitransformer.models.registry import KINDS
from minitransformer.runs.run_folder import RunFolder

OPTIONS = {"d-model": 16, "num-heads": 2, "d-ff": 32, "num-layers": 2, "max-length": 16}
OPTIONS |= {"epochs": 3, "batch-tokens": 64, "warmup-steps": 10, "peak-learning-rate": 1e-2}
SMALL = [str(x) for name, value in OPTIONS.items() for x in (f"--{name}", value)]
RUN = Path("runs/own")
MIRRORED = text_with(encoder_layer={"    attention_caches": "    x = -x\n    attention_caches"})
OF_OTHER_LAYERS = "restricted", "convolution", "recurrent", "small-network", "alexnet"
OF_OTHER_LAYERS += ("residual-network",)
TEXT = "".join(f"{a} sees {b}.\n" for a in ("a dog", "a cat") for b in ("me", "you", "us")) * 6


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with a text and a run on a file without what only a translator needs."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "text.txt").write_text(TEXT, encoding="utf-8")
    solution_of_only(
        folder / "mine.py", *(name for name in FUNCTIONS if name not in OF_TRANSLATORS)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        options = "--text", "text.txt", "--own", "mine.py", "--log-every", 1, *SMALL
        assert command("train", "gpt", *options) == 0
    return folder


def test_a_text_is_gone_on_with_by_whole_layers_of_ones_own(tmp_path):
    model, _ = MODELS["language model"]("pre")
    generate = partial(TextGenerator(model, LETTERS).generate, "ab", 20, temperature=0)
    expected = generate()
    with own(SOLUTION) as mine:
        assert generate() == expected
    assert "encoder_layer" in mine.used
    assert mine.others == set()
    with own(written(tmp_path / "own.py", MIRRORED)):
        assert generate() != expected


def test_reading_everything_anew_sees_as_much_as_the_cache_keeps():
    """Where the context of 8 is full, too."""
    model, _ = MODELS["language model"]("pre")
    kept = text_decoder_for(model)
    with own(SOLUTION):
        anew = text_decoder_for(model)
        assert type(anew) is not type(kept)
        for ids in ([4, 5], *([4 + i % 5] for i in range(12))):
            logits = anew.step(ids)
            assert_but_for_rounding(logits, kept.step(ids), additions_of(model))
            assert anew.seen == kept.seen


def test_the_certificate_says_what_ran(run):
    text = run.certificate.read_text()
    whose = dict(re.findall(r"\| `(\w+)` \| (.+) \|\n", text))
    assert whose.keys() == RUNNING
    for name, told in whose.items():
        ran = "no" if name in {"noam", "sinusoidal_encoding"} else "yes"  # others do
        of_part = PART_OF[name].functions[0] in OF_TRANSLATORS
        assert (name, told) == (name, "the package's | no" if of_part else f"yours | {ran}")
    assert "can replace, none ran." in text


def test_the_certificate_has_the_scores_of_the_validation(run):
    entries = [e for e in run.log.entries() if e["kind"] == "validation"]
    best = min(entries, key=lambda e: e["perplexity"])
    stated = (
        f"- validation: nll {best['nll']:.4f}, perplexity {best['perplexity']:.4f}, "
        f"bits per character {best['bits_per_character']:.4f}\n"
    )
    assert stated in run.certificate.read_text()


@pytest.mark.parametrize(
    "tried", [("generate", RUN, "a dog", "--temperature", 0, "--length", 40), ("evaluate", RUN)]
)
def test_such_a_run_is_tried_on_its_file_and_a_wrong_one_shows(run, capsys, tried):
    def said(*own):
        assert command(*tried, *own) == 0
        return capsys.readouterr()

    alone = said()
    assert "with --own FILE those of a file, such as runs/own/own.py" in alone.err
    assert said("--own", run.own).out == alone.out
    assert said("--own", written(Path("wrong.py"), MIRRORED)).out != alone.out


@pytest.mark.parametrize("kind", KINDS)
def test_models_of_the_papers_layers_are_taken_and_those_of_others_refused(kind):
    if kind in OF_OTHER_LAYERS:
        says = rf"kind '{kind}' has others.*: transformer, language-"
        with pytest.raises(CheckError, match=says):
            require_paper_layers({"kind": kind})
    else:
        require_paper_layers({"kind": kind})


@pytest.mark.parametrize(("name", "value"), [
    ("normalisation", "rms-norm"),
    ("positions", "rotary"),
    ("positions", "alibi"),
    ("activation", "swiglu"),
    ("num_groups", 1),
    ("bias", "all"),
    ("scaled_embedding", False),
])  # fmt: skip
def test_a_language_model_of_other_blocks_is_refused_by_the_choice_that_makes_them(name, value):
    fields = {"kind": "language-model", "positions": "none", "window": 1, "tying": "none"}
    require_paper_layers(fields)  # which a learner's layers can have
    says = re.escape(f"{name}={value!r} makes others: leave out --own, or choose ")
    with pytest.raises(CheckError, match=says):
        require_paper_layers(fields | {name: value})


def test_the_packages_functions_begin_a_fine_tuning_where_it_began(trained, monkeypatch):
    monkeypatch.chdir(trained)
    resize_toy_corpus(monkeypatch, {"train": 120, "validation": 12, "test": 12})
    assert command("train", "bert", "--text", "text.txt", "--vocabulary-size", 40, *SMALL) == 0
    options = "--own", "mine.py", "--log-every", 1, "--epochs", 1, "--run-folder", "runs/tagger"
    assert command("train", "tagger", "--from", "runs/bert", "--batch-tokens", 64, *options) == 0
    tuned = RunFolder("runs/tagger")
    mine, packages = (log.entries()[0]["loss"] for log in (tuned.log, tuned.package_log))
    assert mine == pytest.approx(packages, rel=1e-5)
