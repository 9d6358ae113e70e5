"""Rotary positions (Su et al. 2021): queries and keys are turned by an angle for each position.

    (y_a)   (cos tω_i  −sin tω_i) (x_a)
    (y_b) = (sin tω_i   cos tω_i) (x_b)        ω_i = 10000^(−2i/K)

for pair i of the features of a head, at position t. With R_t for all these rotations at once,
q_t · k_s becomes (R_t q_t) · (R_s k_s) = q_t · R_{s−t} k_s: a score depends on how far apart two
tokens are, and on no position itself. Nothing is added to x, and values are not turned.

Derivation. y = R_t x is linear, so dx = R_tᵀ dy; the transpose of a rotation turns back:

    dx_a =  cos tω_i dy_a + sin tω_i dy_b
    dx_b = −sin tω_i dy_a + cos tω_i dy_b

Two conventions say which features a pair is: ``"neighbours"``, (0, 1), (2, 3), …, as in the paper,
and ``"halves"``, (0, K/2), (1, K/2 + 1), …, in which many weights are published. Weights trained
in one serve in the other once the columns of W_q and W_k are put in its order, within each head and
in both alike: :func:`to_halves` and :func:`to_neighbours`. A score is a sum over pairs and does not
ask for their order. Whoever forgets it sees nothing at position 0, where no angle is but 0.
"""

import numpy as np

from minitransformer.core.backend import array_namespace, like
from minitransformer.core.errors import require_one_of
from minitransformer.core.module import Module
from minitransformer.core.twins import twinned
from minitransformer.layers.positional_encoding import rows

FIRST = 1024  # positions that a table has at first
PAIRS = {"neighbours": -1, "halves": -2}  # which axis is the 2 where K features are K/2 pairs


@twinned
def rotary_table(length, head_width, base=10000.0):
    """cos tω_i and sin tω_i, (length, 2, K/2) float64 on the host.

    Raises:
        ValueError: head_width is odd, so that a feature would lack its partner.
    """
    if head_width % 2:
        raise ValueError(f"head_width={head_width} must be even: features are turned in pairs")
    frequency = base ** (-np.arange(0, head_width, 2) / head_width)  # (K/2,)
    angle = np.arange(length)[:, None] * frequency  # (T, K/2)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)  # (T, 2, K/2)


@twinned
def rotary(x, table, pairs="neighbours", start=0):
    """Each pair of features turned by the angle of its position.

    Args:
        x: queries or keys, (B, H, T, K).
        table: :func:`rotary_table`, of T + start positions or more.
        pairs: ``"neighbours"`` or ``"halves"``.
        start: how many positions went before, as in decoding.

    Returns:
        y (B, H, T, K) and the cache for the backward.

    Raises:
        ValueError: there is no such convention, or the table has too few positions.
    """
    require_one_of(PAIRS, "pairs", pairs)
    angles = rows(table, start, x.shape[-2])  # (T, 2, K/2)
    cos, sin = angles[:, 0], angles[:, 1]  # (T, K/2)
    return turned(x, cos, sin, pairs), (cos, sin, pairs)


@twinned
def rotary_backward(dy, cache):
    """Gradient dx (B, H, T, K): dy turned back."""
    cos, sin, pairs = cache
    return turned(dy, cos, -sin, pairs)


def turned(x, cos, sin, pairs):
    """x (..., T, K) with each pair of features turned by the angle of this cosine and sine."""
    half = x.shape[-1] // 2
    if pairs == "neighbours":
        a, b = x[..., 0::2], x[..., 1::2]  # (..., T, K/2)
    else:
        a, b = x[..., :half], x[..., half:]  # (..., T, K/2)
    both = [a * cos - b * sin, a * sin + b * cos]
    y = array_namespace(x).stack(both, axis=PAIRS[pairs])  # (..., T, K/2, 2) or (..., T, 2, K/2)
    return y.reshape(x.shape)  # (..., T, K)


def to_halves(weight, num_heads):
    """W_q or W_k (D, H K) of neighbouring pairs, its columns as ``"halves"`` needs them."""
    return _columns(weight, (num_heads, -1, 2))


def to_neighbours(weight, num_heads):
    """The inverse of :func:`to_halves`."""
    return _columns(weight, (num_heads, 2, weight.shape[-1] // num_heads // 2))


def _columns(weight, axes):
    return weight.reshape(len(weight), *axes).swapaxes(-1, -2).reshape(weight.shape)


class Rotary(Module):
    """Turns queries and keys, by a table that grows with the texts, up to ``max_length`` positions.

    Args:
        max_length: how many positions there are.
        head_width: K.
        pairs, base: as for :func:`rotary` and :func:`rotary_table`.
    """

    def __init__(self, max_length, head_width, *, pairs="neighbours", base=10000.0):
        self.made_of, self.head_width = (max_length, head_width, base), head_width
        self.table = self._table(min(max_length, FIRST)).astype(np.float32)
        self.pairs = pairs

    def _table(self, length):
        _, head_width, base = self.made_of
        return rotary_table(length, head_width, base)

    def constants_to(self, device=None, dtype=None):
        # Made anew, because widening a float32 table to float64 would keep its rounding.
        table = self._table(len(self.table)).astype(dtype or self.table.dtype)
        self.table = like(table, self.table) if device is None else device.asarray(table)

    def forward(self, x, start=0):
        end = min(start + x.shape[-2], self.made_of[0])
        if end > len(self.table):
            table = self._table(min(self.made_of[0], max(end, 2 * len(self.table))))
            self.table = like(table.astype(self.table.dtype), self.table)
        return rotary(x, self.table, self.pairs, start)

    def backward(self, dy, cache):
        return rotary_backward(dy, cache)
