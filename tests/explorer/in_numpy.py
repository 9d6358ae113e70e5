"""What the package computes of one sentence, by the names that the explorer gives it."""

from collections import defaultdict

import numpy as np

from minitransformer.layers import (
    attention,
    embedding,
    feed_forward,
    layer_norm,
    positional_encoding,
    residual,
)
from minitransformer.layers.softmax import softmax

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
}
# fmt: on


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
                self._watch(patch, module, f"{name}_backward", backward, self.gradients)
            self._watch_ways(patch)
            self._compute(model, **request)
        for values in self.gradients.values():
            values.reverse()

    def _compute(self, model, source, target, position, piece, off):
        logits, cache = model.forward(np.array([source]), np.array([target]))
        self.logits = logits[0]
        p, _ = softmax(self.logits)
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
