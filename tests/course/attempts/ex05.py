import numpy as np


def last_one_wins(dx, ids, vocabulary_size):
    dweight = np.zeros((vocabulary_size, dx.shape[-1]))
    dweight[ids] += np.sqrt(dx.shape[-1]) * dx
    return dweight


def longest_first(word, vocabulary):
    pieces = []
    while word:
        end = next(n for n in range(len(word), 0, -1) if word[:n] in vocabulary)
        pieces.append(word[:end])
        word = word[end:]
    return pieces


def longest_last(word, vocabulary):
    reversed_pieces = {piece[::-1] for piece in vocabulary}
    return [piece[::-1] for piece in reversed(longest_first(word[::-1], reversed_pieces))]


WRONG = r"""
scatter_by_product
    last_one_wins || factor √D, and for each id the sum
    math.sqrt(width) * -> || factor √D, and for each id the sum
tied_bigram
    math.sqrt(weight.shape[1]) * -> || √D · weight[ids]
fewest_pieces
    longest_first || ['abc', 'd', 'e']; 2 pieces are enough
    longest_last || 2 pieces are enough
    lambda word, vocabulary: list(word) || ['a', 'b', 'c']; 2 pieces are enough
    lambda word, vocabulary: [word] || does not make up the word of such pieces
    lambda word, vocabulary: len(word) || expected a list of pieces
segmentation_probabilities
    p**k * (1 - p) -> (1 - p ** len(possible)) / len(possible) || tried in their order
    sorted(possible) -> possible || tried in their order  # from left to right
    lambda word, order, p: {tuple(word): p, (word,): 1 - p} || tried in their order
    lambda word, order, p: {' '.join(word): 1.0} || keys are tuples
    lambda word, order, p: {('no',): 1.0} || does not make up the word
    return after(tuple(word)) -> p *= 1.1 if len(word) > 4 else 1\n    return after(tuple(word))
        || of 20,000 draws it came
    return after(tuple(word)) -> return after(tuple(word)) if len(word) > 1 else {} || their order
    return after(tuple(word)) -> return after(tuple(word)) if len(word) < 5 else {tuple(word): 1.0}
        || of 20,000 draws it came
"""
RIGHT = """
segmentation_probabilities
    if probability} -> }  # what cannot be has 0
"""
