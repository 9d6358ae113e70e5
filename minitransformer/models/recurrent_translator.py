"""The recurrent translator: a GRU reads the source, and another one says the target.

With a fixed vector (Sutskever, Vinyals and Le 2014; Cho et al. 2014) the encoder's last state m is
all that the decoder knows of the source. The decoder begins with it and, as in Cho et al., is given
it at every step:

    s_0 = tanh(m W_0)        s_t = GRU([g_t ; m], s_{t−1})        y_t = tanh(s_t W)

With additive attention (Bahdanau, Cho and Bengio 2015) two GRUs read the source, one from each end.
The decoder begins with their last states m, and looks at their states h_1 … h_S at every step:

    s_0 = tanh(m W_0)        s_t = GRU(g_t, s_{t−1})
    c_t = Attention(s_t, h, h)        y_t = tanh([s_t ; c_t] W)

g_t is the embedding of the word just said. The order is that of Luong, Pham and Manning (2015): the
state first, then what it looks at. Bahdanau et al. ask with s_{t−1}, before the step, and give c_t
to the GRU. So their states know where the model has looked, but attention stands in the loop over
time, forward and backward. Here no state depends on any c: the GRU takes all steps in one call, and
all T queries are asked at once.

Derivation. What is used twice is given the sum of two gradients: a state in y_t and as a query, the
encoder's states as keys and as values. A fixed vector is used T + 1 times:

    ds_t = its part of d[s_t ; c_t] + dquery_t        dh = dkeys + dvalues
    dm = that through s_0 + Σ_t its part of d[g_t ; m]

``B`` batch, ``S`` source length, ``T`` target length, ``D`` d_model, ``K`` d_hidden.
"""

from dataclasses import dataclass
from typing import ClassVar

from minitransformer.core.backend import array_namespace
from minitransformer.core.errors import InputError
from minitransformer.core.module import Module
from minitransformer.core.settings import one_of
from minitransformer.layers.additive_attention import AdditiveAttention
from minitransformer.layers.bidirectional import Bidirectional
from minitransformer.layers.dropout import dropout, dropout_backward
from minitransformer.layers.gru import GRU
from minitransformer.layers.linear import Linear
from minitransformer.layers.tanh import tanh, tanh_backward
from minitransformer.models.encoder_decoder import EncoderDecoder, tied_embeddings
from minitransformer.models.token_config import TranslatorConfig


@dataclass(frozen=True)
class RecurrentTranslatorConfig(TranslatorConfig):
    """The sizes of a recurrent translator.

    Attributes:
        d_hidden: width of each GRU's state.
        attention: ``"additive"``, with an encoder that reads from both ends and a hidden layer of
            d_model units that scores; or ``"none"``, a fixed vector.

    The others are those of every TranslatorConfig; dropout is on embeddings and on what the output
    projection is given.
    """

    kind: ClassVar[str] = "recurrent"

    d_hidden: int = 512
    attention: str = one_of(("additive", "none"), "additive")

    def num_parameters(self):
        d, k = self.d_model, self.d_hidden

        def gru(d_in):
            return 3 * k * (d_in + k + 2)

        if self.attention == "none":
            rest = gru(d) + gru(d + k) + (k + 1) * k + (k + 1) * d
        else:
            scores = 3 * k * d + d
            rest = 3 * gru(d) + (2 * k + 1) * k + scores + (3 * k + 1) * d
        return self.num_embedded() + rest


class TanhLinear(Module):
    """tanh(x W + b), of what Linear is given."""

    def __init__(self, d_in, d_out, rng):
        self.linear = Linear(d_in, d_out, rng)

    def forward(self, x):
        y, linear_cache = self.linear.forward(x)  # (..., D_out)
        y, tanh_cache = tanh(y)
        return y, (tanh_cache, linear_cache)

    def backward(self, dy, cache):
        tanh_cache, linear_cache = cache
        dy = tanh_backward(dy, tanh_cache)
        return self.linear.backward(dy, linear_cache)  # (..., D_in)


class RecurrentTranslator(EncoderDecoder):
    """Built from a RecurrentTranslatorConfig; arguments as for :class:`Model`.

    ``attention`` is None where there is a fixed vector.
    """

    Config: ClassVar[type] = RecurrentTranslatorConfig
    decoding: ClassVar[str] = "minitransformer.decoding.recurrent:RecurrentDecoder"

    def build(self, config, rng):
        d, k = config.d_model, config.d_hidden
        self.source_embedding, self.target_embedding, projection = tied_embeddings(config, rng)
        if config.attention == "none":
            self.encoder = GRU(d, k, rng)
            self.bridge = TanhLinear(k, k, rng)
            self.decoder = GRU(d + k, k, rng)
            self.attention = None
            self.combine = TanhLinear(k, d, rng)
        else:
            self.encoder = Bidirectional(GRU, d, k, rng)
            self.bridge = TanhLinear(2 * k, k, rng)
            self.decoder = GRU(d, k, rng)
            self.attention = AdditiveAttention(k, 2 * k, d, rng)
            self.combine = TanhLinear(3 * k, d, rng)
        self.output_projection = projection

    def encode(self, source, source_mask, rng=None):
        """The memory of source ids (B, S): m (B, K), or h (B, S, 2K) and m (B, 2K)."""
        x, embed_cache = self._embed(self.source_embedding, source, None, rng)
        (h, m), encoder_cache = self.encoder.forward(x, mask=source_mask[:, 0, 0])
        return ((h, m) if self.attention else m), (embed_cache, encoder_cache)

    def encode_backward(self, dmemory, cache):
        embed_cache, encoder_cache = cache
        if self.attention:
            dx = self.encoder.backward(dmemory, encoder_cache)
        else:
            dx, _ = self.encoder.backward((None, dmemory), encoder_cache)
        self._embed_backward(self.source_embedding, dx, None, embed_cache)

    def decode(self, target, memory, source_mask, rng=None):
        """The decoder's output y (B, T, D) for target ids (B, T), given the source's memory."""
        h, m = memory if self.attention else (None, memory)
        x, embed_cache = self._embed(self.target_embedding, target, None, rng)
        if not self.attention:
            x = beside_each(x, m)  # (B, T, D + K)
        first, bridge_cache = self.bridge.forward(m)  # (B, K)
        (s, _), decoder_cache = self.decoder.forward(x, first)  # (B, T, K)
        attention_cache = None
        if self.attention:
            c, attention_cache = self.attention.forward(s, h, h, source_mask[:, 0])  # (B, T, 2K)
            s = array_namespace(s).concatenate([s, c], axis=-1)  # (B, T, 3K)
        y, combine_cache = self.combine.forward(s)  # (B, T, D)
        y, dropout_cache = dropout(y, self.config.dropout, rng)
        caches = (embed_cache, bridge_cache, decoder_cache, attention_cache, combine_cache)
        return y, (*caches, dropout_cache)

    def decode_backward(self, dy, cache):
        """Gradients of the memory: dm (B, K), or dh (B, S, 2K) and dm (B, 2K)."""
        *caches, dropout_cache = cache
        embed_cache, bridge_cache, decoder_cache, attention_cache, combine_cache = caches
        dy = dropout_backward(dy, dropout_cache)
        ds = self.combine.backward(dy, combine_cache)
        if self.attention:
            k = self.config.d_hidden
            ds, dc = ds[..., :k], ds[..., k:]  # (B, T, K), (B, T, 2K)
            dquery, dkeys, dvalues = self.attention.backward(dc, attention_cache)
            ds = ds + dquery
        dx, dfirst = self.decoder.backward((ds, None), decoder_cache)
        dm = self.bridge.backward(dfirst, bridge_cache)
        if not self.attention:
            d = self.config.d_model
            dx, dm = dx[..., :d], dm + dx[..., d:].sum(axis=1)  # (B, T, D), (B, K)
        self._embed_backward(self.target_embedding, dx, None, embed_cache)
        return (dkeys + dvalues, dm) if self.attention else dm

    def cross_attention(self, decode_cache):
        if not self.attention:
            raise InputError(
                "a recurrent model with attention='none' has no attention to look into: "
                "its decoder knows one vector of the whole source"
            )
        *_, attention_cache, _, _ = decode_cache
        weights = self.attention.weights(attention_cache)  # (B, T, S)
        return weights[None, :, None]  # (1, B, 1, T, S)


def beside_each(x, m):
    """m (B, K) to the right of each row of x (B, T, D): (B, T, D + K)."""
    xp = array_namespace(x)
    repeated = xp.broadcast_to(m[:, None], (*x.shape[:-1], m.shape[-1]))  # (B, T, K)
    return xp.concatenate([x, repeated], axis=-1)
