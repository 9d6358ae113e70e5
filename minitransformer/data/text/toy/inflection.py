"""The forms of words: endings by gender, number and case; tenses; number words.

Genders are m, f and n, and p for the plural of all three.
"""

from typing import NamedTuple

from minitransformer.data.text.toy.german import German, german, join_german, number_of
from minitransformer.data.text.toy.lexicon import MODALS, NUMBERS

ARTICLES = {
    "nominative": {"m": "der", "f": "die", "n": "das", "p": "die"},
    "accusative": {"m": "den", "f": "die", "n": "das", "p": "die"},
    "dative": {"m": "dem", "f": "der", "n": "dem", "p": "den"},
}
STRONG_ENDINGS = {
    "nominative": {"m": "er", "f": "e", "n": "es", "p": "e"},
    "accusative": {"m": "en", "f": "e", "n": "es", "p": "e"},
    "dative": {"m": "em", "f": "er", "n": "em", "p": "en"},
}
PRONOUNS = {"m": "er", "f": "sie", "n": "es", "p": "sie"}
ENGLISH_DETERMINERS = {  # singular, plural
    "der": ("the", "the"),
    "dieser": ("this", "these"),
    "ein": ("a", ""),
    "mein": ("my", "my"),
    "viele": ("", "many"),
    "": ("", ""),
}


def join(*words):
    """The words that are not empty, with blanks between them."""
    return " ".join(word for word in words if word)


def german_noun_phrase(determiner, adjective, noun, case, plural=False):
    """Such as "den kleinen Hunden".

    Args:
        determiner: a key of ENGLISH_DETERMINERS, or a number word.
        adjective: an Adjective or None.
        case: a key of ARTICLES.
    """
    part_of_speech = "determiner" if determiner in ENGLISH_DETERMINERS else "number"
    determiner, ending = _determiner(determiner, case, "p" if plural else noun.gender)
    form = noun.plural if plural else noun.singular
    if plural and case == "dative" and not form.endswith(("n", "s")):
        form += "n"
    if noun.weak and not plural and case != "nominative":
        form += "n" if form.endswith(("e", "r")) else "en"
    agreement = dict(case=case, number=number_of(plural))
    return join_german(
        german(determiner, part_of_speech, **(agreement if part_of_speech == "determiner" else {})),
        adjective and german(adjective.stem + ending, "adjective", **agreement),
        german(form, "noun", **agreement),
    )


def _determiner(determiner, case, gender):
    """Its form and the ending of an adjective after it: strong unless the determiner has one."""
    strong = STRONG_ENDINGS[case][gender]
    like_nominative = case == "nominative" or (case == "accusative" and gender in "fn")
    weak = "e" if like_nominative and gender != "p" else "en"
    if determiner == "der":
        return ARTICLES[case][gender], weak
    if determiner == "dieser":
        return "dies" + strong, weak
    if determiner in ("ein", "mein"):
        endless = like_nominative and gender in "mn"
        return (determiner, strong) if endless else (determiner + strong, weak)
    if determiner == "viele":
        return "viel" + strong, strong
    return determiner, strong


def english_noun_phrase(determiner, adjective, noun, plural=False):
    """Such as "the small dogs"; ``determiner`` as in German, but a number in English."""
    determiner = ENGLISH_DETERMINERS.get(determiner, (determiner, determiner))[plural]
    words = join(adjective and adjective.english, noun.english_plural if plural else noun.english)
    if determiner == "a" and words[0] in "aeiou":
        determiner = "an"
    return join(determiner, words)


class VerbForms(NamedTuple):
    """What becomes of a verb: er "hat" ein Buch "gelesen"; weil er ein Buch "gelesen hat"."""

    second: German  # the second place of a main clause
    end: German  # the end of a main clause
    last: German  # the end of a subordinate clause
    english: str


def conjugate(verb, tense, plural=False):
    """The VerbForms in the third person; ``tense`` is "present", "perfect" or a key of MODALS.

    In English the present is progressive and the perfect is the simple past.
    """
    number = number_of(plural)
    if tense == "present":
        second = verb.infinitive if plural else verb.third
        return VerbForms(
            german(second, "verb", number=number, tense=tense),
            german(verb.prefix, "particle"),
            german(verb.prefix + second, "verb", number=number),
            join("are" if plural else "is", verb.english_ing),
        )
    if tense == "perfect":
        haben = ("hat", "haben") if verb.auxiliary == "haben" else ("ist", "sind")
        second, end, english = haben[plural], verb.participle, verb.english_past
    else:
        singular, can, he_can = MODALS[tense]
        second, end = tense if plural else singular, verb.lemma
        english = join(can if plural else he_can, verb.english)
        tense = "modal"
    return verb_forms(second, german(end, "verb"), number, tense, english)


def verb_forms(second, end, number, tense, english):
    """The VerbForms of a finite verb in the second place and German ``end`` at the end."""
    return VerbForms(
        german(second, "verb", number=number, tense=tense),
        end,
        join_german(end, german(second, "verb", number=number)),
        english,
    )


def number_words(n):
    """(German, English) for n from 2 to 99."""
    if n in NUMBERS:
        return NUMBERS[n]
    (german_unit, unit), (german_tens, tens) = NUMBERS[n % 10], NUMBERS[n - n % 10]
    return f"{german_unit}und{german_tens}", f"{tens}-{unit}"
