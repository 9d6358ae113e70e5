"""The toy corpus: German captions and their English translations, made by a small seeded grammar.

A German sentence has exactly one right translation here, so exact match is a fair score. What has
to be learned for it does not run word for word along the diagonal:

- one ending for gender, number and case in each noun phrase: der kleine Hund, ein kleiner Hund
- weak nouns: der Junge, den Jungen
- case that says who does it to whom: Den Jungen ruft die Frau. (The woman is calling the boy.)
- the verb in second place: Heute schläft der Hund. (Today, the dog is sleeping.)
- infinitives, participles and split prefixes at the end: Das Kind hebt den roten Ball auf.
- subordinate clauses with the verb last, and pronouns that look back: ..., weil er müde ist.
- place against direction: im Park (in the park), in den Park (into the park)
- number words: einundzwanzig (twenty-one)

The words are in lexicon.py, their forms in inflection.py, the word order in sentences.py. What each
German word is, its case say, is noted as it is written; german.py says how.
"""

import re
import zlib
from functools import lru_cache

from minitransformer.core.errors import require_one_of
from minitransformer.data.text.toy.german import NONE
from minitransformer.data.text.toy.sentences import Writer

SIZES = {"train": 12000, "validation": 500, "test": 1000}
MAX_WORDS = 14  # of a German sentence
LABELS = ("part-of-speech", "case", "number", "tense")


def toy_corpus(seed=0):
    """The sentence pairs of "train", "validation" and "test", as lists of (German, English).

    Some combinations of words (:meth:`Writer.sentence` says which words combine) are held out:
    no sentence of the training split contains one, and every sentence of the other two does, made
    of word forms that all occur in training. No German sentence occurs twice. The same seed gives
    the same corpus everywhere; the combinations held out are the same for all seeds.
    """
    corpus = _made_up(seed, tuple(SIZES.items()))
    return {split: [(str(german), english) for german, english in corpus[split]] for split in SIZES}


def labelled_toy_corpus(kind, seed=0):
    """The German sentences of :func:`toy_corpus`, in order, with what the grammar knows of them.

    Args:
        kind: of labels, one of LABELS. Each word has a label, ``"-"`` where there is nothing to
            say; of ``"tense"`` each sentence has one, the tense of its main clause.
        seed: of the corpus.

    Returns:
        "train", "validation" and "test", as lists of (text, labels). Of words, and signs, which
        are words too, both have blanks between them: ``("Er schläft .", "nominative - -")``. With
        one label a sentence stands as people write it: ``("Er schläft.", "present")``.

    Raises:
        ValueError: there is no such kind.
    """
    require_one_of(LABELS, "labels", kind)
    field = kind.replace("-", "_")
    corpus = _made_up(seed, tuple(SIZES.items()))
    return {
        split: [_labelled(german, field) for german, _ in sentences]
        for split, sentences in corpus.items()
    }


def _labelled(german, field):
    words, labels = zip(*german.words(), strict=True)
    values = [getattr(label, field) for label in labels]
    if field == "tense":
        (tense,) = {*values} - {NONE}
        return str(german), tense
    return " ".join(words), " ".join(values)


@lru_cache(maxsize=1)  # it takes seconds, and is asked for split by split
def _made_up(seed, sizes):
    """The pairs of the corpus, the German side with its labels."""
    writer = Writer(seed)
    corpus = {split: [] for split, _ in sizes}
    seen, training_words = set(), set()
    for split, size in sizes:
        while len(corpus[split]) < size:
            german, english, combinations = writer.sentence()
            words = re.findall(r"\w+", german)
            if german in seen or len(words) > MAX_WORDS:
                continue
            if split == "train":
                if any(map(is_held_out, combinations)):
                    continue
                training_words.update(words)
            elif not (any(map(is_held_out, combinations)) and training_words.issuperset(words)):
                continue
            seen.add(german)
            corpus[split].append((german, english))
    return corpus


def is_held_out(combination):
    """Whether a combination such as "klein Hund" is kept from training; one in ten is."""
    return zlib.crc32(combination.encode()) % 10 == 0
