"""Padding and causal masks (section 3.2.3): boolean, True where attention is allowed.

They broadcast to scores (B, H, T, S) and are combined with ``&``. Layers without scores, recurrent
ones and convolutions, take a mask of tokens, (B, T).
"""

from minitransformer.core.backend import array_namespace
from minitransformer.core.twins import twinned


@twinned
def padding_mask(ids, pad_id=0):
    """(B, 1, 1, S) from ids (B, S): every query may look at every real token, never at padding."""
    return (ids != pad_id)[:, None, None, :]


@twinned
def causal_mask(ids):
    """(1, 1, T, T) from ids (B, T): position t may look at positions up to t, never ahead."""
    position = array_namespace(ids).arange(ids.shape[1])
    return (position[None, :] <= position[:, None])[None, None]


def window_mask(ids, window):
    """(1, 1, T, T) from ids (B, T): position t may look as far as ``window`` to either side."""
    position = array_namespace(ids).arange(ids.shape[1])
    behind = position[:, None] - position[None, :]  # (T, T)
    return ((-window <= behind) & (behind <= window))[None, None]


def check_one_sequence(query, key):
    """Raise unless there are as many keys as queries, (B, H, T, K), of which causal ones are."""
    if query.shape[2] != key.shape[2]:
        raise ValueError(
            f"causal=True needs as many keys as queries; there are {key.shape[2]} and "
            f"{query.shape[2]}"
        )


def check_token_mask(mask, shape):
    """Raise unless ``mask`` is None or a boolean array of that shape, (B, T)."""
    if mask is None:
        return
    if mask.dtype != bool:
        raise TypeError(f"the mask must be boolean, True at tokens; its dtype is {mask.dtype}")
    if mask.shape != shape:
        raise ValueError(f"the mask has shape {mask.shape}; the batch needs one of {shape}")
