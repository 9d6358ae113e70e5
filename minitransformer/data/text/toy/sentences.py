"""Sentences: phrases in both languages, put into the order that each language wants."""

import random
from typing import NamedTuple

from minitransformer.data.text.toy.german import German, german, join_german, number_of
from minitransformer.data.text.toy.inflection import (
    ARTICLES,
    PRONOUNS,
    VerbForms,
    conjugate,
    english_noun_phrase,
    german_noun_phrase,
    join,
    number_words,
    verb_forms,
)
from minitransformer.data.text.toy.lexicon import (
    BEINGS,
    MODALS,
    PEOPLE,
    PLACES,
    PREPOSITIONS,
    REPORTS,
    TIMES,
    VERBS,
    Noun,
)

TENSES = 4 * ("present",) + 3 * ("perfect",) + tuple(MODALS)
VERBS_WITHOUT_SECOND_BEING = tuple(
    verb for verb in VERBS if not any(set(BEINGS) & set(nouns) for _, nouns in verb.objects)
)
INTRANSITIVE = tuple(verb for verb in VERBS if not verb.objects)


class Phrase(NamedTuple):
    """Some words in both languages, and what the rest of a sentence must know of them."""

    german: German | str = ""  # with labels unless it is empty
    english: str = ""
    noun: Noun = None
    plural: bool = False
    may_lead: bool = True  # whether a main clause can begin with it and stay clear


NOTHING = Phrase()


class Clause(NamedTuple):
    """A subject, its verb and what goes with them."""

    subject: Phrase
    verb: VerbForms
    time: Phrase = NOTHING
    objects: tuple = ()  # of Phrases
    place: Phrase = NOTHING

    @property
    def phrases(self):
        return [self.subject, self.time, *self.objects, self.place]

    def german(self, lead=NOTHING):
        """As a main clause: ``lead``, one of its phrases, then the verb, then the others."""
        others = (phrase.german for phrase in self.phrases if phrase is not lead)
        return join_german(lead.german, self.verb.second, *others, self.verb.end)

    def german_verb_last(self):
        return join_german(*(phrase.german for phrase in self.phrases), self.verb.last)

    def english(self, lead=NOTHING):
        """Subject, verb, objects, place, time, unless the place or the time leads."""
        adverbials = [self.place, self.time]
        opening = f"{lead.english}," if lead is not NOTHING and lead in adverbials else ""
        objects = (phrase.english for phrase in self.objects)
        after = (phrase.english for phrase in adverbials if phrase is not lead)
        return join(opening, self.subject.english, self.verb.english, *objects, *after)


class Writer:
    """Makes up sentences. Draws with ``Random.random()`` only: Python promises its numbers."""

    def __init__(self, seed):
        self._random = random.Random(seed).random

    def sentence(self):
        """German with its labels, English, and the combinations of dictionary forms of it.

        A combination is a string: "klein Hund" and "elf Hund" of an adjective or number and its
        noun, "Hund schlafen" of a subject and its verb, "kaufen Buch" of a verb and its object.
        """
        self._combinations = []
        text, english = self._pick(self._KINDS)(self)
        finished = German(_finished(text), text.labels)
        return finished, _finished(english), self._combinations

    def _pick(self, items):
        return items[int(self._random() * len(items))]

    def _chance(self, probability):
        return self._random() < probability

    def _combine(self, first, second):
        self._combinations.append(f"{first} {second}")

    # Kinds of sentences, in both languages, still without capital and full stop.

    def _statement(self):
        """Heute ruft die Frau den Jungen."""
        return self._main(self._clause(self._being(), self._pick(TENSES)))

    def _state(self):
        """Der Hund ist elf Jahre alt."""
        subject = self._being()
        return self._main(Clause(subject, self._is_so(subject)))

    def _reason(self):
        """Der Junge schläft, weil er müde ist."""
        subject = self._being()
        tense = self._pick(TENSES)
        # with a second being it would be open whom the pronoun means
        clause = self._clause(subject, tense, VERBS_WITHOUT_SECOND_BEING)
        text, english = self._main(clause)
        pronoun = subject._replace(
            german=_pronoun(PRONOUNS[_gender(subject)], "nominative", subject.plural),
            english="they" if subject.plural else subject.noun.pronoun,
        )
        past = tense == "perfect"
        if self._chance(0.5):
            # nor may it mean a thing, which can also be old or small
            reason = Clause(pronoun, self._is_so(subject, past, but=("old", "small")))
        else:
            reason = self._clause(pronoun, "perfect" if past else "present", brief=True)
        weil, because = self._pick((("weil", "because"), ("obwohl", "although")))
        return (
            join_german(text + ",", german(weil, "conjunction"), reason.german_verb_last()),
            f"{english} {because} {reason.english()}",
        )

    def _meanwhile(self):
        """Während der Hund schläft, kauft die Frau ein Buch."""
        tense = self._pick(("present", "perfect"))
        one = self._clause(self._being(), tense, INTRANSITIVE, brief=True)
        other = self._clause(self._being(), tense, brief=True)
        while_one = join_german(german("während", "conjunction"), one.german_verb_last())
        return (
            join_german(while_one + ",", other.german()),
            f"while {one.english()}, {other.english()}",
        )

    def _report(self):
        """Das Mädchen sagt, dass der Nachbar die Katze füttert."""
        subject = self._noun_phrase(PEOPLE, "nominative")
        plural, singular, say, says = self._pick(REPORTS)
        self._combine(subject.noun.singular, plural)
        clause = self._clause(self._being(), self._pick(TENSES), brief=True)
        sagt, english = (plural, say) if subject.plural else (singular, says)
        sagt = german(sagt, "verb", number=number_of(subject.plural), tense="present")
        dass = german("dass", "conjunction")
        return (
            join_german(subject.german, sagt + ",", dass, clause.german_verb_last()),
            f"{subject.english} {english} that {clause.english()}",
        )

    def _relative(self):
        """Der Mann, den das Kind ruft, liest einen Brief."""
        subject = self._being()
        clause, english = self._pick((self._who_does, self._whom_one_does))(subject)
        subject = subject._replace(
            german=join_german(subject.german + ",", clause + ","),
            english=f"{subject.english} {english}",
        )
        return self._main(self._clause(subject, self._pick(TENSES), INTRANSITIVE, brief=True))

    _KINDS = 5 * (_statement,) + 2 * (_reason, _relative) + (_state, _meanwhile, _report)

    # What they are made of.

    def _main(self, clause):
        leads = [phrase for phrase in clause.phrases if phrase.german and phrase.may_lead]
        lead = self._pick(leads)
        return clause.german(lead), clause.english(lead)

    def _clause(self, subject, tense, verbs=VERBS, brief=False):
        verb = self._pick([verb for verb in verbs if subject.noun in verb.subjects])
        self._combine(subject.noun.singular, verb.lemma)
        time = self._time(tense) if not brief and self._chance(0.4) else NOTHING
        objects = tuple(
            self._object(verb, _without(subject.noun, nouns), case) for case, nouns in verb.objects
        )
        has_place = not brief and self._chance(0.2 if objects else 0.5)
        place = self._place(verb) if has_place else NOTHING
        return Clause(subject, conjugate(verb, tense, subject.plural), time, objects, place)

    def _who_does(self, head):
        """The relative clause "der den Ball trägt", "who is carrying the ball"."""
        pronoun = head._replace(
            german=_pronoun(ARTICLES["nominative"][_gender(head)], "nominative", head.plural),
            english="who" if head.noun in PEOPLE else "that",
        )
        # "die die Katze ruft" would be open: who is calling whom?
        verbs = VERBS if _gender(head) == "m" else VERBS_WITHOUT_SECOND_BEING
        clause = self._clause(pronoun, self._pick(TENSES), verbs, brief=True)
        return clause.german_verb_last(), clause.english()

    def _whom_one_does(self, head):
        """The relative clause "den das Kind ruft", "whom the child is calling"."""
        gender = _gender(head)
        verb, case = self._pick(
            [
                (verb, verb.objects[0][0])
                for verb in VERBS
                if len(verb.objects) == 1
                and head.noun in verb.objects[0][1]
                and (gender == "m" or verb.dative)  # others look like a nominative
            ]
        )
        subject = self._noun_phrase(_without(head.noun, verb.subjects), "nominative")
        self._combine(subject.noun.singular, verb.lemma)
        self._combine(verb.lemma, head.noun.singular)
        clause = Clause(subject, conjugate(verb, self._pick(TENSES), subject.plural))
        whom = "denen" if gender == "p" else ARTICLES[case][gender]
        english = "whom" if head.noun in PEOPLE else "that"
        whom = _pronoun(whom, case, head.plural)
        return join_german(whom, clause.german_verb_last()), f"{english} {clause.english()}"

    def _being(self):
        return self._noun_phrase(BEINGS, "nominative")

    def _object(self, verb, nouns, case):
        phrase = self._noun_phrase(nouns, case)
        self._combine(verb.lemma, phrase.noun.singular)
        return phrase

    def _noun_phrase(self, nouns, case):
        noun = self._pick(nouns)
        plural = bool(noun.plural) and self._chance(0.3)
        determiners = noun.determiners
        if plural:
            determiners = (*_without("ein", determiners), "viele", "number", "number")
        determiner = english = self._pick(determiners)
        if determiner == "number":
            determiner, english = self._number(noun)
        adjective = self._adjective(noun) if self._chance(0.35) else None
        words = determiner, adjective, noun
        phrase = german_noun_phrase(*words, case, plural)
        return Phrase(
            phrase,
            english_noun_phrase(english, adjective, noun, plural),
            noun,
            plural,
            may_lead=case == "nominative"
            or phrase != german_noun_phrase(*words, "nominative", plural),
        )

    def _adjective(self, noun, but=()):
        """What the noun can be, ``but`` for some English words."""
        adjective = self._pick([choice for choice in noun.adjectives if choice.english not in but])
        self._combine(adjective.german, noun.singular)
        return adjective

    def _number(self, noun):
        number, english = number_words(2 + int(self._random() * 98))
        self._combine(number, noun.singular)
        return number, english

    def _is_so(self, subject, past=False, but=()):
        """The VerbForms of being tired, or eleven years old."""
        if self._chance(0.3):
            number, english = self._number(subject.noun)
            end = join_german(
                german(number, "number"),
                german("Jahre", "noun", case="accusative", number="plural"),
                german("alt", "adjective"),
            )
            english = f"{english} years old"
        else:
            word, english, _ = self._adjective(subject.noun, (*but, *subject.english.split()))
            end = german(word, "adjective")
        forms = (("war", "was"), ("waren", "were")) if past else (("ist", "is"), ("sind", "are"))
        ist, is_ = forms[subject.plural]
        return verb_forms(ist, end, number_of(subject.plural), "present", f"{is_} {english}")

    def _time(self, tense):
        text, english = self._pick(TIMES[tense])
        return Phrase(_german_time(text), english)

    def _place(self, verb):
        place = self._pick(PLACES)
        preposition = self._pick(place.prepositions)
        where, where_to = PREPOSITIONS[preposition]
        goes_there = verb.motion and where_to != "" and self._chance(0.5)
        phrase = self._noun_phrase((place,), "accusative" if goes_there else "dative")
        place = _contracted(join_german(german(preposition, "preposition"), phrase.german))
        english = f"{where_to if goes_there else where} {phrase.english}"
        return Phrase(place, english, may_lead=not goes_there)


def _german_time(text):
    """Such as "heute" or "am Abend"."""
    if text.startswith("am "):
        agreement = dict(case="dative", number="singular")
        am, day = text.split()
        return join_german(german(am, "preposition", **agreement), german(day, "noun", **agreement))
    return german(text, "adverb")


def _contracted(text):
    """A place, with preposition and article in one word where people say so: im Park."""
    for two_words, one in (("in dem ", "im "), ("in das ", "ins ")):
        if text.startswith(two_words):
            _, article, *others = text.labels
            labels = [article._replace(part_of_speech="preposition"), *others]
            return German(text.replace(two_words, one), labels)
    return text


def _pronoun(word, case, plural):
    return german(word, "pronoun", case=case, number=number_of(plural))


def _gender(phrase):
    return "p" if phrase.plural else phrase.noun.gender


def _without(item, items):
    return tuple(other for other in items if other is not item)


def _finished(text):
    """With a capital and a full stop; a comma after its last clause falls away."""
    return f"{text[0].upper()}{text[1:].rstrip(',')}."
