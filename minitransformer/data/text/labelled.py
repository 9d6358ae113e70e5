"""Labelled text: sentences of which each word has a label, or each sentence has one.

A file of labels is one of two kinds, in UTF-8, a tab between two columns:

    words       a word and its label in a line, a blank line between two sentences (the form of the
                CoNLL shared tasks)
    sentences   a label and a sentence in a line, and no blank lines

An example is two texts: the sentence, and its label or the labels of its words. Of words, and signs
are words too, both have blanks between them.
"""

import unicodedata
from bisect import bisect_right
from itertools import groupby

from minitransformer.data.text.batches import framed
from minitransformer.data.text.corpus import CorpusError, read_text
from minitransformer.data.text.vocabulary import normalized

CLOSING = {".", ",", ";", ":", "!", "?", "…"}  # no blank stands before them


def read_labelled(path):
    """The examples of a file, a list of (sentence, labels).

    Blank lines before the first sentence and behind the last say nothing of the kind of the file.

    Raises:
        CorpusError: the file is no UTF-8, or a line is not of its kind; says which.
        OSError: it is missing, or none to be read: see :func:`read_regular`.
    """
    lines = read_text(path).split("\n")
    of_words = "" in map(str.strip, "\n".join(lines).strip().split("\n"))
    rows = [_columns(path, number, line, of_words) for number, line in enumerate(lines, start=1)]
    if not of_words:
        return [(sentence, label) for label, sentence in rows if sentence]
    sentences = [list(group) for there, group in groupby(rows, any) if there]
    return [tuple(map(" ".join, zip(*sentence, strict=True))) for sentence in sentences]


def _columns(path, number, line, of_words):
    """The two columns of a line, both empty of a blank line."""
    if not line.strip():
        return "", ""
    columns = [normalized(column) for column in line.split("\t")]
    single = columns if of_words else columns[:1]  # which have no blanks in them
    if len(columns) == 2 and all(columns) and not any(" " in column for column in single):
        return columns
    wanted = (
        "a word, a tab and its label, both without blanks: the file has blank lines, so it is one "
        "of words"
        if of_words
        else "a label without blanks, a tab and a sentence: the file has no blank line between two "
        "others, so it is one of sentences"
    )
    raise CorpusError(f"{path}, line {number}: {line[:60]!r} is not {wanted}")


def words_of(text):
    """The words of a text as people write it, and where each begins, a list of (word, start).

    A word stands between blanks; each sign before or behind it is a word of its own.

    Args:
        text: normalized.
    """
    found, start = [], 0
    for chunk in text.split(" ") if text else []:
        signs = [unicodedata.category(character)[0] in "PS" for character in chunk]
        first = signs.index(False) if False in signs else len(chunk)
        end = len(chunk) - signs[::-1].index(False) if False in signs else len(chunk)
        found += [(sign, start + i) for i, sign in enumerate(chunk[:first])]
        if first < end:
            found.append((chunk[first:end], start + first))
        found += [(sign, start + i) for i, sign in enumerate(chunk[end:], start=end)]
        start += len(chunk) + 1
    return found


def surface(words):
    """Words as people write them, and where each begins: the text and a list.

    No blank stands before a closing sign and behind an opening one; of what a sign such as ``"``
    is, a word does not tell, and it has blanks on both sides.
    """
    text, starts, opened = "", [], True
    for word in words:
        if not (opened or word in CLOSING or unicodedata.category(word[0]) in ("Pe", "Pf")):
            text += " "
        starts.append(len(text))
        text += word
        opened = unicodedata.category(word[-1]) in ("Ps", "Pi")
    return text, starts


def first_pieces(vocabulary, text, starts, most):
    """The ids of a sentence, framed, and which of them each of its words is read at.

    Args:
        vocabulary: a Vocabulary.
        text: normalized. Of one with far more words than ``most`` only the beginning is read.
        starts: where its words begin.
        most: the longest row of ids.

    Returns:
        ids, a list; and for each word the place of the piece with its first character, or None
        where that is beyond the end. Words within one piece share its place.
    """
    beginning = " ".join(text.split(" ", most)[:most])  # a word has a piece or more
    ids, ends = vocabulary.located(beginning)
    framed_ids = framed(ids, most)
    places = [1 + bisect_right(ends, start) for start in starts]  # behind BOS
    return framed_ids, [place if place < len(framed_ids) - 1 else None for place in places]
