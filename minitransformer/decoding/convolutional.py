"""The convolutional decoder one position at a time: a layer sees k positions, so it keeps k − 1.

Keys and values of the source are made once for each layer's attention. Of what was said, a
hypothesis keeps the last (k − 1) δ inputs of each convolution, δ its dilation, and at first the
zeros that stand before a sequence. So a step costs the same however much was said. Choosing
hypotheses copies those few inputs.
"""

from minitransformer.decoding.states import State
from minitransformer.models.convolutional_translator import ROOT_HALF


class ConvolutionalDecoder(State):
    """As :class:`IncrementalDecoder`, of a ConvolutionalTranslator."""

    def __init__(self, model, source):
        mask = model.source_mask(source)  # (N, 1, 1, S)
        (keys, values), _ = model.encode(source, mask)  # (N, S, D) each
        memories = [attention.keys_and_values(keys, values) for attention in model.attention]
        before = [layer.convolution.zeros_before(keys[:, :1]) for layer in model.decoder]
        super().__init__(model, (memories, mask), before)

    def step(self, ids):
        """Logits (N, W, V) of what follows when each hypothesis goes on with one of ids (N, W).

        Raises:
            ValueError: there is no such position.
        """
        model, (memories, mask) = self.model, self.source
        x = g = self.embed(ids, model.target_positions)  # (N, W, D)
        said = []
        layers = zip(model.decoder, model.attention, memories, self.said, strict=True)
        for layer, attention, memory, before in layers:
            h, before = layer.step(x, before)
            c = attention.attend(h + g, *memory, mask)
            x = (x + (h + c) * ROOT_HALF) * ROOT_HALF
            said.append(before)
        self.said = said
        y, _ = model.last.forward(x)
        return self.logits(y)
