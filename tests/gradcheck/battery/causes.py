"""What the checker says of some of the wrong pairs, and what it must not say, to the letter."""

CAUSES = {  # the pair: what is said of one of its wrong gradients, and of none of them
    # dy
    "mean square error: dy is forgotten": ("dy is forgotten", "are wrong"),
    "square: dy comes in twice": ("dy is used twice", "are wrong"),
    "relu: the sign of dy is asked, not of x": ("not linear in dy", "dy is forgotten"),
    # Factors and sizes
    "square: the 2 is forgotten, with a batch of 2":
        ("a factor of 2 is missing, as of a square", "batch"),
    "fourth power, batch of 4, width 16: the 4 is forgotten, with a batch of 4":
        ("4 times too small", "batch"),
    "tanh far above zero: twice too large": ("2 times too large", "root"),
    "convolution of images: dw by the batch size":
        ("2 times too small: 2 is the batch size", "several"),
    "mean square error: not divided by the size":
        ("15 times too large: 15 is the number of entries of x", "several"),
    "average pooling, windows of 2: not divided by the window, with a batch of 2":
        ("several causes fit: 2 is the window", "size of axis"),
    "one-hot, times a number: a mean over classes":
        ("5 is the size of axis 1 of y", "axis 0"),
    # Elementwise functions
    "tanh: 1 − y for 1 − y²": ("it is dy times (1 − y); it should be dy times (1 − y²)", "at y"),
    "tanh: 1 − x² for 1 − y²": ("(1 − y²): x in place of y", "at y"),
    "tanh: tanh′ is taken at y": ("taken at y; it has to be taken at x", "times"),
    "sigmoid: 1 − y is left out": ("dy times y (1 − y): the factor (1 − y) is missing", "at y"),
    "exp: x for y": ("it is dy times x; it should be dy times y", "at y"),
    "log: times x for divided by x": ("upside down", "at y"),
    "leaky relu: no slope where x is negative":
        ("where x is negative it is zero and should not be", "mask"),
    "relu: dy passes where x is negative": ("the condition is the wrong way round", "dropout"),
    "silu: σ′ is left out": ("in `sigma(x)`", "times"),
    "cross-entropy: 1 is not subtracted at the label": ("(softmax − one-hot(labels))", "too"),
    # Sums, order, uses
    "embedding: the last position only": ("the last index of axis 1 of dy only", "is missing"),
    "broadcasting: db without the first step":
        ("the first index of axis 1 of dy is left out", "times"),
    "broadcasting: db is summed over one axis of two": ("still has to be summed", "keepdims"),
    "broadcasting: ds is not summed": ("summed over axis 2 with keepdims=True", "leading"),
    "matrix times itself: the right factor is forgotten":
        ("the path through `w` in `w @ w`", "times too"),
    "cumulative sum: forwards, not backwards": ("in the wrong order", "is missing"),
    "product: dx has x where z belongs": ("it is the gradient of z", "exchanged"),
    "embedding: the last of repeated ids wins":
        ("entries come more than once, and only one of them counts", "is missing"),
    "sums of logarithms, axis kept: every row gets the mean of dy":
        ("averaged over axis 0, before the sum", "missing"),
    "sums of logarithms: the last row is left out":
        ("zero where it should not be, all of them at 3 on axis 0, the last", "mask"),
    "logarithms of the four largest: another entry's condition":
        ("is an index or a condition on x wrong?", "dropout"),
    "gathering: the last of repeated indices wins":
        ("give to the same entry only one is left, as if overwritten", "mask"),
    # Softmax and norms
    "softmax, 4 × 4: summed over the batch":
        ("runs over axis 0; it has to run over axis 1", "is missing"),
    "softmax: w (1 − w), the Jacobian's diagonal alone":
        ("is taken to be h (1 − h), where z goes in and h comes out", "mask"),
    "batch norm: nothing through the mean": ("in `x.mean(0)`", "LayerNorm"),
    "broadcasting: s is forgotten in dx":
        ("dy is handed on as it is, the derivative is left out", "head"),
    "batch norm of images: γ, one for each channel, is forgotten":
        ("the factor `gamma` is forgotten", "head"),
    # Inside
    "two layers: tanh is passed over":
        ("the derivative of `np.tanh(x @ w1 + b1)`", "what is carried"),
    "two layers: z for h in dw2": ("in place of `h`", "derivative"),
    "two layers: tanh′ is taken at h": ("is taken at `np.tanh(x @ w1 + b1)`", "missing"),
    "linear, all sizes 4: ∗ for @": ("* where @ belongs", "several entries"),
    "prelu: all entries count, not x < 0": ("the condition, a mask, is forgotten", "derivative"),
    "tied embedding: only the output's use is there": ("through `table[ids]`", "symmetric"),
    "tied embedding: only the input's use": ("the path through `table.T`", "symmetric"),
    "attention pooling: softmax without its sum": ("are taken for constants", "Σ"),
    "gelu with tanh: the 3 of the cube is forgotten": ("lacks the exponent as a factor", "mask"),
    "x to the p: log x is forgotten": ("lacks the logarithm of its base", "mask"),
    "maximum over time: every step gets dy": ("every entry gets it all", "mask"),
    "two layers: dw1 is made with dh":
        ("the derivative of `np.tanh(x @ w1 + b1)`", "is taken"),
    # Time
    "rnn: dw is overwritten at each step": ("or overwritten, = for +=", "carried"),
    "linear recurrence: da of the last step only":
        ("at the last of 4 times only: are the others left out", "mask"),
    "rnn: the loop ends at step 1": ("is missing at the first of 5 times", "mask"),
    "rnn: no gradient from step to step":
        ("what is carried from step to step through `states[-1]` in `states[-1] @ u`", "mask"),
    "linear recurrence: a is forgotten on the way back":
        ("what is carried from step to step through `s` in `a * s` (line", "mask"),
    "gru cell: the path of z h is missing": ("the path through `h` in `z * h`", "dropout"),
    "attention, all sizes 4: p is not transposed":
        ("has to be transposed, or must not be", "is missing"),
    # Taps and windows
    "depthwise convolution: the taps are turned round": ("for w reversed along axis 0", "gain"),
    "convolution: the first tap is left out": ("`x[:, k : k + steps] @ w[k]`", "dropout"),
    "convolution: the last tap is left out": ("is missing at the last of 3 times", "dropout"),
    "convolution: the taps are turned round": ("for w reversed along axis 0", "gain"),
    "max-pooling of images: columns first within a window":
        ("is the index of the maximum wrong?", "dropout"),
    "maximum over time: that of a mean":
        ("every entry gets its share, and should go to the chosen one", "mask"),
}
