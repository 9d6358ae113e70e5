"""Attempts at exercise 14."""

import math

import numpy as np
from exercise_files import functions_in, solution_of

chrf = functions_in(solution_of("ex14"))["chrf"]


def greedy(next_log_p, max_length):
    words, total = (), 0.0
    while not words or (words[-1] != 0 and len(words) < max_length):
        log_p = next_log_p(words)
        words += (int(np.argmax(log_p)),)
        total += max(log_p)
    return words, total


def beam_of_five(next_log_p, max_length):
    beam, found = [((), 0.0)], []
    for _ in range(max_length):
        longer = [((*y, w), p + q) for y, p in beam for w, q in enumerate(next_log_p(y))]
        best = sorted(longer, key=lambda pair: -pair[1])[:5]
        found += [(y, p) for y, p in best if y[-1] == 0]
        beam = [(y, p) for y, p in best if y[-1] != 0]
    return max(found, key=lambda pair: pair[1])


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


def mean_of_chrf(hypotheses, references):
    return np.mean([chrf([h], [r]) for h, r in zip(hypotheses, references, strict=True)])


WRONG = """
alpha_of_a_tie
    (5 + length) / (5 + other_length) -> length / other_length || (5 + length) / 6
nucleus
    before < p -> np.cumsum(falling) <= p && kept.sum() -> max(kept.sum(), 1e-9)
        || the last one kept
    / kept.sum() -> || sum to 1
exact_search
    greedy || log-probability
    beam_of_five || likelier
    tries_all || times; only
chrf
    mean_of_chrf || summed over the corpus
"""
