"""Plausible wrong answers to exercise 14 are told what is wrong with them."""

import math

import numpy as np
from exercise_files import functions_in, only_wrong, solution_of

SOLUTION = functions_in(solution_of("ex14"))


def test_a_tie_by_the_lengths_alone_is_wrong():
    def without_five(log_p, length, other_log_p, other_length):
        return math.log(log_p / other_log_p) / math.log(length / other_length)

    said = only_wrong("ex14", "alpha_of_a_tie", alpha_of_a_tie=without_five)
    assert "(5 + length) / 6" in said


def test_a_nucleus_without_the_word_that_reaches_p_is_too_small():
    def too_small(probabilities, p):
        order = np.argsort(-probabilities)
        inside = order[np.cumsum(probabilities[order]) <= p]
        kept = np.zeros_like(probabilities)
        kept[inside] = probabilities[inside]
        return kept / max(kept.sum(), 1e-9)

    assert "the last one kept" in only_wrong("ex14", "nucleus", nucleus=too_small)


def test_a_nucleus_that_is_not_scaled_is_wrong():
    def unscaled(probabilities, p):
        return np.where(SOLUTION["nucleus"](probabilities, p) > 0, probabilities, 0)

    assert "sum to 1" in only_wrong("ex14", "nucleus", nucleus=unscaled)


def test_greedy_search_is_not_exact():
    def takes_the_best_word(next_log_p, max_length):
        words, total = (), 0.0
        while not words or (words[-1] != 0 and len(words) < max_length):
            log_p = next_log_p(words)
            words += (int(np.argmax(log_p)),)
            total += max(log_p)
        return words, total

    said = only_wrong("ex14", "exact_search", exact_search=takes_the_best_word)
    assert "log-probability" in said


def test_a_beam_is_not_exact():
    def keeps_five(next_log_p, max_length):
        beam, found = [((), 0.0)], []
        for _ in range(max_length):
            longer = [((*y, w), p + q) for y, p in beam for w, q in enumerate(next_log_p(y))]
            best = sorted(longer, key=lambda pair: -pair[1])[:5]
            found += [(y, p) for y, p in best if y[-1] == 0]
            beam = [(y, p) for y, p in best if y[-1] != 0]
        return max(found, key=lambda pair: pair[1])

    said = only_wrong("ex14", "exact_search", exact_search=keeps_five)
    assert "likelier" in said


def test_a_search_that_tries_everything_asks_too_often():
    def tries_all(next_log_p, max_length):
        best, prefixes = ((), -math.inf), {(): 0.0}
        for _ in range(max_length):
            longer = {}
            for prefix, total in prefixes.items():
                for word, log_p in enumerate(next_log_p(prefix)):
                    longer[(*prefix, word)] = total + log_p
            finished = [(y, log_p) for y, log_p in longer.items() if y[-1] == 0]
            best = max([best, *finished], key=lambda pair: pair[1])
            prefixes = {y: log_p for y, log_p in longer.items() if y[-1] != 0}
        return best

    said = only_wrong("ex14", "exact_search", exact_search=tries_all)
    assert "times; only" in said


def test_a_chrf_that_is_the_mean_over_sentences_is_wrong():
    def mean(hypotheses, references):
        pairs = zip(hypotheses, references, strict=True)
        return np.mean([SOLUTION["chrf"]([h], [r]) for h, r in pairs])

    assert "summed over the corpus" in only_wrong("ex14", "chrf", chrf=mean)
