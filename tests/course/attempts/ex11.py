def starts_over(layers, dy, cache):
    """Keeps the first input alone, and runs up to each layer again."""
    for depth in reversed(range(len(layers))):
        x = cache[0]
        for forward, _ in layers[: depth + 1]:
            x, layer_cache = forward(x)
        dy = layers[depth][1](dy, layer_cache)
    return dy


WRONG = r"""
crossover_length
    2 * d_model + d_ff -> 6 * d_model || 4 T² D  # right only where F = 4 D
    + d_ff -> || 4 T² D
parallel_layer
    feed_forward(n, -> feed_forward(n + attended, || neither gets the other's output
lean_stack
    entered.append(x) -> entered.append(forward(x)[1]) || holds a layer's cache
    tuple(entered) -> (*entered, x) || holds 180 numbers
lean_stack_backward
    starts_over || a layer's forward ran 4 times
    (dy, layer_cache) -> (dy, x) || takes the cache that its forward returned
    reversed(layers), reversed(cache) -> layers, cache || WRONG  dx
"""
