import math

import numpy as np
from exercise_files import functions_in, solution_of

chrf = functions_in(solution_of("ex14"))["chrf"]


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


GO_ON = "if len(prefix) < max_length:"

WRONG = r"""
alpha_of_a_tie
    (5 + length) / (5 + other_length) -> length / other_length || (5 + length) / 6
nucleus
    before < p -> np.cumsum(falling) <= p && kept.sum() -> max(kept.sum(), 1e-9) || last one kept
    / kept.sum() -> || sum to 1
exact_search
    prefix[-1] == 0 -> prefix[-1] * (len(prefix) < max_length) == 0
        && $GO_ON -> heap = []\n        $GO_ON || log-probability
    $GO_ON -> heap = heapq.nsmallest(5, heap)\n        $GO_ON || likelier
    tries_all || times; only
    return prefix -> return None || the sequence must be a tuple; it is None
chrf
    mean_of_chrf || summed over the corpus
"""
