"""Residual connection around a sublayer, with dropout and layer normalisation (sections 3.1, 5.4).

    post-norm, as in the paper:   y = LayerNorm(x + Dropout(Sublayer(x)))
    pre-norm:                     y = x + Dropout(Sublayer(LayerNorm(x)))

Post-norm normalises the sum, so the gradient meets a LayerNorm at every layer on its way down.
Pre-norm leaves the sum alone: one path from top to bottom multiplies the gradient by nothing, which
is why deep stacks train without a long warm-up (Xiong et al. 2020); it needs one more LayerNorm
after the last layer.

Derivation. z = x + Dropout(h) is a sum, and a sum hands its gradient to both terms unchanged:
dx = dz, and dh is dz through the dropout. As x also feeds the sublayer, the two gradients of x
are added by whoever owns the sublayer.
"""

from minitransformer.core.errors import require_one_of
from minitransformer.core.module import Module
from minitransformer.core.twins import twinned
from minitransformer.layers.dropout import dropout, dropout_backward
from minitransformer.layers.layer_norm import LayerNorm


@twinned
def residual(x, h, p=0.0, rng=None):
    """x + Dropout(h).

    Args:
        x: what went into the sublayer, (..., D).
        h: what came out of it, (..., D).
        p, rng: as for :func:`dropout`.

    Returns:
        z (..., D) and the cache for the backward.
    """
    h, cache = dropout(h, p, rng)
    return x + h, cache


@twinned
def residual_backward(dz, cache):
    """Gradients dx and dh, both of the shape of dz; without dropout one array for both."""
    return dz, dropout_backward(dz, cache)


class ResidualConnection(Module):
    """The two steps around a sublayer: ``enter`` before it, ``leave`` after it.

    Args:
        d_model: width D.
        norm: ``"post"`` or ``"pre"``.
        p: dropout probability on what the sublayer returns.
        epsilon: of the normalisation.
        normalisation: the class of it, which makes one of a width and an epsilon.

    Raises:
        ValueError: there is no such norm.
    """

    def __init__(self, d_model, *, norm="post", p=0.0, epsilon=1e-5, normalisation=LayerNorm):
        require_one_of(("post", "pre"), "norm", norm)
        self.norm = normalisation(d_model, epsilon=epsilon)
        self.pre_norm = norm == "pre"
        self.p = p

    def enter(self, x):
        """What the sublayer is given: LayerNorm(x) in pre-norm, x itself in post-norm."""
        return self.norm.forward(x) if self.pre_norm else (x, None)

    def leave(self, x, h, rng=None):
        """y from x and what the sublayer returned, h."""
        z, residual_cache = residual(x, h, self.p, rng)
        y, norm_cache = (z, None) if self.pre_norm else self.norm.forward(z)
        return y, (residual_cache, norm_cache)

    def leave_backward(self, dy, cache):
        """Gradients of the two arguments of ``leave``: dx past the sublayer, and dh."""
        residual_cache, norm_cache = cache
        dz = dy if self.pre_norm else self.norm.backward(dy, norm_cache)
        return residual_backward(dz, residual_cache)

    def enter_backward(self, dh, cache):
        """Gradient of x through the sublayer, to be added to the one past it."""
        return self.norm.backward(dh, cache) if self.pre_norm else dh
