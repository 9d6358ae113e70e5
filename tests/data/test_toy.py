"""The toy corpus is right German and English, and keeps its promises about what is held out."""

import re
from pathlib import Path

import pytest
from tiny_run import resize_toy_corpus

from minitransformer.data.text import toy
from minitransformer.data.text.toy import MAX_WORDS, SIZES, __main__, toy_corpus
from minitransformer.data.text.toy.inflection import (
    conjugate,
    english_noun_phrase,
    german_noun_phrase,
    number_words,
)
from minitransformer.data.text.toy.lexicon import (
    BEINGS,
    DRINKS,
    MODALS,
    PLACES,
    PREPOSITIONS,
    THINGS,
    VERBS,
)

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


def test_the_same_seed_gives_the_same_corpus_and_another_seed_another(monkeypatch):
    resize_toy_corpus(monkeypatch, {split: size // 10 for split, size in SIZES.items()})
    corpus = toy_corpus()
    toy._made_up.cache_clear()
    assert toy_corpus() == corpus
    assert toy_corpus(seed=1)["test"] != corpus["test"]


# Determiner, adjective and noun, and what becomes of them in the nominative, accusative and dative.
NOUN_PHRASES = [
    # masculine, feminine, neuter and plural after the definite article
    ("der klein Hund", "der kleine Hund", "den kleinen Hund", "dem kleinen Hund"),
    ("der alt Frau", "die alte Frau", "die alte Frau", "der alten Frau"),
    ("der jung Kind", "das junge Kind", "das junge Kind", "dem jungen Kind"),
    ("der jung Kinder", "die jungen Kinder", "die jungen Kinder", "den jungen Kindern"),
    # after the indefinite one the adjective shows the gender where the article does not
    ("ein alt Brief", "ein alter Brief", "einen alten Brief", "einem alten Brief"),
    ("ein rot Tasche", "eine rote Tasche", "eine rote Tasche", "einer roten Tasche"),
    ("ein rot Buch", "ein rotes Buch", "ein rotes Buch", "einem roten Buch"),
    # so it does after mein, which also has a plural
    ("mein rot Ball", "mein roter Ball", "meinen roten Ball", "meinem roten Ball"),
    ("mein alt Katze", "meine alte Katze", "meine alte Katze", "meiner alten Katze"),
    ("mein frisch Ei", "mein frisches Ei", "mein frisches Ei", "meinem frischen Ei"),
    ("mein frisch Eier", "meine frischen Eier", "meine frischen Eier", "meinen frischen Eiern"),
    # dieser has the endings of der
    ("dieser rot Ball", "dieser rote Ball", "diesen roten Ball", "diesem roten Ball"),
    ("dieser alt Frau", "diese alte Frau", "diese alte Frau", "dieser alten Frau"),
    ("dieser alt Bild", "dieses alte Bild", "dieses alte Bild", "diesem alten Bild"),
    ("dieser alt Hunde", "diese alten Hunde", "diese alten Hunde", "diesen alten Hunden"),
    # without an article the adjective has them itself
    ("- kalt Tee", "kalter Tee", "kalten Tee", "kaltem Tee"),
    ("- kalt Milch", "kalte Milch", "kalte Milch", "kalter Milch"),
    ("- kalt Wasser", "kaltes Wasser", "kaltes Wasser", "kaltem Wasser"),
    ("elf jung Männer", "elf junge Männer", "elf junge Männer", "elf jungen Männern"),
    ("viele groß Äpfel", "viele große Äpfel", "viele große Äpfel", "vielen großen Äpfeln"),
    # a weak noun has -n or -en in every case but one
    ("der - Junge", "der Junge", "den Jungen", "dem Jungen"),
    ("ein - Affe", "ein Affe", "einen Affen", "einem Affen"),
    ("mein - Elefant", "mein Elefant", "meinen Elefanten", "meinem Elefanten"),
    ("der müde Student", "der müde Student", "den müden Studenten", "dem müden Studenten"),
    ("der - Studenten", "die Studenten", "die Studenten", "den Studenten"),
    # teuer loses an e, müde has one already
    ("ein teuer Keks", "ein teurer Keks", "einen teuren Keks", "einem teuren Keks"),
    ("dieser müde Kind", "dieses müde Kind", "dieses müde Kind", "diesem müden Kind"),
]
ENGLISH_NOUN_PHRASES = [
    ("der klein Hund", "the small dog"),
    ("der jung Kinder", "the young children"),
    ("ein rot Buch", "a red book"),
    ("ein alt Buch", "an old book"),
    ("ein - Regenschirm", "an umbrella"),
    ("dieser - Frau", "this woman"),
    ("dieser - Männer", "these men"),
    ("mein - Affe", "my monkey"),
    ("mein - Affen", "my monkeys"),
    ("viele groß Äpfel", "many big apples"),
    ("- kalt Tee", "cold tea"),
]
NOUNS = (*BEINGS, *THINGS, *DRINKS)


def parsed(words):
    """The arguments of a noun phrase, in German or English, from "dieser alt Hunde"."""
    determiner, adjective, form = words.split()
    noun = next(noun for noun in NOUNS if form in (noun.singular, noun.plural))
    adjectives = {adjective.german: adjective for adjective in noun.adjectives}
    return determiner.strip("-"), adjectives.get(adjective), noun, form != noun.singular


@pytest.mark.parametrize(("words", "nominative", "accusative", "dative"), NOUN_PHRASES)
def test_a_noun_phrase_shows_gender_number_and_case(words, nominative, accusative, dative):
    *phrase, plural = parsed(words)
    assert german_noun_phrase(*phrase, "nominative", plural) == nominative
    assert german_noun_phrase(*phrase, "accusative", plural) == accusative
    assert german_noun_phrase(*phrase, "dative", plural) == dative


@pytest.mark.parametrize(("words", "english"), ENGLISH_NOUN_PHRASES)
def test_an_english_noun_phrase_shows_its_number(words, english):
    assert english_noun_phrase(*parsed(words)) == english


# The word in the second place of a main clause, at its end, and at the end of a subordinate one.
VERBS_IN_CLAUSES = [
    ("kaufen", "present", "kauft", "", "kauft", "is buying"),
    ("kaufen", "perfect", "hat", "gekauft", "gekauft hat", "bought"),
    ("kaufen", "müssen", "muss", "kaufen", "kaufen muss", "must buy"),
    ("kaufen", "wollen", "will", "kaufen", "kaufen will", "wants to buy"),
    ("aufheben", "present", "hebt", "auf", "aufhebt", "is picking up"),
    ("aufheben", "perfect", "hat", "aufgehoben", "aufgehoben hat", "picked up"),
    ("aufheben", "können", "kann", "aufheben", "aufheben kann", "can pick up"),
    ("einschlafen", "perfect", "ist", "eingeschlafen", "eingeschlafen ist", "fell asleep"),
    ("laufen", "perfect", "ist", "gelaufen", "gelaufen ist", "ran"),
    ("essen", "sollen", "soll", "essen", "essen soll", "should eat"),
]
PLURAL_VERBS_IN_CLAUSES = [
    ("essen", "present", "essen", "", "essen", "are eating"),
    ("ansehen", "present", "sehen", "an", "ansehen", "are looking at"),
    ("folgen", "perfect", "sind", "gefolgt", "gefolgt sind", "followed"),
    ("lesen", "perfect", "haben", "gelesen", "gelesen haben", "read"),
    ("helfen", "wollen", "wollen", "helfen", "helfen wollen", "want to help"),
]


@pytest.mark.parametrize(
    ("row", "plural"),
    [(row, False) for row in VERBS_IN_CLAUSES] + [(row, True) for row in PLURAL_VERBS_IN_CLAUSES],
)
def test_a_verb_stands_second_or_last_with_its_rest_at_the_end(row, plural):
    lemma, tense, *forms = row
    verb = next(verb for verb in VERBS if verb.lemma == lemma)
    assert list(conjugate(verb, tense, plural)) == forms


@pytest.mark.parametrize(("number", "german", "english"), [
    (2, "zwei", "two"),
    (11, "elf", "eleven"),
    (12, "zwölf", "twelve"),
    (16, "sechzehn", "sixteen"),
    (17, "siebzehn", "seventeen"),
    (20, "zwanzig", "twenty"),
    (21, "einundzwanzig", "twenty-one"),
    (30, "dreißig", "thirty"),
    (47, "siebenundvierzig", "forty-seven"),
    (66, "sechsundsechzig", "sixty-six"),
    (70, "siebzig", "seventy"),
    (99, "neunundneunzig", "ninety-nine"),
])  # fmt: skip
def test_number_words_have_the_ones_before_the_tens(number, german, english):
    assert number_words(number) == (german, english)


@pytest.mark.parametrize(
    ("german", "english"),
    [
        # case, not order, says who does it to whom
        ("Den Affen begrüßt eine Frau.", "A woman is greeting the monkey."),
        ("Meine Jungen begrüßen diesen Elefanten.", "My boys are greeting this elephant."),
        ("Dem Hund hilft ein müder Junge.", "A tired boy is helping the dog."),
        ("Meinen Jungen hat diese Künstlerin am Morgen begrüßt.",
         "This artist greeted my boy in the morning."),
        ("Den Jungen sollen sieben alte Künstlerinnen helfen.",
         "Seven old artists should help the boys."),
        ("Dieses Kind gibt dem Jungen meine rote Zeitung.",
         "This child is giving the boy my red newspaper."),
        ("Kalten Tee kann mein Pferd trinken.", "My horse can drink cold tea."),
        # the verb is second, whatever is first
        ("Jetzt geht der müde Hund.", "Now, the tired dog is walking."),
        ("Im Park schläft die Frau jetzt.", "In the park, the woman is sleeping now."),
        ("Gestern ist diese Frau gesprungen.", "Yesterday, this woman jumped."),
        # prefix, participle or infinitive at the end
        ("Den Ball hebt eine Künstlerin auf.", "An artist is picking up the ball."),
        ("Jetzt schläft meine Katze ein.", "Now, my cat is falling asleep."),
        ("Einen Brief hat eine Künstlerin aufgehoben.", "An artist picked up a letter."),
        ("Achtzehn Affen sind in den Garten gelaufen.", "Eighteen monkeys ran into the garden."),
        ("Den Brief muss meine Ärztin aufheben.", "My doctor must pick up the letter."),
        ("Der Mann will meinen Regenschirm aufheben.", "The man wants to pick up my umbrella."),
        # the dative says where, the accusative where to
        ("Heute geht mein Mädchen auf dem Dach.", "Today, my girl is walking on the roof."),
        ("Heute geht mein Affe auf das Dach.", "Today, my monkey is walking onto the roof."),
        ("Im Haus ist der Hund am Sonntag gelaufen.", "In the house, the dog ran on Sunday."),
        ("Meine Pferde gehen ins Haus.", "My horses are walking into the house."),
        # a subordinate clause has its verb last; a pronoun has the gender of its noun
        ("Das Pferd spielt, weil es jung ist.", "The horse is playing because it is young."),
        ("Der Hund läuft, obwohl er jung ist.", "The dog is running although it is young."),
        ("Eine Katze schläft ein, weil sie hungrig ist.",
         "A cat is falling asleep because it is hungry."),
        ("Die Ärztin ist gesprungen, weil sie hungrig war.",
         "The doctor jumped because she was hungry."),
        ("Während meine Katze gesprungen ist, hat ein Hund gewartet.",
         "While my cat jumped, a dog waited."),
        ("Der Student glaubt, dass dieses Pferd gewartet hat.",
         "The student thinks that this horse waited."),
        ("Meine Kinder sagen, dass mein Affe gehen kann.",
         "My children say that my monkey can walk."),
        # relative pronouns have the gender and number of their noun and a case of their own
        ("Mein Hund, der kaltes Wasser getrunken hat, wartet.",
         "My dog that drank cold water is waiting."),
        ("Meine Ärztin, die meinen Ball aufhebt, muss warten.",
         "My doctor who is picking up my ball must wait."),
        ("Dieser Mann, den ein Junge sucht, springt.",
         "This man whom a boy is looking for is jumping."),
        ("Die Frau, der diese Ärztin dankt, ist gelaufen.",
         "The woman whom this doctor is thanking ran."),
        ("Das Kind, dem die Ärztin folgt, hat gespielt.",
         "The child whom the doctor is following played."),
        ("Die Männer, denen dieser Hund folgt, warten.",
         "The men whom this dog is following are waiting."),
        # number words
        ("Ein Affe ist einundzwanzig Jahre alt.", "A monkey is twenty-one years old."),
        ("Der Junge hat dreiunddreißig Männern gedankt.", "The boy thanked thirty-three men."),
        ("Einundsiebzig Elefanten gehen.", "Seventy-one elephants are walking."),
    ],
)  # fmt: skip
def test_each_construction_occurs_and_is_translated(german, english, everything):
    assert dict(everything).get(german) == english


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


def test_the_files_are_what_the_generator_makes(tmp_path, corpus, monkeypatch):
    monkeypatch.setattr(__main__, "toy_corpus", lambda: corpus)  # made once: it takes seconds
    __main__.main([str(tmp_path)])
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert set(made) == {f"{split}.{language}" for split in SIZES for language in ("de", "en")}
    assert made == {name: (FOLDER / name).read_bytes() for name in made}


def test_the_readme_lists_the_words():
    readme = (Path(__file__).parents[2] / "datasets/toy/README.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"\w+", readme.partition("| kind | words |")[2]))
    nouns = (*BEINGS, *THINGS, *DRINKS, *PLACES)
    words = {noun.singular for noun in nouns} | {verb.lemma for verb in VERBS}
    words |= {adjective.german for noun in nouns for adjective in noun.adjectives}
    assert words | {*MODALS, *PREPOSITIONS} <= listed
