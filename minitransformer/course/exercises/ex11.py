"""Exercise 11, the Transformer assembled: how each part is checked."""

import numpy as np

from minitransformer.cases.case import D, H
from minitransformer.course.exercises.own.layers import network_weights
from minitransformer.course.exercises.parts import expect, expect_pair, normal, part
from minitransformer.gradcheck import CheckError, check_pair
from minitransformer.layers.attention import multi_head_attention
from minitransformer.layers.feed_forward import feed_forward
from minitransformer.layers.layer_norm import layer_norm

B, T = 2, 3
DEPTH = 4


@part(10)
def check_crossover_length(crossover_length):
    hint = "is it 4 T² D for the products, and 2 T for each weight of the linear maps?"
    for d_model, d_ff in ((512, 2048), (256, 1000)):
        crossover_length.expect((d_model, d_ff), 2 * d_model + d_ff, hint)


@part(45)
def check_parallel_layer(forward, backward):
    rng = np.random.default_rng(11)
    x, *attention = normal(11, (B, T, D), *4 * [(D, D)])
    gamma, beta = rng.uniform(0.5, 1.5, D), rng.uniform(-0.5, 0.5, D)
    network = network_weights(rng)
    n, _ = layer_norm(x, gamma, beta)
    attended, _ = multi_head_attention(n, n, n, *attention, H)
    fed, _ = feed_forward(n, *network)
    inputs = (x, gamma, beta, *attention, *network, H)
    hint = "both get n, and neither gets the other's output"
    return expect_pair(forward, backward, inputs, x + attended + fed, hint)


@part(45)
def check_lean_stack(lean_stack, lean_stack_backward):
    x, dy, *weights = normal(11, (B, T, D), (B, T, D), *DEPTH * [(D, D)])
    layers = [_Layer(weight / 2) for weight in weights]
    pairs = [(layer.forward, layer.backward) for layer in layers]
    expected = x
    for layer in layers:
        expected = np.sin(expected @ layer.weight)

    y, cache = lean_stack.y_and_cache(pairs, x, cache_type=tuple)
    expect("what comes out of the last layer", y, expected)
    if any(isinstance(value, _Cache) for value in _values_in(cache)):
        raise CheckError("the cache of lean_stack holds a layer's cache, which it should not keep")
    kept = sum(value.size for value in _values_in(cache) if isinstance(value, np.ndarray))
    if kept > DEPTH * x.size:
        raise CheckError(
            f"the cache of lean_stack holds {kept} numbers; one array for each of the {DEPTH} "
            f"layers makes {DEPTH * x.size}"
        )
    for layer in layers:
        layer.forwards = 0
    lean_stack_backward(pairs, dy, cache)
    most = max(layer.forwards for layer in layers)
    if most > 1:
        raise CheckError(
            f"in the backward a layer's forward ran {most} times; once is enough if the stack kept "
            "what went into each layer"
        )
    return check_pair(
        lambda x: lean_stack.function(pairs, x),
        lambda dy, cache: lean_stack_backward.function(pairs, dy, cache),
        (x,),
    )


class _Cache:
    """The cache of a layer, to be told from whatever else there may be."""

    def __init__(self, x, slope):
        self.x, self.slope = x, slope


class _Layer:
    """y = sin(x W), counting how often its forward runs."""

    def __init__(self, weight):
        self.weight = weight
        self.forwards = 0

    def forward(self, x):
        self.forwards += 1
        z = x @ self.weight
        return np.sin(z), _Cache(x, np.cos(z))

    def backward(self, dy, cache):
        if not isinstance(cache, _Cache):
            raise TypeError("a layer's backward takes the cache that its forward returned")
        return dy * cache.slope @ self.weight.T


def _values_in(value):
    """The values in nested tuples, lists and dicts."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, tuple | list):
        for item in value:
            yield from _values_in(item)
    else:
        yield value
