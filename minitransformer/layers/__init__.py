"""The layers of the paper, those that attention replaced, those that came since, and those of
pictures, one file each: the pair ``f`` and ``f_backward``, then a thin Module.

    y, cache = f(x, ...)            forward returns what backward needs
    dx, ... = f_backward(dy, cache)

The functions are pure: nothing is kept on the side and no input is written to, so a layer may be
used twice, a weight shared and a cache dropped. ``B`` batch, ``T`` and ``S`` lengths of queries and
keys, ``D`` d_model, ``H`` heads, ``K`` head width, ``F`` feed-forward width, ``V`` vocabulary.
Pictures are (B, Y, X, C), everywhere: ``Y`` rows, ``X`` columns, ``C`` channels last, as features
are. A gradient is named after what it belongs to, ``dx`` for ``x``, and has its shape.
"""
