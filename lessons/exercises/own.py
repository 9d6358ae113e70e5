"""Your own Transformer: every function it is made of, for you to write. NumPy is all you need.

Copy this file to answers/own.py and replace each ``raise NotImplementedError`` by your own body, in
the order of the lessons or in any other. Extra helpers are welcome, here and in no other file: of
this one a run keeps a copy. The first part is a whole Transformer, the second, at the end, is what
came since, and what networks of pictures are made of. After each function:

    minitransformer check own                               which are right, and what is next
    minitransformer train toy --own answers/own.py          a translator that runs on them

Call the functions of this file by their names wherever one is made of others: ``feed_forward`` of
``linear``, ``relu`` and ``dropout``. While one of those is still a stub, the package's runs there.

A layer is a pair. ``y, cache = f(x, ...)`` puts into the cache, which looks as you like, what the
backward needs; ``f_backward(dy, cache)`` returns the gradient of the loss with respect to each
array, named by a ``d`` in front and of the shape of what it belongs to. Nothing writes to what it
is given (the three updates are the exceptions), and nothing is kept outside of the cache.

Shapes: B batch, S source length, T target length, D width, H heads, K head width, D / H, F inner
width of the feed-forward network, V vocabulary; (..., D) has any axes before the last. Where there
is dropout, ``rng`` is a NumPy generator, or None where nothing is to be dropped out.
"""

import math

import numpy as np

PAD, BOS, EOS = 0, 2, 3  # ids: padding, the start of a sentence and its end


def linear(x, weight, bias=None):
    """25 min, with its backward. The linear map (lesson 02).

        y = x W + b

    Args:
        x: (..., D_in).
        weight: W, (D_in, D_out).
        bias: b, (D_out,), or None for a map without one.

    Returns:
        y (..., D_out) and the cache.
    """
    raise NotImplementedError


def linear_backward(dy, cache):
    """Gradients dx (..., D_in), dweight (D_in, D_out) and dbias (D_out,), None without a bias.

    Hint: one W serves every row of x, whichever axes the rows lie along. How do the gradients of
    several uses become one? With all leading axes made one, (rows, D), it is one product.
    """
    raise NotImplementedError


def relu(x):
    """10 min, with its backward. The rectified linear unit (lesson 02).

        y = max(0, x)

    Args:
        x: any shape.

    Returns:
        y, of the shape of x, and the cache.
    """
    raise NotImplementedError


def relu_backward(dy, cache):
    """Gradient dx, of the shape of dy.

    Hint: the slope depends on x, not on dy.
    """
    raise NotImplementedError


def dropout(x, p=0.0, rng=None):
    """25 min, with its backward. Entries zeroed at random in training (lesson 02).

        keep = rng.random(x.shape, dtype=np.float32) >= p        y = x · keep / (1 − p)

    Draw exactly so, and nothing else from rng: then your training can be compared with the
    package's. Where p is 0 or rng is None, y is x, and nothing is drawn.

    Args:
        x: any shape.
        p: probability of zeroing an entry, 0 ≤ p < 1.
        rng: a NumPy generator, or None.

    Returns:
        y, of the shape of x, and the cache.
    """
    raise NotImplementedError


def dropout_backward(dy, cache):
    """Gradient dx, of the shape of dy.

    Hint: what was dropped out is not drawn again here.
    """
    raise NotImplementedError


def feed_forward(x, w_1, b_1, w_2, b_2, p=0.0, rng=None):
    """25 min, with its backward. The same network at every position (lesson 02).

        FFN(x) = Dropout(max(0, x W_1 + b_1)) W_2 + b_2

    Args:
        x: (..., D).
        w_1, b_1: (D, F) and (F,).
        w_2, b_2: (F, D) and (D,).
        p, rng: as for ``dropout``.

    Returns:
        y (..., D) and the cache.
    """
    raise NotImplementedError


def feed_forward_backward(dy, cache):
    """The gradients of x, w_1, b_1, w_2 and b_2, in this order, each of the shape of its array."""
    raise NotImplementedError


def softmax(x, mask=None):
    """25 min, with its backward. Softmax over the last axis, with a mask (lesson 04).

        w_i = exp(x_i) / Σ_j exp(x_j)

    the sum over the positions that are allowed. The others have the weight 0. In a row with nothing
    allowed all weights are 0.

    Args:
        x: scores (..., S). They may be as large as 9000, and exp(9000) is no number: what may be
            subtracted from a row without changing a weight?
        mask: boolean, broadcasts to the shape of x, True where it is allowed; None allows all.

    Returns:
        weights (..., S) and the cache.

    Hint: exp(−∞) is 0, but −∞ − (−∞) is NaN, and so is 0 / 0. Both come up in a row with nothing
    allowed.
    """
    raise NotImplementedError


def softmax_backward(dweights, cache):
    """Gradient dx of the scores, of the shape of dweights.

    Hint: x_k moves every weight of its row, not w_k alone: ∂w_i/∂x_k = w_i ([i = k] − w_k). What is
    the sum of dw_i ∂w_i/∂x_k over i?
    """
    raise NotImplementedError


def cross_entropy(logits, targets, smoothing=0.0, pad_id=0, num_tokens=None):
    """45 min, with its backward. Label-smoothed cross-entropy, the loss (lesson 04).

    At a position with the target t, p = softmax of the V logits, and smoothing ε:

        q_v = (1 − ε) [v = t] + ε / V        loss = −Σ_v q_v log p_v        nll = −log p_t

    Both are averaged over the positions whose target is not ``pad_id``; the others do not count.

    Args:
        logits: (..., V). They may be large, so take no logarithm of a probability.
        targets: integers (...).
        smoothing: ε, 0 ≤ ε < 1.
        pad_id: the target where there is none.
        num_tokens: what to divide the sums by; None for the count of real targets here. Where
            there is none at all, loss and nll are 0.

    Returns:
        (loss, nll), two scalars, and the cache: ``return (loss, nll), cache``.

    Hint: log p = z − log Σ exp z, and any number may be subtracted from a row of z first.
    """
    raise NotImplementedError


def cross_entropy_backward(dloss, cache):
    """Gradient dlogits (..., V) of the loss, of which dloss is the gradient: mostly 1, not always.

    Hint: for one position it is a difference of two distributions. Then the mean, and padding.
    """
    raise NotImplementedError


def embedding(ids, weight):
    """25 min, with its backward. A vector for each token (lesson 05).

        x = √D · E[ids]

    Args:
        ids: integers, of any shape (...).
        weight: E, (V, D).

    Returns:
        x (..., D) and the cache.
    """
    raise NotImplementedError


def embedding_backward(dx, cache):
    """Gradient dweight (V, D) alone, as ids have none.

    Hint: a word that stands at three positions is used three times. What does
    ``dweight[ids] += ...`` do with an id that comes up again?
    """
    raise NotImplementedError


def sinusoidal_encoding(length, d_model):
    """The table of sines and cosines that ``positional_encoding`` adds (lesson 06).

        PE[t, 2i] = sin(t / 10000^(2i/D))        PE[t, 2i + 1] = cos(t / 10000^(2i/D))

    Args:
        length: T, rows; t counts from 0.
        d_model: D, even.

    Returns:
        (T, D), float64.

    Hint: make the angles (T, D/2) first. Every angle has its sine and its cosine side by side.
    """
    raise NotImplementedError


def positional_encoding(x, table):
    """25 min, with its backward and ``sinusoidal_encoding``. Where a token stands (lesson 06).

        y = x + the first T rows of the table

    Args:
        x: (B, T, D).
        table: (max_length, D), with T ≤ max_length.

    Returns:
        y (B, T, D) and the cache, which may be None.
    """
    raise NotImplementedError


def positional_encoding_backward(dy, cache):
    """Gradient dx (B, T, D). The table is not trained and has none."""
    raise NotImplementedError


def layer_norm(x, gamma, beta, epsilon=1e-5):
    """45 min, with its backward. Layer normalisation over the last axis (lesson 07).

        μ = mean(x)    σ = √(mean((x − μ)²) + ε)    x̂ = (x − μ) / σ    y = γ x̂ + β

    Args:
        x: (..., D).
        gamma, beta: γ and β, (D,).
        epsilon: ε, for rows of equal entries.

    Returns:
        y (..., D) and the cache.
    """
    raise NotImplementedError


def layer_norm_backward(dy, cache):
    """Gradients dx (..., D), dgamma (D,) and dbeta (D,).

    Hint: γ stands outside of the normalisation, so go back through it first. Then x_j moves x̂_j
    directly, and all of its row through μ and through σ: three terms.
    """
    raise NotImplementedError


def padding_mask(ids, pad_id=0):
    """10 min. The keys that may be looked at: the real tokens (lesson 08).

    Args:
        ids: integers (B, S).
        pad_id: that of padding.

    Returns:
        boolean (B, 1, 1, S), True where attention is allowed.

    Hint: None as an index makes a new axis.
    """
    raise NotImplementedError


def causal_mask(ids):
    """10 min. The keys that a position may look at: itself and those before it (lesson 08).

    Args:
        ids: integers (B, T), of which only T matters.

    Returns:
        boolean (1, 1, T, T), True where the query in the row may look at the key in the column.

    Hint: compare the positions as a column with the positions as a row.
    """
    raise NotImplementedError


def scaled_dot_product_attention(query, key, value, mask=None, p=0.0, rng=None):
    """45 min, with its backward. The paper's equation 1 (lesson 08).

        Y = Dropout(softmax(Q Kᵀ / √K)) V

    with K the width of a query. It is made of ``softmax`` and ``dropout``.

    Args:
        query: Q, (B, H, T, K).
        key, value: (B, H, S, K).
        mask: boolean, broadcasts to (B, H, T, S), True where attention is allowed; None allows all.
        p, rng: as for ``dropout``.

    Returns:
        y (B, H, T, K) and the cache.

    Hint: ``math.sqrt`` gives a Python number; ``np.sqrt`` of one gives a float64, which turns
    arrays of float32 into float64.
    """
    raise NotImplementedError


def scaled_dot_product_attention_backward(dy, cache):
    """Gradients dquery (B, H, T, K), dkey and dvalue (B, H, S, K).

    Hint: write the forward as four lines, product, softmax, dropout, product, and go through them
    in reverse. For Y = A V they are dA = dY Vᵀ and dV = Aᵀ dY. Is that A the one after dropout?
    """
    raise NotImplementedError


def split_heads(x, num_heads):
    """10 min. Each head gets its own features (lesson 09).

    Feature k of head h is number h · K + k of the D.

    Args:
        x: (B, T, D).
        num_heads: H.

    Returns:
        (B, H, T, K).

    Hint: a reshape leaves all numbers in their order, so it can only cut one axis into two.
    """
    raise NotImplementedError


def merge_heads(x):
    """10 min. The inverse of ``split_heads`` (lesson 09).

    Args:
        x: (B, H, T, K).

    Returns:
        (B, T, D).
    """
    raise NotImplementedError


def multi_head_attention(
    query, key, value, w_query, w_key, w_value, w_output, num_heads, mask=None, p=0.0, rng=None
):
    """45 min, with its backward. Attention in H subspaces at once, without biases (lesson 09).

        MultiHead(Q, K, V) = Concat(head_1, …, head_H) W^O
                    head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V)

    The W_i^Q of all heads stand side by side in one W^Q. It is made of ``linear``, ``split_heads``,
    ``scaled_dot_product_attention`` and ``merge_heads``.

    Args:
        query: (B, T, D).
        key, value: (B, S, D).
        w_query, w_key, w_value, w_output: (D, D).
        num_heads: H.
        mask, p, rng: as for ``scaled_dot_product_attention``.

    Returns:
        y (B, T, D) and the cache.
    """
    raise NotImplementedError


def multi_head_attention_backward(dy, cache):
    """The gradients of query, key, value, w_query, w_key, w_value and w_output, in this order.

    Hint: the forward reversed, line by line. What is the backward of ``split_heads``?
    """
    raise NotImplementedError


def residual(x, h, p=0.0, rng=None):
    """10 min, with its backward. The residual connection (lesson 10).

        z = x + Dropout(h)

    Args:
        x: what went into a sublayer, (..., D).
        h: what came out of it, (..., D).
        p, rng: as for ``dropout``.

    Returns:
        z (..., D) and the cache.
    """
    raise NotImplementedError


def residual_backward(dz, cache):
    """Gradients dx and dh, both (..., D).

    Hint: a sum hands its gradient to both of its terms.
    """
    raise NotImplementedError


def encoder_layer(
    x,
    attention,
    attention_norm,
    network,
    network_norm,
    num_heads,
    mask=None,
    pre_norm=False,
    epsilon=1e-5,
    p=0.0,
    attention_p=0.0,
    hidden_p=0.0,
    rng=None,
):
    """45 min, with its backward. Self-attention, then the feed-forward network (lesson 11).

    Each of the two is the Sublayer of one residual connection, z = x + Dropout(h):

        post-norm, as in the paper:   y = LayerNorm(x + Dropout(Sublayer(x)))
        pre-norm:                     y = x + Dropout(Sublayer(LayerNorm(x)))

    Args:
        x: (B, S, D).
        attention: (w_query, w_key, w_value, w_output), each (D, D).
        attention_norm, network_norm: (gamma, beta) of the LayerNorm of either sublayer, (D,) each.
        network: (w_1, b_1, w_2, b_2), (D, F), (F,), (F, D) and (D,).
        num_heads: H.
        mask: boolean, broadcasts to (B, H, S, S); None allows all.
        pre_norm: whether it is pre-norm.
        epsilon: of both LayerNorms.
        p: dropout of what a sublayer returns.
        attention_p: dropout of the attention weights.
        hidden_p: dropout within the feed-forward network.
        rng: for all of them, in the order in which they come.

    Returns:
        y (B, S, D) and the cache.

    Hint: both sublayers are entered and left alike, and so are those of the decoder: a helper or
    two make four lines of many.
    """
    raise NotImplementedError


def encoder_layer_backward(dy, cache):
    """dx (B, S, D), then dattention, dattention_norm, dnetwork and dnetwork_norm.

    The last four are tuples like the arguments, (dw_query, dw_key, dw_value, dw_output) and so on.

    Hint: wherever the forward uses an array twice, the backward adds two gradients. How many times
    does a layer use its x, and what goes into its attention?
    """
    raise NotImplementedError


def decoder_layer(
    x,
    memory,
    self_attention,
    self_norm,
    cross_attention,
    cross_norm,
    network,
    network_norm,
    num_heads,
    mask=None,
    memory_mask=None,
    pre_norm=False,
    epsilon=1e-5,
    p=0.0,
    attention_p=0.0,
    hidden_p=0.0,
    rng=None,
):
    """45 min, with its backward. The encoder's layer with a second attention (lesson 11).

    Three sublayers: self-attention, cross-attention, whose keys and values are the memory, and the
    feed-forward network. The memory is the encoder's output and is not normalised here.

    Args:
        x: (B, T, D).
        memory: (B, S, D).
        self_attention, cross_attention: (w_query, w_key, w_value, w_output), each (D, D).
        self_norm, cross_norm, network_norm: (gamma, beta), (D,) each.
        network: (w_1, b_1, w_2, b_2).
        mask: of the self-attention, boolean, broadcasts to (B, H, T, T); None allows all.
        memory_mask: of the cross-attention, boolean, broadcasts to (B, H, T, S); None allows all.
        num_heads, pre_norm, epsilon, p, attention_p, hidden_p, rng: as for ``encoder_layer``.

    Returns:
        y (B, T, D) and the cache.
    """
    raise NotImplementedError


def decoder_layer_backward(dy, cache):
    """dx (B, T, D), dmemory (B, S, D), then one tuple for each tuple of parameters.

    That is dself_attention, dself_norm, dcross_attention, dcross_norm, dnetwork, dnetwork_norm.

    Hint: in how many roles does the memory go into the cross-attention?
    """
    raise NotImplementedError


def adam_update(data, grad, m, v, learning_rate, t, beta_1, beta_2, epsilon, scale=1.0):
    """25 min. One step of Adam, in place (lesson 12).

        g = scale · grad    m ← β₁ m + (1 − β₁) g    v ← β₂ v + (1 − β₂) g²
        θ ← θ − η · (m / (1 − β₁ᵗ)) / (√(v / (1 − β₂ᵗ)) + ε)

    Args:
        data, m, v: θ and the two moments, 1-D arrays of one length, to be written to.
        grad: an array of that length, to be left as it is.
        learning_rate: η.
        t: number of this step, from 1.
        beta_1, beta_2, epsilon: β₁, β₂ and ε.
        scale: a number; clipping gives it.

    Hint: ``m *= beta_1`` writes to the array that was given; ``m = m * beta_1`` makes another one.
    """
    raise NotImplementedError


def noam(step, d_model, warmup_steps):
    """10 min, with ``linear_decay``. The paper's learning rate, equation 3 (lesson 12).

        η = D^−½ · min(step^−½, step · warmup_steps^−1.5)

    Args:
        step: counted from 1.
        d_model: D.
        warmup_steps: the step of the highest rate.

    Returns:
        a number.
    """
    raise NotImplementedError


def linear_decay(step, peak, warmup_steps, total_steps):
    """The learning rate of ``minitransformer train toy``, two straight lines (lesson 12).

        η = peak · min(step / warmup_steps, (total_steps − step) / (total_steps − warmup_steps))

    and never below 0.

    Returns:
        a number.
    """
    raise NotImplementedError


def gradient_norm(grad):
    """The length √(Σ g²) of the whole gradient, for ``clip_scale`` (lesson 13).

    Args:
        grad: all gradients of a model in one 1-D array.

    Returns:
        a number.
    """
    raise NotImplementedError


def clip_scale(norm, max_norm):
    """10 min, with ``gradient_norm``. What a gradient is multiplied by to be clipped (lesson 13).

    Args:
        norm: that of the gradient, a number from 0 on.
        max_norm: the largest norm that is left as it is; infinity leaves every gradient.

    Returns:
        1 where the norm is at most max_norm; else what makes it max_norm.
    """
    raise NotImplementedError


def greedy(log_probabilities, said, max_length):
    """25 min. The most probable next token, again and again, until EOS (lesson 14).

    Args:
        log_probabilities: function from ids (N, t), what N sentences have said so far, the start
            symbol first, to (N, V), log P of what follows each; −∞ for what is never said.
        said: ids (N, 1), the start symbols.
        max_length: most tokens of a sentence, the start symbol not counted.

    Returns:
        ids (N, T) without the start symbol, T ≤ max_length. In a row that has ended with EOS
        anything may follow. T is the first length at which all rows have ended, or max_length.

    Hint: all N rows go on together, those that have ended as well.
    """
    raise NotImplementedError


def beam_search(log_probabilities, said, max_length, beam_size, alpha):
    """45 min. The best few prefixes, all of one length, extended together (lesson 14).

        beam ← {the start symbol}    found ← {}
        until beam is empty or its prefixes are as long as allowed:
            best ← the k of {Y and w: Y in beam, w any word} of the highest log P
            found ← found and those of best that end with EOS
            beam ← the others of best

    The result is the k best of found by log P / ((5 + length) / 6)^α, where EOS counts in the
    length; and, where these are fewer than k, the best of what is left in the beam after them.

    Args:
        log_probabilities: as for ``greedy``; each row you give it is one prefix.
        said: ids (1, 1), the start symbol of one sentence.
        max_length: most tokens, EOS counted and the start symbol not.
        beam_size: k.
        alpha: α ≥ 0.

    Returns:
        a list of (ids, log P), best first, at most k: ids a list without the start symbol, with EOS
        where it was chosen. Nothing of log P = −∞ is among them.

    Hint: add each prefix's log P to its row of (N, V), sort all N · V numbers at once, and find the
    prefix and the word of a number by dividing its place by V.
    """
    raise NotImplementedError


# Your Transformer is complete. What follows is the second part: what language models have taken in
# the places of its blocks since 2017. It is checked as the first part is; trainings run on that.
# A model of others can speak on this: minitransformer chat runs/smollm2 --own FILE (lesson 27).


def rms_norm(x, gamma, epsilon=1e-5):
    """25 min, with its backward. LayerNorm without a mean and without a shift (lesson 27).

        ρ = √(mean(x²) + ε)    x̂ = x / ρ    y = γ x̂

    Args:
        x: (..., D).
        gamma: γ, (D,).
        epsilon: ε, for rows of zeros.

    Returns:
        y (..., D) and the cache.
    """
    raise NotImplementedError


def rms_norm_backward(dy, cache):
    """Gradients dx (..., D) and dgamma (D,).

    Hint: of the three terms of ``layer_norm_backward`` one has nothing to come from here.
    """
    raise NotImplementedError


def silu(x):
    """10 min, with its backward. A ReLU with its corner rounded off (lesson 27).

        y = x σ(x)        σ(x) = 1 / (1 + exp(−x))

    Args:
        x: any shape. Entries may be as large as 1000, or −1000: σ there is 1, or 0.

    Returns:
        y, of the shape of x, and the cache.

    Hint: σ(x) is also (1 + tanh(x / 2)) / 2, in which nothing overflows.
    """
    raise NotImplementedError


def silu_backward(dy, cache):
    """Gradient dx, of the shape of dy.

    Hint: the product rule, and the slope of σ is σ (1 − σ).
    """
    raise NotImplementedError


def swiglu(x, w_gate, w_up, w_down, p=0.0, rng=None):
    """25 min, with its backward. The feed-forward network with a gate (lesson 27).

        y = Dropout(SiLU(x W_gate) · x W_up) W_down

    the product entry by entry. It is made of ``linear``, ``silu`` and ``dropout``.

    Args:
        x: (..., D).
        w_gate, w_up: (D, F).
        w_down: (F, D).
        p, rng: as for ``dropout``.

    Returns:
        y (..., D) and the cache.
    """
    raise NotImplementedError


def swiglu_backward(dy, cache):
    """The gradients of x, w_gate, w_up and w_down, in this order, each of the shape of its array.

    Hint: in a product each factor receives the gradient times the other factor. x is used twice.
    """
    raise NotImplementedError


def rotary_table(length, head_width, base=10000.0):
    """The cosines and sines by which ``rotary`` turns (lesson 27).

        table[t, 0, i] = cos(t / base^(2i/K))        table[t, 1, i] = sin(t / base^(2i/K))

    Args:
        length: T, rows; t counts from 0.
        head_width: K, even.
        base: of the frequencies.

    Returns:
        (T, 2, K/2), float64.
    """
    raise NotImplementedError


def rotary(x, table, pairs="neighbours", start=0):
    """45 min, with its backward and ``rotary_table``. Positions as rotations (lesson 27).

        y_a = cos · x_a − sin · x_b        y_b = sin · x_a + cos · x_b

    for each pair (a, b) of features, with cos and sin of the token's position and of the pair.
    ``"neighbours"``: pair i is the features 2i and 2i + 1. ``"halves"``: i and i + K/2.

    Args:
        x: queries or keys, (B, H, T, K).
        table: as of ``rotary_table``, with T + start rows or more.
        pairs: ``"neighbours"`` or ``"halves"``.
        start: the position of the first token, as in decoding.

    Returns:
        y (B, H, T, K), each feature where it stood in x, of the dtype of x even if the table has
        another, and the cache.

    Hint: ``x[..., 0::2]`` is every other feature, from the first on.
    """
    raise NotImplementedError


def rotary_backward(dy, cache):
    """Gradient dx (B, H, T, K). The table is not trained and has none.

    Hint: a rotation is a linear map; what is the transpose of one?
    """
    raise NotImplementedError


def grouped_query_attention(
    query, key, value, w_query, w_key, w_value, w_output, num_heads, mask=None, p=0.0, rng=None
):
    """45 min, with its backward. Heads that share keys and values (lesson 27).

        head_i = Attention(Q W_i^Q, K W_g^K, V W_g^V)        g = ⌊i G / H⌋

    As ``multi_head_attention``, and made of the same functions, but keys and values have G heads
    only. The first H/G heads of queries look into the first of them, the next into the second.

    Args:
        query: (B, T, D).
        key, value: (B, S, D).
        w_query, w_output: (D, D).
        w_key, w_value: (D, G K), where G divides H.
        num_heads: H.
        mask, p, rng: as for ``scaled_dot_product_attention``.

    Returns:
        y (B, T, D) and the cache.

    Hint: ``np.repeat`` and ``np.tile`` are two things. Which of them makes 0 0 1 1 of 0 1?
    """
    raise NotImplementedError


def grouped_query_attention_backward(dy, cache):
    """The gradients of query, key, value, w_query, w_key, w_value and w_output, in this order.

    Hint: what was repeated is used several times. A reshape to five axes puts all uses of one group
    side by side.
    """
    raise NotImplementedError


def adamw_update(
    data, grad, m, v, learning_rate, t, beta_1, beta_2, epsilon, weight_decay, scale=1.0
):
    """10 min. One step of Adam with a decay beside it, in place (lesson 27).

        θ ← (1 − η λ) θ        then ``adam_update``

    Args:
        weight_decay: λ.

    The others are those of ``adam_update``.
    """
    raise NotImplementedError


# What follows is for pictures: what networks that see are made of, since long before Transformers,
# and how they learn. Pictures are (B, Y, X, C), Y rows and X columns of C channels.


def convolution_2d(x, weight, bias=None, stride=1, padding=0):
    """45 min, with its backward. One linear map of every window of a picture (lesson 29).

        y_{u,v} = b + Σ_{i,j} x_{u s + i − p, v s + j − p} W_{i,j}        i, j = 0 … k − 1

    What lies outside of the picture is 0, for p rows or columns on each side; no window reaches
    beyond these. This is all that the package's does without its dilation and its groups.

    Args:
        x: (B, Y, X, C).
        weight: W, (k, k, C, E), the place in the upper left corner of a window first.
        bias: b, (E,), or None for maps without one.
        stride: s, how far it is from one window to the next, down and to the right.
        padding: p.

    Returns:
        y (B, Y', X', E) with Y' = ⌊(Y + 2 p − k) / s⌋ + 1, and X' likewise, and the cache.

    Hint: pictures and windows are many, the places within a window few. Which rows of the padded
    picture are row i of some window?
    """
    raise NotImplementedError


def convolution_2d_backward(dy, cache):
    """Gradients dx (B, Y, X, C), dweight (k, k, C, E) and dbias (E,), None without a bias.

    Hint: for one place in the windows it is the backward of a linear map. An entry of x stands at
    several places, in one window after the other. What becomes of the gradient of the padding?
    """
    raise NotImplementedError


def max_pooling(x, kernel_size, stride=None, padding=0):
    """25 min, with its backward. The largest entry of each window (lesson 29).

        y_{u,v} = max_{i,j} x_{u s + i − p, v s + j − p}        i, j = 0 … k − 1

    in each channel for itself, in the windows of ``convolution_2d``. What lies outside of the
    picture is never the largest.

    Args:
        x: (B, Y, X, C).
        kernel_size: k.
        stride: s; None is k, so that no two windows overlap.
        padding: p, at most k / 2, so that each window has a part of the picture.

    Returns:
        y (B, Y', X', C), with Y' and X' as for ``convolution_2d``, and the cache.

    Hint: which number is never larger than another? A window may be negative everywhere.
    """
    raise NotImplementedError


def max_pooling_backward(dy, cache):
    """Gradient dx (B, Y, X, C).

    Where several entries of a window are the largest, all of dy goes to the first of them: to the
    uppermost, and among those of one row to the leftmost.

    Hint: that is no rare case. What does a window often look like after a ReLU?
    """
    raise NotImplementedError


def batch_norm(x, gamma, beta, epsilon=1e-5):
    """45 min, with its backward. Each feature brought to one scale over a batch (lesson 30).

        μ = mean(x)    σ² = mean((x − μ)²)    x̂ = (x − μ) / √(σ² + ε)    y = γ x̂ + β

    The means are those of a feature over all rows: as ``layer_norm``, along the other axes.

    Args:
        x: (..., C), any number of axes: rows of features (B, C), or pictures (B, Y, X, C), of which
            each place is a row.
        gamma, beta: γ and β, (C,).
        epsilon: ε, for features that are the same everywhere.

    Returns:
        (y, μ, σ²), of shapes (..., C), (C,) and (C,), and the cache: ``return (y, mean, variance),
        cache``. Of μ and σ² the layer keeps running means, by which it norms once it is trained.
    """
    raise NotImplementedError


def batch_norm_backward(dy, cache):
    """Gradients dx (..., C), dgamma (C,) and dbeta (C,), of y alone.

    Hint: x moves x̂ directly, and all of its column through μ and through σ. γ is the same for all
    of a column: can you write two of the three terms with dγ and dβ?
    """
    raise NotImplementedError


def momentum_update(
    data, grad, velocity, learning_rate, momentum, nesterov=False, weight_decay=0.0, scale=1.0
):
    """10 min. One step of gradient descent with momentum, in place (lesson 32).

        g = scale · grad + λ θ        u ← μ u + g
        θ ← θ − η u        or, as Nesterov looks ahead,        θ ← θ − η (g + μ u)

    Args:
        data, velocity: θ and u, 1-D arrays of one length, to be written to.
        grad: an array of that length, to be left as it is.
        learning_rate: η.
        momentum: μ.
        nesterov: whether to look ahead.
        weight_decay: λ.
        scale: a number; clipping gives it.

    Hint: the second u is the one that the first formula has just made.
    """
    raise NotImplementedError
