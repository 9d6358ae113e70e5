"""What a page is opened on: of its sentences the step at which the model is least sure.

Most steps of a trained model are all but certain, and there is little to see at them.
"""

import numpy as np

from minitransformer.core.backend import to_host
from minitransformer.data.text.vocabulary import BOS, EOS
from minitransformer.decoding import greedy
from minitransformer.layers.softmax import softmax

MOST = 12  # sentences that are looked at, the first ones


def least_sure(model, vocabulary, examples):
    """Where the probabilities of the next piece have the largest entropy, -Σ p log p.

    Returns:
        ``{"example": i, "step": t}``, both counted from 0; None where there is no text.
    """
    best = (-1.0, None)
    for i, text in enumerate(examples[:MOST]):
        ids = vocabulary.encode(text, model.config.max_length - 1)
        if ids:
            entropies = step_entropies(model, [*ids, EOS])
            t = int(entropies.argmax())
            best = max(best, (float(entropies[t]), {"example": i, "step": t}), key=lambda b: b[0])
    return best[1]


def step_entropies(model, source):
    """The entropy of what may come next, in nats, at each step of the translation of ``source``."""
    (hypothesis,) = greedy(model, np.array([source]))
    steps = len(hypothesis.ids) + hypothesis.finished
    target = [BOS, *hypothesis.ids][:steps]
    logits, _ = model.forward(np.array([source]), np.array([target]))  # (1, T, V)
    p, _ = softmax(to_host(logits)[0].astype(np.float64))  # (T, V)
    return -(p * np.log(np.maximum(p, np.finfo(p.dtype).tiny))).sum(axis=-1)
