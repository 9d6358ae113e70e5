"""German text that knows what each of its words is: beside the words, not guessed from them.

The grammar that makes a sentence up knows the case of each noun phrase and the tense of each
clause. It notes them as it writes, so the labels are right where the words alone leave it open:
"die Frau" is a nominative or an accusative.
"""

from functools import cache
from typing import NamedTuple

NONE = "-"  # the label of a word that has none: a verb has no case


class Label(NamedTuple):
    """What a word is.

    Attributes:
        part_of_speech: such as ``"noun"``.
        case: ``"nominative"``, ``"accusative"`` or ``"dative"``; ``"im"`` has that of its article.
        number: ``"singular"`` or ``"plural"``, of all that has endings for it.
        tense: of the sentence, at the one word that says it, the verb in its second place:
            ``"present"``, ``"perfect"`` or ``"modal"``.
    """

    part_of_speech: str
    case: str = NONE
    number: str = NONE
    tense: str = NONE


class German(str):
    """Text with a Label for each of its words, which blanks separate; equal to the same string."""

    def __new__(cls, text, labels):
        german = super().__new__(cls, text)
        german.labels = tuple(labels)
        return german

    def __add__(self, sign):
        """With a comma or a full stop, which is no word of its own yet."""
        return German(f"{self}{sign}", self.labels)

    def words(self):
        """(word, Label) of each word and of each sign behind one."""
        found = []
        for text, label in zip(self.split(), self.labels, strict=True):
            word = text.rstrip(",.")
            found.append((word, label))
            found += [(sign, Label("punctuation")) for sign in text[len(word) :]]
        return found


@cache  # a corpus has hundreds of words, each hundreds of times
def german(text, part_of_speech, **label):
    """Text whose words all have the same label; the arguments as the fields of a Label."""
    return German(text, len(text.split()) * [Label(part_of_speech, **label)])


def join_german(*texts):
    """The German texts that are not empty, with blanks between them."""
    texts = [text for text in texts if text]
    return German(" ".join(texts), [label for text in texts for label in text.labels])


def number_of(plural):
    """The name of the number."""
    return "plural" if plural else "singular"
