"""A mixture of experts, k of n for each token (Shazeer et al. 2017).

    y = Σ_e g_e E_e(x)        g = softmax of the k largest entries of x W_r, and 0 elsewhere

A router W_r (D, n) chooses for each token k of n feed-forward networks. The layer has n times the
weights of one, and k times its work. Left alone, the router would send ever more to experts that
have learned from more; a loss to be added, larger where it does, keeps the balance (Fedus, Zoph and
Shazeer 2022):

    balance = n Σ_e f_e P_e        f_e: part of all choices that fell on e
                                   P_e: mean over tokens of p_e, p = softmax(x W_r)

It is 1 where f or P is even, and up to n / k where what is chosen is likely.

Derivation. The choice is a constant, as the mask of a ReLU is: g is a softmax with a mask, and its
gradient that of ``softmax.py``. A product for each expert that was chosen:

    dg_e = dy · E_e(x)        dE_e(x) = g_e dy        dx = Σ_e dx of E_e + dx of the router

Of the balance, f counts and has no gradient; P has: dp_e = n f_e / N for each of N tokens. So an
expert with much to do is made less likely. At k = 1 the only g is 1, and the router learns from the
balance alone.
"""

from minitransformer.core.backend import array_namespace
from minitransformer.core.module import Module, Parameter
from minitransformer.layers.linear import glorot_uniform, linear, linear_backward
from minitransformer.layers.softmax import softmax, softmax_backward
from minitransformer.layers.swiglu import SwiGLU


def route(x, w_router, num_chosen):
    """Which experts each token goes to, and how much each of them counts.

    Args:
        x: (N, D).
        w_router: (D, n).
        num_chosen: k.

    Returns:
        gates (N, n), 0 for experts that are not chosen, the balance, a 0-d array, and the cache
        for the backward: (gates, balance), cache.
    """
    xp = array_namespace(x)
    num_tokens, num_experts = len(x), w_router.shape[1]
    logits, linear_cache = linear(x, w_router)  # (N, n)
    rank = xp.argsort(xp.argsort(-logits, axis=-1), axis=-1)  # (N, n), 0 for the largest
    chosen = rank < num_chosen
    gates, gates_cache = softmax(logits, chosen)
    p, p_cache = softmax(logits)
    part = chosen.astype(x.dtype).sum(axis=0) / (num_tokens * num_chosen)  # (n,), f
    balance = num_experts * (part * p.mean(axis=0)).sum()
    return (gates, balance), (part, num_tokens, linear_cache, gates_cache, p_cache)


def route_backward(dgates_and_dbalance, cache):
    """Gradients dx (N, D) and dw_router (D, n)."""
    dgates, dbalance = dgates_and_dbalance
    part, num_tokens, linear_cache, gates_cache, p_cache = cache
    xp = array_namespace(dgates)
    dp = (dbalance * len(part) / num_tokens * part).astype(dgates.dtype)  # (n,), of each token
    dp = xp.broadcast_to(dp, dgates.shape)  # (N, n)
    dlogits = softmax_backward(dgates, gates_cache) + softmax_backward(dp, p_cache)
    dx, dw_router, _ = linear_backward(dlogits, linear_cache)
    return dx, dw_router


class MixtureOfExperts(Module):
    """SwiGLU networks of which a router chooses k for each token.

    Args:
        d_model: width D of inputs and outputs.
        d_ff: width F of each expert.
        num_experts: n.
        num_chosen: k.
        rng: NumPy generator for the weights.

    Raises:
        ValueError: there are not k experts to choose from, or nothing is chosen.
    """

    def __init__(self, d_model, d_ff, num_experts, num_chosen, rng):
        if not 1 <= num_chosen <= num_experts:
            raise ValueError(
                f"num_chosen={num_chosen} must lie in 1 <= num_chosen <= {num_experts}, the "
                "number of experts"
            )
        self.w_router = Parameter(glorot_uniform((d_model, num_experts), rng))
        self.experts = [SwiGLU(d_model, d_ff, rng) for _ in range(num_experts)]
        self.num_chosen = num_chosen

    def forward(self, x):
        """y (..., D) and the balance of x (..., D), and the cache: (y, balance), cache."""
        xp = array_namespace(x)
        tokens = x.reshape(-1, x.shape[-1])  # (N, D)
        (gates, balance), route_cache = route(tokens, self.w_router.data, self.num_chosen)
        y = xp.zeros(tokens.shape, dtype=x.dtype)
        of_experts = []
        for e, expert in enumerate(self.experts):
            (rows,) = xp.nonzero(gates[:, e])  # (N_e,)
            gate = gates[:, e][rows][:, None]  # (N_e, 1)
            said, cache = expert.forward(tokens[rows])  # (N_e, D)
            y[rows] += gate * said
            of_experts.append((rows, gate, said, cache))
        return (y.reshape(x.shape), balance), (gates.shape, route_cache, of_experts)

    def backward(self, dy_and_dbalance, cache):
        """Gradient dx (..., D) of dy (..., D) and dbalance, the weight of the balance in a loss."""
        dy, dbalance = dy_and_dbalance
        gates_shape, route_cache, of_experts = cache
        xp = array_namespace(dy)
        dtokens = dy.reshape(-1, dy.shape[-1])  # (N, D)
        dx = xp.zeros(dtokens.shape, dtype=dy.dtype)
        dgates = xp.zeros(gates_shape, dtype=dy.dtype)
        for e, (expert, (rows, gate, said, cache)) in enumerate(
            zip(self.experts, of_experts, strict=True)
        ):
            dy_rows = dtokens[rows]  # (N_e, D)
            dgates[rows, e] = (dy_rows * said).sum(axis=-1)
            dx[rows] += expert.backward(gate * dy_rows, cache)
        dx_router, dw_router = route_backward((dgates, dbalance), route_cache)
        self.w_router.grad += dw_router
        return (dx + dx_router).reshape(dy.shape)
