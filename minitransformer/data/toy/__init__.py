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

The words are in lexicon.py, their forms in inflection.py, the word order in sentences.py.
"""

import re
import zlib

from minitransformer.data.toy.sentences import Writer

SIZES = {"train": 12000, "validation": 500, "test": 1000}
MAX_WORDS = 14  # of a German sentence


def toy_corpus(seed=0):
    """The sentence pairs of "train", "validation" and "test", as lists of (German, English).

    Some combinations of words (:meth:`Writer.sentence` says which words combine) are held out:
    no sentence of the training split contains one, and every sentence of the other two does, made
    of word forms that all occur in training. No German sentence occurs twice. The same seed gives
    the same corpus everywhere; the combinations held out are the same for all seeds.
    """
    writer = Writer(seed)
    corpus = {split: [] for split in SIZES}
    seen, training_words = set(), set()
    for split, size in SIZES.items():
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
