"""The n-gram model is a probability distribution, and the one of its formula."""

import math

import numpy as np
import pytest

from minitransformer.data.text.toy import toy_corpus
from minitransformer.data.text.vocabulary import BOS
from minitransformer.models.n_gram import NGramModel

START, END, A, B, C, UNSEEN = range(6)
TEXT = [[A, B, C, END], [A, B, A, END], [C, B, C, END], [A, A, END]]


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("context", [(), (A,), (A, B), (UNSEEN, B), (A, UNSEEN), (START,) * 3])
def test_the_probabilities_of_all_words_sum_to_1(order, context):
    model = NGramModel(TEXT, order, 6, START)
    p = [model.probability(word, context) for word in range(6)]
    assert min(p) > 0
    assert math.isclose(sum(p), 1, rel_tol=1e-12)


def test_a_bigram_is_the_formula_worked_out_by_hand():
    """After A: B twice, A once, the end twice. Of 9 bigrams 4 occur once and 4 twice."""
    model = NGramModel(TEXT, 2, 6, START)
    d = 4 / (4 + 2 * 4)
    lower = (2 - 0.5) / 9 + 0.5 * 4 / 9 / 6  # 2 of the 9 bigrams end with B; none of 4 counts is 1
    assert model.levels[0].counts == {(A,): 3, (B,): 2, (C,): 2, (END,): 2}
    assert math.isclose(model.probability(B, (A,)), (2 - d) / 5 + d * 3 / 5 * lower)


def test_a_word_that_follows_one_word_alone_is_improbable_after_others():
    """*San Francisco*: as frequent as another word, which follows many."""
    san, francisco, house = A, B, C
    others = range(6, 11)
    text = [[san, francisco, END] for _ in others] + [[other, house, END] for other in others]
    model = NGramModel(text, 2, 11, START)
    assert model.probability(francisco, (UNSEEN,)) < 0.5 * model.probability(house, (UNSEEN,))


def test_only_the_last_words_matter_and_a_context_never_seen_asks_the_lower_model():
    model = NGramModel(TEXT, 3, 6, START)
    assert model.probability(C, (START, B, A, B)) == model.probability(C, (A, B))
    assert model.probability(C, (UNSEEN, B)) == model.probability(C, (B,))
    assert model.probability(C, (UNSEEN, B)) != model.probability(C, (A, B))


def test_the_perplexity_of_equal_words_is_their_number():
    model = NGramModel([[word] for word in range(1, 6)], 1, 5, START)
    assert math.isclose(math.exp(model.nll([[1], [4]])), 5)


def test_the_nll_begins_with_the_first_word_and_is_a_mean_over_words():
    model = NGramModel(TEXT, 3, 6, START)
    pairs = [(A, (START, START)), (B, (START, A)), (END, (A, B)), (C, (START, START))]
    logs = [math.log(model.probability(word, context)) for word, context in pairs]
    assert math.isclose(model.nll([[A, B, END], [C]]), -np.mean(logs))


def test_more_words_of_context_help_on_english_until_they_are_too_rare():
    words = {}
    english = {
        split: [
            [words.setdefault(w, len(words) + 4) for w in text.split()]
            for _, text in toy_corpus()[split]
        ]
        for split in ("train", "validation")
    }
    nll = [
        NGramModel(english["train"], order, len(words) + 4, BOS).nll(english["validation"])
        for order in (1, 2, 3)
    ]
    assert nll[0] > nll[1] + 1 > nll[2] + 1


def test_no_order_and_not_a_single_word_are_refused():
    with pytest.raises(ValueError, match="order=0"):
        NGramModel([[A]], 0, 6, START)
    with pytest.raises(ValueError, match="not a single word"):
        NGramModel([[]], 2, 6, START)
    with pytest.raises(ValueError, match="not a single word"):
        NGramModel(TEXT, 2, 6, START).nll([])
