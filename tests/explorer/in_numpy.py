"""What the package computes of one sentence, by the names that the explorer gives it."""

from collections import defaultdict

import numpy as np

from minitransformer.data.text.vocabulary import EOS
from minitransformer.decoding import greedy
from minitransformer.layers import (
    alibi,
    attention,
    embedding,
    feed_forward,
    layer_norm,
    learned_positions,
    positional_encoding,
    residual,
    rms_norm,
    rotary,
    swiglu,
)
from minitransformer.layers.softmax import softmax
from minitransformer.models import sublayers

# Function of a module: what of its arguments and its result is a box, by the last part of its name;
# and what of its backward's is the gradient of one.
# fmt: off
WATCHED = {
    (embedding, "embedding"):
        (lambda given, y: {"embedding": y[0]}, lambda given, d: {"embedding": given[0]}),
    (positional_encoding, "positional_encoding"):
        (lambda given, y: {"positions": y[0]}, lambda given, d: {"positions": given[0]}),
    (layer_norm, "layer_norm"):
        (lambda given, y: {"norm": y[0]}, lambda given, d: {"norm": given[0]}),
    (attention, "scaled_dot_product_attention"):
        (lambda given, y: dict(query=given[0], key=given[1], value=given[2], heads=y[0]),
         lambda given, d: dict(query=d[0], key=d[1], value=d[2], heads=given[0])),
    (attention, "softmax"):
        (lambda given, y: {"scores": given[0], "weights": y[0]},
         lambda given, d: {"weights": given[0], "scores": d}),
    (attention, "multi_head_attention"):
        (lambda given, y: {"attention": y[0]},
         lambda given, d: {"attention": given[0], "other": d[1] + d[2]}),
    (feed_forward, "relu"):
        (lambda given, y: {"inner": given[0], "relu": y[0]},
         lambda given, d: {"relu": given[0], "inner": d}),
    (feed_forward, "feed_forward"):
        (lambda given, y: {"feed_forward": y[0]}, lambda given, d: {"feed_forward": given[0]}),
    (residual, "residual"):
        (lambda given, y: {"residual": y[0]}, lambda given, d: {"residual": given[0]}),
    (embedding, "unscaled_embedding"):
        (lambda given, y: {"embedding": y[0]}, None),
    (learned_positions, "learned_positions"):
        (lambda given, y: {"positions": y[0]}, lambda given, d: {"positions": given[0]}),
    (rms_norm, "rms_norm"):
        (lambda given, y: {"norm": y[0]}, lambda given, d: {"norm": given[0]}),
    (rotary, "rotary"):
        (lambda given, y: {"turned": y[0]}, lambda given, d: {"turned": given[0]}),
    (sublayers, "scaled_dot_product_attention"):
        (lambda given, y: {"heads": y[0]}, lambda given, d: {"heads": given[0]}),
    (alibi, "alibi_attention"):
        (lambda given, y: {"heads": y[0]}, lambda given, d: {"heads": given[0]}),
    (alibi, "softmax"):
        (lambda given, y: {"scores": given[0], "weights": y[0]}, None),
    (swiglu, "linear"):
        (lambda given, y: {"maps": y[0]}, lambda given, d: {"maps": given[0]}),
    (swiglu, "silu"):
        (lambda given, y: {"silu": y[0]}, lambda given, d: {"silu": given[0]}),
    (swiglu, "dropout"):
        (lambda given, y: {"gated": given[0]}, lambda given, d: {"gated": d}),
}
# fmt: on
# The inputs of a model, by its kind.
INPUTS = {
    "transformer": ("source", "target"),
    "language-model": ("target",),
    "masked-language-model": ("source",),
}


class Watched:
    """Lists of what was computed, by the last part of its name, in the order of the forward.

    Attributes:
        states, gradients: dicts of lists of arrays.
        logits: (T, V).
        log_probability: log p of the piece.
        parameters: gradients by path.
        flow: (past the sublayer, through it) of each block, the last one first.
    """

    def __init__(self, monkeypatch, model, request):
        self.states, self.gradients = defaultdict(list), defaultdict(list)
        self.flow = []
        with monkeypatch.context() as patch:
            for (module, name), (forward, backward) in WATCHED.items():
                self._watch(patch, module, name, forward, self.states)
                if backward:
                    self._watch(patch, module, f"{name}_backward", backward, self.gradients)
            self._watch_ways(patch)
            if model.config.kind != "transformer":
                self._watch_sublayers(patch, model)
            self._compute(model, **request)
        for values in self.gradients.values():
            values.reverse()

    def _compute(self, model, position, piece, off, among=True, **ids):
        logits, cache = model.forward(
            *(np.array([ids[name]]) for name in INPUTS[model.config.kind])
        )
        self.logits = logits[0]
        p, _ = softmax(np.where(among, self.logits, -np.inf))
        self.log_probability = np.log(p[position, piece])
        dlogits = np.zeros_like(logits)
        dlogits[0, position] = -p[position]
        dlogits[0, position, piece] += 1
        self.dlogits = dlogits[0]
        model.zero_grad()
        model.backward(dlogits, cache)
        self.parameters = {path: p.grad.copy() for path, p in model.named_parameters()}

    @staticmethod
    def _watch(patch, module, name, boxes, into):
        function = getattr(module, name)

        def watched(*given, **options):
            result = function(*given, **options)
            for box, value in boxes(given, result).items():
                into[box].append(value[0])  # of a batch of one
            return result

        patch.setattr(module, name, watched)

    def _watch_ways(self, patch):
        connection = residual.ResidualConnection
        leave, enter = connection.leave_backward, connection.enter_backward

        def leave_backward(self_, dy, cache):
            past, dh = leave(self_, dy, cache)
            self.flow.append([past[0]])
            return past, dh

        def enter_backward(self_, dh, cache):
            through = enter(self_, dh, cache)
            self.flow[-1].append(through[0])
            return through

        patch.setattr(connection, "leave_backward", leave_backward)
        patch.setattr(connection, "enter_backward", enter_backward)

    def _watch_sublayers(self, patch, model):
        """Sublayers that are no pair of functions but modules."""
        for layer in model.stack.layers:
            attended, fed = layer.self_attention, layer.feed_forward
            if isinstance(attended, sublayers.SelfAttention):
                self._watch_module(patch, attended, "attention")
                for part in ("query", "key", "value"):
                    width = model.config.d_model // model.config.num_heads
                    self._watch_module(patch, getattr(attended, part), part, width)
            if isinstance(fed, sublayers.ActivatedFeedForward):
                self._watch_module(patch, fed, "feed_forward")
                self._watch_module(patch, fed.inner, "inner")
                part = fed.activation.__name__
                self._watch_module(patch, fed, part, None, "activation", "activation_backward")

    def _watch_module(
        self, patch, module, part, width=None, forward="forward", backward="backward"
    ):
        """With a width of heads what it gives is split into them."""
        forward_of, backward_of = getattr(module, forward), getattr(module, backward)

        def kept(x):
            return x if width is None else x.reshape(len(x), -1, width).swapaxes(0, 1)

        def watched(*given):
            y, cache = forward_of(*given)
            self.states[part].append(kept(y[0]))
            return y, cache

        def watched_backward(dy, cache):
            self.gradients[part].append(kept(dy[0]))
            return backward_of(dy, cache)

        patch.setattr(module, forward, watched)
        patch.setattr(module, backward, watched_backward)


def said(model, source):
    """The ids that greedy search says of a source, the end among them."""
    (hypothesis,) = greedy(model, np.array([source]))
    return [*hypothesis.ids, EOS] if hypothesis.finished else [*hypothesis.ids]


def log_probabilities(model, source, target):
    """log p (T, V) of all that may follow at each place of a target."""
    logits, _ = model.forward(np.array([source]), np.array([target]))
    return np.log(softmax(logits)[0][0])
