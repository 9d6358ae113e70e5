"""What a search asks for the next token: a state of N sentences and all their hypotheses have said.

    state = decoder_for(model, source)
    logits = state.step(ids)          the last token of each hypothesis (N, W) in, (N, W, V) out
    state.select(parents)             which hypotheses of each sentence go on, (N, new W)
    state.keep(sentences)             which sentences go on

A model names, in ``decoding``, a state that keeps what does not change from step to step. Without
one everything is worked out anew at each step, as it is while somebody stands in for layers, so
that whole layers are called.
"""

from functools import cached_property

from minitransformer.core.backend import array_namespace
from minitransformer.core.twins import stands_in
from minitransformer.layers.linear import linear
from minitransformer.layers.token_ids import ids_checked_before
from minitransformer.models.registry import imported


def decoder_for(model, source):
    """The state of a translation at its beginning.

    Args:
        model: an EncoderDecoder.
        source: ids (N, S), padded with ``config.pad_id``; on the host or the model's device.

    Raises:
        ValueError, TypeError: as for :meth:`EncoderDecoder.forward`.
    """
    return _class_for(model, "minitransformer.decoding.whole:WholeDecoder")(model, source)


def text_decoder_for(model):
    """The decoder of a text at its beginning; arguments as for :class:`WholeTextDecoder`."""
    return _class_for(model, "minitransformer.decoding.whole:WholeTextDecoder")(model)


def _class_for(model, whole):
    # Not inherited: a subclass may have other layers, and would be searched wrongly in silence.
    named = vars(type(model)).get("decoding", whole)
    return imported(named if stands_in() is None else whole)


class State:
    """What all states are; a subclass says what is kept at the beginning, and how to ``step``.

    Args:
        model: an EncoderDecoder.
        source: what hypotheses of a sentence share: arrays (N, ...), in tuples or lists.
        said: what each hypothesis has of its own: arrays (N, W, ...), W = 1 at first.
    """

    def __init__(self, model, source, said):
        self.model = model
        self.source = source
        self.said = said
        self.position = 0

    def embed(self, ids, positions=None):
        """What a decoder is given, (N, W, D), of ids (N, W), all at the next of the positions.

        Ids on a device are not checked, which would wait for it.

        Raises:
            ValueError: there is no such position.
        """
        with ids_checked_before():
            x, _ = self.model.target_embedding.forward(ids[:, :, None])  # (N, W, 1, D)
        if positions:
            x = positions.step(x, self.position)
        self.position += 1
        return x[:, :, 0]

    def logits(self, y):
        """Logits (N, W, V) from the decoder's output y (N, W, D)."""
        logits, _ = linear(y, self._output_weight)
        return logits

    @cached_property
    def _output_weight(self):
        return output_weight(self.model)

    def select(self, parents):
        """Make hypothesis w of sentence n the one that was ``parents[n, w]``, (N, new W)."""
        sentences = array_namespace(parents).arange(len(parents))[:, None]  # (N, 1)
        self.said = each(self.said, lambda x: x[sentences, parents])

    def keep(self, sentences):
        """Go on with some sentences only, given by their numbers 0 … N − 1 on the device."""
        self.source, self.said = each((self.source, self.said), lambda x: x[sentences])


def each(kept, change):
    """``change(x)`` for each array x, however deep in tuples and lists, in tuples."""
    if isinstance(kept, tuple | list):
        return tuple(each(part, change) for part in kept)
    return change(kept)


def output_weight(model):
    """The matrix (D, V) that makes logits, as a copy.

    A step has few rows, and for those the BLAS is slow at reading a matrix across its rows.
    """
    return model.output_projection.weight.data.T.copy()
