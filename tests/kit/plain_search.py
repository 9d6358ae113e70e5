"""Searches as their definitions say: every prefix recomputed, every sentence by itself."""

import numpy as np
from rounding import additions_of, assert_but_for_rounding

from minitransformer import CPU, Transformer, TransformerConfig
from minitransformer.core.backend import to_host
from minitransformer.data.text.vocabulary import BOS, EOS, PAD

V = 9
SENTENCES = [[7, 4, 8, 5, EOS], [6, 6, EOS], [EOS]]  # the last without any text
SOURCE = np.array([ids + [PAD] * (5 - len(ids)) for ids in SENTENCES])
LIMITS = [20, 16, 12]  # 2 S + 10


def small_model(norm="pre", seed=0, *, words=V, device=CPU, dtype=np.float32, max_length=40):
    """A model with a mind: its translations differ, and end at many lengths or not at all."""
    sizes = dict(d_model=8, num_heads=2, d_ff=12, num_encoder_layers=2, num_decoder_layers=2)
    config = TransformerConfig(V, words, norm=norm, tying="none", max_length=max_length, **sizes)
    model = Transformer(config, seed)
    rng = np.random.default_rng(seed)
    model.flat.data += 0.2 * rng.standard_normal(model.flat.data.size)
    model.output_projection.weight.data[EOS] *= 2
    model.to(device, dtype)
    # Sinusoids in so few columns are much alike, and the model would say one word for ever.
    table = model.positional_encoding.table
    table[:] = device.asarray(4 * rng.standard_normal(table.shape), dtype)
    return model


def constant_model(device=CPU, **probabilities):
    """A model that gives every word the same probability at all times."""
    p = [probabilities.get(word, 1e-9) for word in ("pad", "unk", "bos", "eos", "four")]
    model = small_model(words=len(p))
    model.decoder.norm.gamma.data[:] = 0
    model.decoder.norm.beta.data[:] = 1
    model.output_projection.weight.data[:] = np.log(p)[:, None] / model.config.d_model
    return model.to(device)


class Prefixes:
    """What a state gives: all that was said is kept, and the whole model is asked at each step."""

    def __init__(self, model, source):
        self.model, self.source = model, source
        self.said = np.zeros((len(source), 1, 0), int)  # (N, W, t)

    def step(self, ids):
        self.said = np.concatenate([self.said, ids[..., None]], axis=-1)
        count, width, length = self.said.shape
        source = self.source.repeat(width, axis=0)
        logits, _ = self.model.forward(source, self.said.reshape(-1, length))
        return to_host(logits)[:, -1].reshape(count, width, -1)

    def select(self, parents):
        self.said = np.take_along_axis(self.said, parents[..., None], axis=1)

    def keep(self, sentences):
        self.source, self.said = self.source[sentences], self.said[sentences]


def log_p(model, source, prefixes):
    """log P of each word at each position (n, T, V) of n prefixes of one length, all recomputed."""
    target = np.array([(BOS, *words) for words in prefixes])
    logits = to_host(model.forward(np.array([source] * len(target)), target)[0])
    result = logits.astype(np.float64)
    result -= np.log(np.exp(result).sum(axis=-1, keepdims=True))
    result[..., [PAD, BOS]] = -np.inf
    return result


def log_p_of(model, source, words):
    return log_p(model, source, [words[:-1]])[0, range(len(words)), words].sum()


def said(hypothesis):
    return (*hypothesis.ids, EOS) if hypothesis.finished else tuple(hypothesis.ids)


def plain_greedy(model, source, limit, alpha=0.6):
    """(words, score)."""
    words = ()
    while len(words) < limit and EOS not in words:
        words = (*words, int(log_p(model, source, [words])[0, -1].argmax()))
    return words, log_p_of(model, source, words) / ((5 + len(words)) / 6) ** alpha


def plain_beam_search(model, source, limit, beam_size=4, alpha=0.6, n_best=1):
    """[(words, score)] as beam.py describes it, to the last step and without any array."""
    beam, finished = [((), 0.0)], []  # words and their log P
    for _ in range(limit):
        if not beam:
            break
        gains = log_p(model, source, [words for words, _ in beam])[:, -1]
        extensions = [
            ((*words, word), total + gain)
            for (words, total), gains_of_one in zip(beam, gains, strict=True)
            for word, gain in enumerate(gains_of_one)
        ]
        best = sorted(extensions, key=lambda extension: -extension[1])[:beam_size]
        finished += [end for end in best if end[0][-1] == EOS]
        beam = [prefix for prefix in best if prefix[0][-1] != EOS]

    def ranked(ends):
        scored = [(words, total / ((5 + len(words)) / 6) ** alpha) for words, total in ends]
        return sorted(scored, key=lambda end: -end[1])

    return (ranked(finished) + ranked(beam))[:n_best]


def assert_found(model, hypotheses, expected):
    """That hypotheses say what [(words, score)] says."""
    assert [said(h) for h in hypotheses] == [words for words, _ in expected]
    scores = [h.score for h in hypotheses], [score for _, score in expected]
    assert_but_for_rounding(*as_of(model, *scores), additions_of(model))


def as_of(model, *numbers):
    """Numbers of Python in the type in which the model computed them."""
    return [np.array(each, model.flat.data.dtype) for each in numbers]
