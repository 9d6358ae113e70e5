import numpy as np
import pytest

from minitransformer.core.errors import InputError
from minitransformer.data.text.vocabulary import EOS
from minitransformer.inference.generator import TextGenerator


@pytest.fixture
def run(runs):
    return runs["generate"]


@pytest.fixture
def subwords(runs):
    return runs["generate subwords"]


@pytest.mark.parametrize(("prompt", "length"), [("a dog", 20), ("", 200)])
def test_a_text_goes_on_from_its_beginning_and_ends(prompt, length, run, said):
    text = said("generate", run, prompt, "--length", length, "--temperature", "0").out
    assert text.startswith(prompt or "a ")
    assert text.endswith("\n")
    assert len(prompt) < len(text) <= len(prompt) + length + 1


@pytest.mark.parametrize(("temperature", "alike"), [(1.5, False), (0, True)])
def test_the_same_seed_says_the_same_and_another_one_something_else(temperature, alike, run, said):
    """But for a temperature of 0, where it does not matter."""
    first, again, other = (
        said("generate", run, "a", "--seed", s, "--temperature", temperature).out for s in (1, 1, 2)
    )
    assert first == again
    assert (first == other) == alike


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


def test_of_a_prompt_longer_than_the_context_the_end_matters(run, said):
    prompt = "a dog sleeps in the house.\n" * 20 + "a cat"
    text = said("generate", run, prompt, "--temperature", "0", "--length", "8").out
    short = said("generate", run, prompt[-16:], "--temperature", "0", "--length", "8").out
    assert text.startswith(prompt)
    assert text[len(prompt) :] == short[16:]


def test_of_subwords_the_words_with_unknown_characters_are_named(subwords, said):
    assert "vocabulary: 'dög'\n" in said("generate", subwords, "a\tdög dog").err


def test_that_subwords_have_no_line_breaks_is_said(subwords, run, said):
    said_of = "the model reads the line breaks of the prompt as blanks\n"
    assert said_of in said("generate", subwords, "a dog\na cat").err
    assert said("generate", subwords, "a dog a cat").err == ""
    assert said("generate", run, "a dog\na cat").err == ""


def test_a_model_of_subwords_says_words_with_blanks_between(subwords, said):
    text = said("generate", subwords, "a dog", "--temperature", "0", "--length", "30").out
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
