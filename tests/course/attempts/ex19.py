"""Attempts at exercise 19."""

CARRIED = "np.where(mask[:, t, None], f * h + (1 - f) * n, h)"
AT_PADDING = "at padding the state stays what it was"
VALUES = "np.abs(z + (1 - z) * np.asarray(eigenvalues))"

WRONG = {
    "reach": [
        ({"np.zeros": "np.ones"}, "dy must be 0 before the last step"),
        ({"return shape[1] - 1": "return shape[1]"}, "is 0 for the last step itself"),
    ],
    "gated_norm": [
        ({VALUES: "(z + (1 - z) * np.abs(eigenvalues))"}, "the sign of λ counts"),
        ({"np.abs(": "("}, "take | | before the maximum"),
        ({f"{VALUES}.max() ** k": "z**k"}, "the gate's path is not the only one"),
        ({" ** k": ""}, "its k-th power"),
        ({VALUES: "np.abs(eigenvalues)"}, "z I + (1 − z) U"),
    ],
    "coupled_cell": [
        ({"[o * shown, f * c + (1 - f) * g]": "[f * c + (1 - f) * g, o * shown]"}, "with h first"),
        ({"tanh(f * c + (1 - f) * g)": "tanh(f * c + g)",
          "f * c + (1 - f) * g]": "f * c + g]"}, "the input gate is 1 − f"),
    ],
    "coupled_cell_backward": [
        ({"(c - g)": "c"}, "WRONG  da", "right  dc"),  # as in an LSTM: f stands twice
        ({" + dh * o * (1 - shown**2)": ""}, "WRONG  dc"),
        ({"= dc_new + dh": "= dh"}, "the second half of dstate, is left out"),
    ],
    "one_gate": [
        ({CARRIED: "f * h + (1 - f) * n"}, AT_PADDING),
        ({"n, h)": "n, 0)"}, AT_PADDING),
        ({" * mask[:, :, None]": ""}, "y is not 0 at padding"),
    ],
    "one_gate_backward": [
        ({"w_hidden.T, dh)": "w_hidden.T, 0)"}, "WRONG  dh0"),
        ({"dnew * f + da": "da"}, "WRONG  dh0"),
        ({" + da @ w_hidden.T": ""}, "what is carried from step to step through"),
        ({"dh + dy[:, t], 0)": "dy[:, t], 0)"}, "step to step"),
        ({"dw_hidden +=": "dw_hidden ="}, "Only dw_hidden is wrong"),
    ],
}
