"""What the grammar of the toy corpus says of its words, held against hand-made examples."""

import re

import pytest
from tiny_run import resize_toy_corpus

from minitransformer.data.text.toy import LABELS, SIZES, labelled_toy_corpus, toy_corpus
from minitransformer.data.text.toy.inflection import ARTICLES

CASES = {"n": "nominative", "a": "accusative", "d": "dative", "-": "-"}
NUMBERS = {"s": "singular", "p": "plural", "-": "-"}
PARTS = {
    "D": "determiner",
    "A": "adjective",
    "N": "noun",
    "V": "verb",
    "P": "pronoun",
    "R": "preposition",
    "B": "adverb",
    "C": "conjunction",
    "#": "number",
    "+": "particle",
    ".": "punctuation",
}
CODES = {"part-of-speech": PARTS, "case": CASES, "number": NUMBERS}


@pytest.fixture(scope="module")
def corpora():
    return {kind: labelled_toy_corpus(kind) for kind in LABELS}


@pytest.fixture(scope="module")
def labelled(corpora):
    """For each kind of labels a dict from sentences, with blanks around signs, to labels."""
    return {
        kind: {
            re.sub(r"(\w)([,.])", r"\1 \2", text): labels
            for sentences in corpus.values()
            for text, labels in sentences
        }
        for kind, corpus in corpora.items()
    }


# A letter for each word and sign: part of speech, case, number; and the tense.
SENTENCES = [
    # case, not order, says who does it to whom
    ("Den Affen begrüßt eine Frau .", "DNVDN.", "aa-nn-", "sssss-", "present"),
    ("Dem Hund hilft ein müder Junge .", "DNVDAN.", "dd-nnn-", "ssssss-", "present"),
    ("Meinen Jungen hat diese Künstlerin am Morgen begrüßt .",
     "DNVDNRNV.", "aa-nndd--", "sssssss--", "perfect"),
    ("Den Jungen sollen sieben alte Künstlerinnen helfen .",
     "DNV#ANV.", "dd--nn--", "ppp-pp--", "modal"),
    ("Dieses Kind gibt dem Jungen meine rote Zeitung .",
     "DNVDNDAN.", "nn-ddaaa-", "ssssssss-", "present"),
    # a drink has no determiner
    ("Kalten Tee kann mein Pferd trinken .", "ANVDNV.", "aa-nn--", "sssss--", "modal"),
    # adverbs, and a split prefix
    ("Jetzt schläft meine Katze ein .", "BVDN+.", "--nn--", "-sss--", "present"),
    ("Im Park schläft die Frau jetzt .", "RNVDNB.", "dd-nn--", "sssss--", "present"),
    # the dative says where, the accusative where to
    ("Heute geht mein Mädchen auf dem Dach .", "BVDNRDN.", "--nn-dd-", "-sss-ss-", "present"),
    ("Heute geht mein Affe auf das Dach .", "BVDNRDN.", "--nn-aa-", "-sss-ss-", "present"),
    ("Meine Pferde gehen ins Haus .", "DNVRN.", "nn-aa-", "pppss-", "present"),
    # the main clause has the tense
    ("Die Ärztin ist gesprungen , weil sie hungrig war .",
     "DNVV.CPAV.", "nn----n---", "sss---s-s-", "perfect"),
    ("Während meine Katze gesprungen ist , hat ein Hund gewartet .",
     "CDNVV.VDNV.", "-nn----nn--", "-ss-s-sss--", "perfect"),
    ("Der Student glaubt , dass dieses Pferd gewartet hat .",
     "DNV.CDNVV.", "nn---nn---", "sss--ss-s-", "present"),
    ("Meine Ärztin , die meinen Ball aufhebt , muss warten .",
     "DN.PDNV.VV.", "nn-naa-----", "ss-ssss-s--", "modal"),
    ("Dieser Mann , den ein Junge sucht , springt .",
     "DN.PDNV.V.", "nn-ann----", "ss-ssss-s-", "present"),
    ("Die Frau , der diese Ärztin dankt , ist gelaufen .",
     "DN.PDNV.VV.", "nn-dnn-----", "ss-ssss-s--", "perfect"),
    ("Die Männer , denen dieser Hund folgt , warten .",
     "DN.PDNV.V.", "nn-dnn----", "pp-psss-p-", "present"),
    # number words have no ending
    ("Ein Affe ist einundzwanzig Jahre alt .", "DNV#NA.", "nn--a--", "sss-p--", "present"),
    ("Der Junge hat dreiunddreißig Männern gedankt .", "DNV#NV.", "nn--d--", "sss-p--", "perfect"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "parts", "cases", "numbers", "tense"), SENTENCES)
def test_each_construction_has_the_labels_of_a_grammar_book(
    text, parts, cases, numbers, tense, labelled
):
    codes = {"part-of-speech": parts, "case": cases, "number": numbers}
    for kind, letters in codes.items():
        expected = " ".join(CODES[kind][letter] for letter in letters)
        assert labelled[kind][text] == expected, kind
    assert labelled["tense"][text] == tense


def test_the_labelled_sentences_are_those_of_the_corpus(corpora):
    corpus = toy_corpus()
    for labelled in corpora.values():
        assert labelled.keys() == SIZES.keys()
        for split, pairs in corpus.items():
            texts = [re.sub(" ([,.])", r"\1", text) for text, _ in labelled[split]]
            assert texts == [german for german, _ in pairs]


@pytest.mark.parametrize("kind", CODES)
def test_each_word_and_each_sign_has_one_label_of_its_kind(kind, labelled):
    found = set()
    for text, labels in labelled[kind].items():
        assert len(text.split()) == len(labels.split())
        found.update(labels.split())
    assert found == set(CODES[kind].values())


def test_determiners_have_the_form_of_their_case_and_number(labelled):
    genders = {"singular": "mfn", "plural": "p"}
    seen = set()
    for text, cases in labelled["case"].items():
        parts, numbers = labelled["part-of-speech"][text], labelled["number"][text]
        for word, case, part, number in zip(
            *(words.split() for words in (text.lower(), cases, parts, numbers)), strict=True
        ):
            if part == "determiner" and word in ("der", "die", "das", "den", "dem"):
                assert word in {ARTICLES[case][gender] for gender in genders[number]}
                seen.add((word, case, number))
    assert len(seen) == 11  # of 12 forms the dative has one for two genders


def test_the_same_words_have_other_cases_in_other_sentences(labelled):
    found = {}
    for text, cases in labelled["case"].items():
        words, cases = text.lower().split(), cases.split()
        for word, after, case in zip(words, words[1:], cases, strict=False):
            found.setdefault(f"{word} {after}", set()).add(case)
    assert found["die frau"] == {"nominative", "accusative"}
    assert found["den jungen"] == {"accusative", "dative"}


def test_a_corpus_holds_plain_strings(monkeypatch):
    resize_toy_corpus(monkeypatch, {"train": 5})
    assert {type(text) for pair in toy_corpus()["train"] for text in pair} == {str}
