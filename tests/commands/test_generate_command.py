import numpy as np
import pytest

from minitransformer.commands.cli import main
from minitransformer.core.errors import InputError
from minitransformer.data.text.vocabulary import EOS
from minitransformer.inference.generator import TextGenerator

TEXT = "".join(
    f"{who} {does} in the {where}.\n"
    for _ in range(6)
    for who in ("a dog", "a cat")
    for does in ("runs", "sleeps")
    for where in ("park", "house")
)
SIZES = ["--d-model", "16", "--num-heads", "2", "--d-ff", "32", "--num-layers", "1"]
SIZES += ["--max-length", "16", "--epochs", "20", "--batch-tokens", "64", "--warmup-steps", "10"]
SIZES += ["--peak-learning-rate", "1e-2", "--dropout", "0"]


def trained(folder, unit, *more):
    text = folder / "text.txt"
    text.write_text(TEXT, encoding="utf-8")
    run = folder / unit
    options = ["--run-folder", run, "--unit", unit, "--vocabulary-size", "40"]
    assert main(["train", "gpt", "--text", str(text), *map(str, options), *SIZES, *more]) == 0
    return run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("characters"), "characters")


@pytest.fixture(scope="module")
def subwords(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("subwords"), "subwords")


def said(capsys, *arguments):
    capsys.readouterr()
    assert main(["generate", *map(str, arguments)]) == 0
    return capsys.readouterr()


def test_a_text_goes_on_from_its_beginning(run, capsys):
    text = said(capsys, run, "a dog", "--length", "20").out
    assert text.startswith("a dog")
    assert text.endswith("\n")
    assert 5 < len(text) <= 5 + 20 + 1


def test_the_same_seed_says_the_same_and_another_one_something_else(run, capsys):
    first, again, other = (
        said(capsys, run, "a", "--seed", seed, "--temperature", "1.5").out for seed in (1, 1, 2)
    )
    assert first == again != other


def test_without_temperature_the_seed_does_not_matter(run, capsys):
    one, other = (
        said(capsys, run, "a cat", "--temperature", "0", "--seed", seed).out for seed in (1, 2)
    )
    assert one == other


def test_what_is_shown_is_what_recomputing_every_step_says(run):
    """Beyond the context of 16, too."""
    generator = TextGenerator.load(run, "cpu")
    model, vocabulary = generator.model, generator.vocabulary
    text = generator.generate("a cat", 40, temperature=0)
    ids = [*generator.before(), *vocabulary.encode("a cat")]
    seen = list(ids)
    for _ in range(40):
        logits, _ = model.forward(np.array([seen]))
        logits[0, -1, :3] = -np.inf
        token = int(logits[0, -1].argmax())
        if token == 3:
            break
        ids.append(token)
        seen = [*seen, token] if len(seen) < 16 else ids[-9:]
    assert text == vocabulary.decode(ids[1:])
    assert len(text) > 30


@pytest.mark.parametrize("length", [-1, 2.5, "9"])
def test_a_length_that_is_none_is_refused(run, length):
    with pytest.raises(InputError, match=f"length={length!r} must be a whole number, 0 or more"):
        TextGenerator.load(run, "cpu").generate("a cat", length)


def test_an_empty_prompt_begins_a_text(run, capsys):
    assert said(capsys, run, "", "--temperature", "0").out.startswith("a ")


def test_of_a_prompt_longer_than_the_context_the_end_matters(run, capsys):
    prompt = "a dog sleeps in the house.\n" * 20 + "a cat"
    text = said(capsys, run, prompt, "--temperature", "0", "--length", "8").out
    short = said(capsys, run, prompt[-16:], "--temperature", "0", "--length", "8").out
    assert text.startswith(prompt)
    assert text[len(prompt) :] == short[16:]


def test_of_subwords_the_words_with_unknown_characters_are_named(subwords, capsys):
    assert "vocabulary: 'dög'\n" in said(capsys, subwords, "a\tdög dog").err


def test_that_subwords_have_no_line_breaks_is_said(subwords, run, capsys):
    said_of = "the model reads the line breaks of the prompt as blanks\n"
    assert said_of in said(capsys, subwords, "a dog\na cat").err
    assert said(capsys, subwords, "a dog a cat").err == ""
    assert said(capsys, run, "a dog\na cat").err == ""


def test_a_model_of_subwords_says_words_with_blanks_between(subwords, capsys):
    text = said(capsys, subwords, "a dog", "--temperature", "0", "--length", "30").out
    assert text.startswith("a dog ")
    assert "  " not in text


@pytest.mark.parametrize("prompt", ["", "a", "ß", "a dog ß"])
def test_bits_of_subwords_make_the_text_that_all_of_them_make(prompt, subwords, monkeypatch):
    generator = TextGenerator.load(subwords)
    vocabulary = generator.vocabulary
    ids = vocabulary.encode("dogs and cats in a park.")
    tokens = iter([*ids, EOS])
    monkeypatch.setattr("minitransformer.inference.generator.sample", lambda *_, **__: next(tokens))
    said = "".join(generator.stream(prompt))
    before = vocabulary.encode(prompt)
    assert vocabulary.decode(before) + said == vocabulary.decode([*before, *ids])


def test_each_bit_is_shown_when_it_is_there(run):
    bits = TextGenerator.load(run).stream("a dog", 5, temperature=0)
    assert len(next(bits)) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--temperature", "-1"], "temperature=-1.0 must be"),
        (["--top-p", "0"], "top_p=0.0 must lie in"),
        (["--top-p", "nan"], "top_p=nan must lie in"),
    ],
)
def test_numbers_out_of_range_are_refused_before_anything_is_said(options, message, run, capsys):
    assert main(["generate", str(run), "a", *options]) == 1
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.out == ""
