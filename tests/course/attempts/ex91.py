WRONG = r"""
gain_of_gate
    np.sqrt(g) * points -> points || b has the variance g as well
    gate(np.sqrt(g) * points) ** 2 * weights).sum()
        -> gate(np.sqrt(g) * points) * weights).sum() ** 2 || b varies
    (high) < 1 -> (high) < 0.5 && (middle) < 1 -> (middle) < 0.5 || y has the variance g E
highway_gate
    gate * a + (1 - gate) * x -> gate * x + (1 - gate) * a || lets the new through and not x
    a, b = -> b, a = || a is the first half of h
    (1 - gate) * x -> x || it shuts for x
    (a - x) -> a || b stands in 1 − σ(b) as well
highway_gate_backward
    dy * (1 - gate)\n -> dy * gate\n || WRONG  dx
"""
