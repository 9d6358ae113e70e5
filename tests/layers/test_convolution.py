import numpy as np
import pytest

from minitransformer.layers.convolution import Convolution1d, convolution, convolution_backward

B, T, D, F = 2, 12, 3, 5
RNG = np.random.default_rng(0)
X = RNG.standard_normal((B, T, D))
BIAS = RNG.standard_normal(F)
every_window = pytest.mark.parametrize(
    ("width", "dilation", "causal"),
    [(1, 1, False), (3, 1, False), (5, 2, False), (1, 1, True), (4, 1, True), (3, 3, True)],
)


def kernel(width):
    return np.random.default_rng(width).standard_normal((width, D, F))


def in_sight(width, dilation, causal):
    """Which positions the formula lets each position see, (T, T)."""
    middle = width - 1 if causal else width // 2
    distances = [(tap - middle) * dilation for tap in range(width)]
    positions = np.arange(T)
    return np.isin(positions[None, :] - positions[:, None], distances)


@every_window
def test_each_output_is_the_sum_of_the_formula(width, dilation, causal):
    weight = kernel(width)
    middle = width - 1 if causal else (width - 1) // 2
    expected = np.zeros((B, T, F)) + BIAS
    for t in range(T):
        for tap in range(width):
            s = t + (tap - middle) * dilation
            if 0 <= s < T:
                expected[:, t] += X[:, s] @ weight[tap]
    y, _ = convolution(X, weight, BIAS, dilation, causal)
    np.testing.assert_allclose(y, expected, rtol=1e-12, atol=1e-12)


@every_window
def test_an_output_depends_on_the_positions_of_its_window_and_on_no_other(width, dilation, causal):
    _, cache = convolution(X, kernel(width), BIAS, dilation, causal)
    depends = np.zeros((T, T), dtype=bool)
    for t in range(T):
        dy = np.zeros((B, T, F))
        dy[:, t] = RNG.standard_normal(F)
        dx, _, _ = convolution_backward(dy, cache)
        depends[t] = dx.any(axis=(0, 2))
    np.testing.assert_array_equal(depends, in_sight(width, dilation, causal))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("width", "dilations"), [(3, (1, 1)), (3, (1, 2)), (3, (1, 3)), (5, (1,))])
def test_layers_see_as_many_positions_as_the_formula_says(width, dilations, causal):
    length = 41
    layers = [Convolution1d(D, D, width, RNG, dilation=d, causal=causal) for d in dilations]
    caches = []
    y = RNG.standard_normal((1, length, D))
    for layer in layers:
        y, cache = layer.forward(y)
        caches.append(cache)
    dx = np.zeros_like(y)
    dx[:, length // 2] = 1
    for layer, cache in zip(layers[::-1], caches[::-1], strict=True):
        dx = layer.backward(dx, cache)
    (seen,) = dx.any(axis=(0, 2)).nonzero()
    expected = 1 + sum((width - 1) * dilation for dilation in dilations)
    assert len(seen) == expected
    np.testing.assert_array_equal(seen, seen[0] + np.arange(expected))
    assert seen[-1] == length // 2 + (0 if causal else expected // 2)


def test_a_causal_convolution_sees_no_future():
    layer = Convolution1d(D, F, 4, RNG, dilation=2, causal=True)
    expected, _ = layer.forward(X)
    other = X.copy()
    other[:, 7:] = 1000
    y, _ = layer.forward(other)
    np.testing.assert_array_equal(y[:, :7], expected[:, :7])
    assert (y[:, 7:] != expected[:, 7:]).any(axis=-1).all()


@every_window
@pytest.mark.parametrize("in_front", [False, True])
def test_padding_changes_nothing(width, dilation, causal, in_front):
    """Neither outputs at tokens nor gradients, whatever stands at the padding."""
    weight, dy = kernel(width), RNG.standard_normal((B, T, F))
    y, cache = convolution(X, weight, BIAS, dilation, causal)
    gradients = convolution_backward(dy, cache)

    columns = ((0, 0), (4, 0) if in_front else (0, 4), (0, 0))
    mask = np.pad(np.ones((B, T, 1), dtype=bool), columns)[..., 0]
    wider = np.pad(X, columns, constant_values=1000)
    padded_y, cache = convolution(wider, weight, BIAS, dilation, causal, mask)
    padded_gradients = convolution_backward(np.pad(dy, columns), cache)
    np.testing.assert_allclose(padded_y[mask].reshape(y.shape), y, rtol=1e-12, atol=1e-12)
    dx, dweight, dbias = padded_gradients
    assert not dx[~mask].any()
    for ours, expected in zip((dx[mask].reshape(X.shape), dweight, dbias), gradients, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-12, atol=1e-12)


def test_a_window_of_one_is_a_linear_map():
    weight = kernel(1)
    y, _ = convolution(X, weight, BIAS)
    np.testing.assert_allclose(y, X @ weight[0] + BIAS, rtol=1e-13)


def test_outputs_of_a_new_layer_have_the_variance_of_its_inputs():
    layer = Convolution1d(64, 64, 5, np.random.default_rng(1))
    y, _ = layer.forward(np.random.default_rng(2).standard_normal((4, 200, 64)))
    assert 0.9 < y[:, 5:-5].var() < 1.1


def test_a_centred_window_without_a_middle_is_refused():
    with pytest.raises(ValueError, match=r"width=4 has no middle; choose 3 or 5, or causal=True"):
        Convolution1d(D, F, 4, RNG)


@pytest.mark.parametrize(("width", "dilation"), [(0, 1), (3, 0)])
def test_a_window_of_nothing_is_refused(width, dilation):
    with pytest.raises(ValueError, match=f"width={width} and dilation={dilation} must be 1 or"):
        Convolution1d(D, F, width, RNG, dilation=dilation, causal=True)


def test_an_input_that_does_not_fit_the_weight_is_refused():
    """In the shapes that were given: not in those of its windows."""
    given = rf"\(2, 12, {D}\) does not fit a weight of shape \(3, {D + 1}, {F}\): .* be {D + 1}$"
    with pytest.raises(ValueError, match=given):
        Convolution1d(D + 1, F, 3, RNG).forward(X)


def test_a_mask_that_does_not_fit_or_is_not_boolean_is_refused():
    layer = Convolution1d(D, F, 3, RNG)
    with pytest.raises(ValueError, match=r"mask has shape \(2, 1, 1, 12\); .* one of \(2, 12\)"):
        layer.forward(X, np.ones((B, 1, 1, T), dtype=bool))
    with pytest.raises(TypeError, match="mask must be boolean"):
        layer.forward(X, np.ones((B, T)))
