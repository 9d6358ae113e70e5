"""What a search asks for the next token: a state of N sentences and all their hypotheses have said.

    state = decoder_for(model, source)
    logits = state.step(ids)          the last token of each hypothesis (N, W) in, (N, W, V) out
    state.select(parents)             which hypotheses of each sentence go on, (N, new W)
    state.keep(sentences)             which sentences go on

Any model that encodes and decodes has a state that works everything out anew, and a faster one if
there is a line for it here.
"""

from minitransformer.core.twins import stands_in
from minitransformer.decoding.convolutional import ConvolutionalDecoder
from minitransformer.decoding.incremental import IncrementalDecoder
from minitransformer.decoding.recurrent import RecurrentDecoder
from minitransformer.decoding.restricted import RestrictedDecoder
from minitransformer.decoding.whole import WholeDecoder

# By the kind of a model, what keeps what does not change from step to step.
STATES = {
    "transformer": IncrementalDecoder,
    "restricted": RestrictedDecoder,
    "convolution": ConvolutionalDecoder,
    "recurrent": RecurrentDecoder,
}


def decoder_for(model, source):
    """The state at the beginning; that of the model's kind, unless somebody stands in for layers.

    Args:
        model: an EncoderDecoder.
        source: ids (N, S), padded with ``config.pad_id``; on the host or the model's device.

    Raises:
        ValueError, TypeError: as for :meth:`EncoderDecoder.forward`.
    """
    state = STATES.get(model.config.kind, WholeDecoder) if stands_in() is None else WholeDecoder
    return state(model, source)
