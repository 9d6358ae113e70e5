"""The layers of the paper, and those that attention replaced, one file each: the pair ``f`` and
``f_backward``, then a thin Module.

    y, cache = f(x, ...)            forward returns what backward needs
    dx, ... = f_backward(dy, cache)

The functions are pure: nothing is kept on the side and no input is written to, so a layer may be
used twice, a weight shared and a cache dropped. ``B`` batch, ``T`` and ``S`` lengths of queries and
keys, ``D`` d_model, ``H`` heads, ``K`` head width, ``F`` feed-forward width, ``V`` vocabulary; a
gradient is named after what it belongs to, ``dx`` for ``x``, and has its shape.
"""
