"""The decoder of a restricted Transformer one position at a time, over the cache of a window.

The cache is that of the whole Transformer, a tree of nodes that never move. All nodes of a step
stand at the same position, so those that a new word sees, r positions back and its own, are those
of the last r + 1 steps that are its ancestors. Older nodes are forgotten, and what is left needs no
other mask: neither time nor memory of a step grows with what was said.
"""

from collections import deque

from minitransformer.decoding.incremental import IncrementalDecoder


class RestrictedDecoder(IncrementalDecoder):
    """As :class:`IncrementalDecoder`, of a RestrictedTransformer."""

    def __init__(self, model, source):
        super().__init__(model, source)
        self.widths = deque()  # nodes of each of the last r + 1 steps

    def step(self, ids):
        if len(self.widths) > self.model.config.window:
            count = self.widths.popleft()
            self.said = self.said[:, :, count:]  # the ancestors
            for nodes in self.nodes:
                nodes.forget(count)
        self.widths.append(ids.shape[1])
        return super().step(ids)
