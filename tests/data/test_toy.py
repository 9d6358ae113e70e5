"""The toy corpus is right German and English, and keeps its promises about what is held out."""

import re
from pathlib import Path

import pytest

from minitransformer.data.toy import MAX_WORDS, SIZES, toy_corpus
from minitransformer.data.toy.__main__ import main

FOLDER = Path(__file__).parents[2] / "datasets" / "toy"


@pytest.fixture(scope="module")
def corpus():
    return toy_corpus()


@pytest.fixture(scope="module")
def everything(corpus):
    return [pair for pairs in corpus.values() for pair in pairs]


def words(text):
    return re.findall(r"\w+", text)


def test_the_splits_have_their_sizes_and_share_no_sentence(corpus, everything):
    assert {split: len(pairs) for split, pairs in corpus.items()} == SIZES
    german = [source for source, _ in everything]
    assert len(set(german)) == len(german)
    assert max(len(words(source)) for source in german) <= MAX_WORDS


def test_every_word_of_validation_and_test_occurs_in_training(corpus):
    known = {word for source, _ in corpus["train"] for word in words(source)}
    for split in ("validation", "test"):
        assert known.issuperset(word for source, _ in corpus[split] for word in words(source))


def test_adjectives_and_nouns_of_a_held_out_combination_meet_in_no_training_sentence(corpus):
    """Seen from outside: pairs of neighbouring words that only the other splits have."""

    def neighbours(pairs):
        return {
            pair
            for _, target in pairs
            for pair in zip(words(target), words(target)[1:], strict=False)
        }

    new = neighbours(corpus["test"]) - neighbours(corpus["train"])
    assert len(new) > 30


def test_the_same_seed_gives_the_same_corpus_and_another_seed_another(corpus):
    assert toy_corpus() == corpus
    assert toy_corpus(seed=1)["test"] != corpus["test"]


@pytest.mark.parametrize(
    ("german", "english"),
    [
        (r"\bden Jungen\b", r"\bboys?\b"),  # a weak noun
        (r"\beinundzwanzig\b", r"\btwenty-one\b"),  # ones before tens
        (r"\bweil er\b.*\bist[.,]", r"\bbecause (he|it)\b"),  # the verb at the end of the clause
        (r"\bhat\b.*\bgekauft[.,]", r"\bbought\b"),  # the participle at the end
        (r"\bmuss\b.*\btragen\b", r"\bmust carry\b"),  # the infinitive at the end
    ],
)
def test_each_construction_occurs_and_is_translated(german, english, everything):
    matching = [target for source, target in everything if re.search(german, source)]
    assert len(matching) >= 5
    assert all(re.search(english, target, re.IGNORECASE) for target in matching)


def test_endings_agree_with_the_article(everything):
    """After dem an adjective ends in -en, after ein in -er, -e or -es: never the other way."""
    pronoun = r"(?!dieser|dieses|meiner|einer)"
    for source, _ in everything:
        assert not re.search(rf"\b(dem|diesem) {pronoun}[a-zäöü]{{4,}}(er|es|em) [A-ZÄÖÜ]", source)
        assert not re.search(r"\b(ein|mein) [a-zäöü]+(em|en) [A-ZÄÖÜ]", source)


def test_a_or_an_is_chosen_by_the_next_sound(everything):
    for _, target in everything:
        assert not re.search(r"\ba [aeio]", target, re.IGNORECASE)
        assert not re.search(r"\ban [^aeiou]", target, re.IGNORECASE)


def test_the_files_are_what_the_generator_makes(tmp_path):
    main([str(tmp_path)])
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert set(made) == {f"{split}.{language}" for split in SIZES for language in ("de", "en")}
    assert made == {name: (FOLDER / name).read_bytes() for name in made}
