"""The words, German and English side by side.

Every verb fits all the nouns of the groups it names, and every adjective the nouns that list it,
so any sentence made of them makes some sense.
"""

from typing import NamedTuple


class Adjective(NamedTuple):
    """An adjective, and the stem that its endings are added to."""

    german: str
    english: str
    stem: str


class Noun(NamedTuple):
    """A noun. Places and drinks have no plural here."""

    gender: str  # m, f or n
    singular: str
    plural: str
    english: str
    english_plural: str
    adjectives: tuple  # what it can be
    pronoun: str = "it"  # in English: he, she or it; in German the gender decides
    weak: bool = False  # takes -n outside the nominative: der Junge, den Jungen
    determiners: tuple = ("der", "ein", "dieser", "mein")  # of the singular
    prepositions: tuple = ()  # of a place


class Verb(NamedTuple):
    """A verb. A separable prefix is written only in the participle."""

    infinitive: str  # and third person plural
    third: str  # person singular
    participle: str
    english: str
    english_ing: str
    english_past: str
    subjects: tuple  # nouns that can do it
    accusative: tuple = ()  # nouns that can be its object in this case
    dative: tuple = ()  # in this case; it precedes the accusative
    prefix: str = ""  # "auf": er hebt den Ball auf
    auxiliary: str = "haben"  # of the perfect, or "sein"
    motion: bool = False  # can go somewhere: in den Park, into the park

    @property
    def lemma(self):
        return self.prefix + self.infinitive

    @property
    def objects(self):
        """(case, nouns) of each object, in order."""
        both = (("dative", self.dative), ("accusative", self.accusative))
        return tuple((case, nouns) for case, nouns in both if nouns)


def _adjectives(**english):
    stems = {"müde": "müd", "teuer": "teur"}
    return tuple(Adjective(word, english[word], stems.get(word, word)) for word in english)


_BEING = _adjectives(alt="old", jung="young", klein="small", müde="tired", hungrig="hungry")
_HUMAN = (*_BEING, *_adjectives(freundlich="friendly"))
_SOLID = _adjectives(
    alt="old", klein="small", groß="big", rot="red", blau="blue", teuer="expensive"
)
_EDIBLE = _adjectives(klein="small", groß="big", frisch="fresh", teuer="expensive")
_LIQUID = _adjectives(kalt="cold", heiß="hot", frisch="fresh")
_BUILT = _adjectives(alt="old", klein="small", groß="big")

NOT_MY = ("der", "ein", "dieser")  # mein Mann would be my husband


def _drink(gender, german, english):
    return Noun(gender, german, "", english, "", _LIQUID, determiners=("",))


def _place(gender, german, english, *prepositions):
    determiners = ("der", "ein")
    return Noun(
        gender, german, "", english, "", _BUILT, determiners=determiners, prepositions=prepositions
    )


PEOPLE = (
    Noun("m", "Mann", "Männer", "man", "men", _HUMAN, "he", determiners=NOT_MY),
    Noun("m", "Junge", "Jungen", "boy", "boys", _HUMAN, "he", weak=True),
    Noun("m", "Student", "Studenten", "student", "students", _HUMAN, "he", weak=True),
    Noun("f", "Frau", "Frauen", "woman", "women", _HUMAN, "she", determiners=NOT_MY),
    Noun("f", "Ärztin", "Ärztinnen", "doctor", "doctors", _HUMAN, "she"),
    Noun("f", "Künstlerin", "Künstlerinnen", "artist", "artists", _HUMAN, "she"),
    Noun("n", "Mädchen", "Mädchen", "girl", "girls", _HUMAN, "she"),
    Noun("n", "Kind", "Kinder", "child", "children", _HUMAN),
)
ANIMALS = (
    Noun("m", "Hund", "Hunde", "dog", "dogs", _BEING),
    Noun("m", "Affe", "Affen", "monkey", "monkeys", _BEING, weak=True),
    Noun("m", "Elefant", "Elefanten", "elephant", "elephants", _BEING, weak=True),
    Noun("f", "Katze", "Katzen", "cat", "cats", _BEING),
    Noun("n", "Pferd", "Pferde", "horse", "horses", _BEING),
)
BEINGS = PEOPLE + ANIMALS
TEXTS = (
    Noun("m", "Brief", "Briefe", "letter", "letters", _SOLID),
    Noun("f", "Zeitung", "Zeitungen", "newspaper", "newspapers", _SOLID),
    Noun("n", "Buch", "Bücher", "book", "books", _SOLID),
)
FOOD = (
    Noun("m", "Apfel", "Äpfel", "apple", "apples", _EDIBLE),
    Noun("m", "Keks", "Kekse", "cookie", "cookies", _EDIBLE),
    Noun("f", "Banane", "Bananen", "banana", "bananas", _EDIBLE),
    Noun("n", "Ei", "Eier", "egg", "eggs", _EDIBLE),
)
THINGS = (
    *TEXTS,
    *FOOD,
    Noun("m", "Ball", "Bälle", "ball", "balls", _SOLID),
    Noun("m", "Regenschirm", "Regenschirme", "umbrella", "umbrellas", _SOLID),
    Noun("f", "Tasche", "Taschen", "bag", "bags", _SOLID),
    Noun("n", "Bild", "Bilder", "picture", "pictures", _SOLID),
)
DRINKS = (_drink("m", "Tee", "tea"), _drink("f", "Milch", "milk"), _drink("n", "Wasser", "water"))
PLACES = (
    _place("m", "Park", "park", "in"),
    _place("m", "Garten", "garden", "in"),
    _place("m", "Baum", "tree", "unter", "hinter", "neben"),
    _place("f", "Küche", "kitchen", "in"),
    _place("f", "Schule", "school", "in", "vor", "hinter"),
    _place("f", "Brücke", "bridge", "auf", "unter"),
    _place("n", "Haus", "house", "in", "vor", "hinter", "neben"),
    _place("n", "Dach", "roof", "auf"),
)
PREPOSITIONS = {  # where, with the dative; where to, with the accusative
    "in": ("in", "into"),
    "auf": ("on", "onto"),
    "unter": ("under", ""),
    "hinter": ("behind", ""),
    "neben": ("next to", ""),
    "vor": ("in front of", ""),
}

# fmt: off
VERBS = (
    Verb("schlafen", "schläft", "geschlafen", "sleep", "sleeping", "slept", BEINGS),
    Verb("schlafen", "schläft", "eingeschlafen", "fall asleep", "falling asleep", "fell asleep",
         BEINGS, prefix="ein", auxiliary="sein"),
    Verb("warten", "wartet", "gewartet", "wait", "waiting", "waited", BEINGS),
    Verb("spielen", "spielt", "gespielt", "play", "playing", "played", BEINGS),
    Verb("tanzen", "tanzt", "getanzt", "dance", "dancing", "danced", PEOPLE),
    Verb("singen", "singt", "gesungen", "sing", "singing", "sang", PEOPLE),
    Verb("arbeiten", "arbeitet", "gearbeitet", "work", "working", "worked", PEOPLE),
    Verb("laufen", "läuft", "gelaufen", "run", "running", "ran",
         BEINGS, auxiliary="sein", motion=True),
    Verb("gehen", "geht", "gegangen", "walk", "walking", "walked",
         BEINGS, auxiliary="sein", motion=True),
    Verb("springen", "springt", "gesprungen", "jump", "jumping", "jumped",
         BEINGS, auxiliary="sein", motion=True),
    Verb("lesen", "liest", "gelesen", "read", "reading", "read", PEOPLE, TEXTS),
    Verb("essen", "isst", "gegessen", "eat", "eating", "ate", BEINGS, FOOD),
    Verb("trinken", "trinkt", "getrunken", "drink", "drinking", "drank", BEINGS, DRINKS),
    Verb("tragen", "trägt", "getragen", "carry", "carrying", "carried", PEOPLE, THINGS),
    Verb("kaufen", "kauft", "gekauft", "buy", "buying", "bought", PEOPLE, THINGS),
    Verb("verkaufen", "verkauft", "verkauft", "sell", "selling", "sold", PEOPLE, THINGS),
    Verb("heben", "hebt", "aufgehoben", "pick up", "picking up", "picked up",
         PEOPLE, THINGS, prefix="auf"),
    Verb("suchen", "sucht", "gesucht", "look for", "looking for", "looked for",
         BEINGS, THINGS + BEINGS),
    Verb("sehen", "sieht", "angesehen", "look at", "looking at", "looked at",
         BEINGS, THINGS + BEINGS, prefix="an"),
    Verb("begrüßen", "begrüßt", "begrüßt", "greet", "greeting", "greeted", PEOPLE, BEINGS),
    Verb("füttern", "füttert", "gefüttert", "feed", "feeding", "fed", PEOPLE, ANIMALS),
    Verb("rufen", "ruft", "gerufen", "call", "calling", "called", PEOPLE, BEINGS),
    Verb("helfen", "hilft", "geholfen", "help", "helping", "helped", PEOPLE, dative=BEINGS),
    Verb("danken", "dankt", "gedankt", "thank", "thanking", "thanked", PEOPLE, dative=PEOPLE),
    Verb("folgen", "folgt", "gefolgt", "follow", "following", "followed",
         BEINGS, dative=BEINGS, auxiliary="sein"),
    Verb("geben", "gibt", "gegeben", "give", "giving", "gave", PEOPLE, THINGS, BEINGS),
    Verb("zeigen", "zeigt", "gezeigt", "show", "showing", "showed", PEOPLE, THINGS, PEOPLE),
)
# fmt: on

# Verbs of a dass clause and of another verb: infinitive and plural, singular; the same in English.
REPORTS = (
    ("sagen", "sagt", "say", "says"),
    ("glauben", "glaubt", "think", "thinks"),
    ("wissen", "weiß", "know", "knows"),
)
MODALS = {
    "können": ("kann", "can", "can"),
    "müssen": ("muss", "must", "must"),
    "sollen": ("soll", "should", "should"),
    "wollen": ("will", "want to", "wants to"),
}

_AHEAD = (("heute", "today"), ("morgen", "tomorrow"), ("am Abend", "in the evening"))
TIMES = {  # what goes with each tense
    "present": (("heute", "today"), ("jetzt", "now"), ("gerade", "right now")),
    "perfect": (
        ("gestern", "yesterday"),
        ("am Morgen", "in the morning"),
        ("am Sonntag", "on Sunday"),
    ),
    **dict.fromkeys(MODALS, _AHEAD),
}

# The others are made of these: einundzwanzig, twenty-one.
NUMBERS = {
    1: ("ein", "one"),
    2: ("zwei", "two"),
    3: ("drei", "three"),
    4: ("vier", "four"),
    5: ("fünf", "five"),
    6: ("sechs", "six"),
    7: ("sieben", "seven"),
    8: ("acht", "eight"),
    9: ("neun", "nine"),
    10: ("zehn", "ten"),
    11: ("elf", "eleven"),
    12: ("zwölf", "twelve"),
    13: ("dreizehn", "thirteen"),
    14: ("vierzehn", "fourteen"),
    15: ("fünfzehn", "fifteen"),
    16: ("sechzehn", "sixteen"),
    17: ("siebzehn", "seventeen"),
    18: ("achtzehn", "eighteen"),
    19: ("neunzehn", "nineteen"),
    20: ("zwanzig", "twenty"),
    30: ("dreißig", "thirty"),
    40: ("vierzig", "forty"),
    50: ("fünfzig", "fifty"),
    60: ("sechzig", "sixty"),
    70: ("siebzig", "seventy"),
    80: ("achtzig", "eighty"),
    90: ("neunzig", "ninety"),
}
