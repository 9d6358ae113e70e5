"""Exercises of lesson 23, an encoder. Check yours:  minitransformer check ex23

Shapes: B batch, T positions, D width, V vocabulary.
"""

import numpy as np


def accuracy_by_form(words, labels, test_words, test_labels):
    """10 min. What labels are worth without a model: the first number to compare a tagger with.

    To each word say the label that this word has most often in training. To a word that training
    does not have, say the label that is the most frequent of all in training.

    Args:
        words, labels: lists of strings, as long as each other: the words of training.
        test_words, test_labels: those to be tried on.

    Returns:
        the share of the test words whose label is said rightly, a number. Of labels that are
        equally frequent any may be said: the check has none.

    Hint: a Counter for each word, and one for all.
    """
    raise NotImplementedError


def whole_words(begins, text, draw, share):
    """25 min. Choose whole words to be left out, not pieces.

    Where the end of a word is hidden and its beginning is seen, the answer is nearly given away. So
    BERT's authors later chose words: with a word all its pieces are left out.

    Args:
        begins: booleans (B, T), True at the first piece of each word.
        text: booleans (B, T), True at all pieces of words, False at BOS, EOS and padding. A word
            goes on up to where the next one begins, or the text ends.
        draw: (B, T), uniform random numbers, 0 ≤ x < 1. A word is chosen if the number at its first
            piece is below ``share``; the numbers at its other pieces say nothing.
        share: of the words, between 0 and 1.

    Returns:
        booleans (B, T), True at all pieces of the chosen words, and nowhere else.

    Hint: at which position does the word of position t begin? Write t where a word begins, and 0
    elsewhere. What does np.maximum.accumulate make of that?
    """
    raise NotImplementedError


def score_by_blanks(log_probabilities, ids, mask):
    """25 min. What a masked language model thinks of a whole sentence.

    It has no probability of a text. But each piece can be asked for, one after the other, with all
    the rest there: the sum of the ln p of each piece, when it alone is hidden, is called the
    pseudo-log-likelihood. Of two sentences the better one mostly has the larger score.

    Args:
        log_probabilities: a function: of ids (N, T) it returns ln p of each piece at each position,
            (N, T, V). You may call it once.
        ids: (T,), a sentence between BOS at 0 and EOS at T − 1; both are seen and not asked for.
        mask: the id of MASK.

    Returns:
        a number.

    Hint: a batch with a row for each piece. How many rows are there, and what differs in each?
    """
    raise NotImplementedError


def first_row_attention(x, w_query, w_key, w_value):
    """45 min, with its backward. What the last layer of a classifier has to do.

    The label of a sentence is read at position 0, so of the last layer only row 0 is needed: one
    query for each sentence, which looks at all its positions.

        q = x₀ Wq        k = x Wk        v = x Wv
        a = softmax(q kᵀ / √D)           y = a v

    Args:
        x: (B, T, D), without padding.
        w_query, w_key, w_value: (D, D).

    Returns:
        y (B, D), and the cache for the backward, in any form.

    Hint: einsum, or arrays with T = 1. It is lesson 08's attention with a single query.
    """
    raise NotImplementedError


def first_row_attention_backward(dy, cache):
    """The backward of ``first_row_attention``.

    Args:
        dy: (B, D).
        cache: what the forward returned.

    Returns:
        dx (B, T, D), dw_query, dw_key, dw_value (D, D each).

    Hint: in how many ways does x₀ reach y? In how many does x₁?
    """
    raise NotImplementedError
