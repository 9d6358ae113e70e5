"""How the second part is checked, what came since 2017: norm, gates, positions, groups, decay."""

import math

import numpy as np

from minitransformer.cases.case import SOURCE_MASK, B, D, F, H, S, T
from minitransformer.course.exercises.own.attention import check_gradients_of_heads
from minitransformer.course.exercises.own.common import (
    P,
    also_right,
    dx_of,
    expect_any_axes,
    expect_right,
    expect_y,
    float64_note,
    generator,
    with_dropout,
)
from minitransformer.course.exercises.parts import (
    Answer,
    check_gradients,
    expect,
    likely,
    normal,
    part,
)
from minitransformer.gradcheck import CheckError
from minitransformer.gradcheck.pair import unheard
from minitransformer.layers import grouped_query_attention as groups
from minitransformer.layers import rotary as positions
from minitransformer.layers.dropout import dropout
from minitransformer.layers.rms_norm import rms_norm
from minitransformer.layers.silu import silu
from minitransformer.layers.swiglu import swiglu
from minitransformer.optim.adam import adam_update
from minitransformer.optim.adamw import adamw_update as package_update

WIDTH, HEADS, GROUPS = 42, 6, 2  # D, H and G, so that more than two heads share a group


@part(25, "27")
def check_rms_norm(forward, backward):
    rng = np.random.default_rng(27)
    x, gamma = 2 * rng.standard_normal((B, T, D)) + 1, rng.uniform(0.5, 1.5, D)
    for epsilon in (1e-5, 0.5):
        inputs = x, gamma, epsilon
        expected, _ = rms_norm(*inputs)
        what, mistakes = f"y for epsilon={epsilon:g}", _wrong_norms(*inputs)
        expect_y(forward, inputs, expected, what, "y = γ x / √(mean(x²) + ε)", mistakes)
    zeros, hint = np.zeros((2, D)), "ε keeps ρ from being 0 where all entries are"
    expect_y(forward, (zeros, gamma), zeros, "y of rows of zeros", hint)
    expect_right(forward, backward, *((x, gamma, epsilon) for epsilon in (1e-5, 0.5)))
    return also_right(forward, backward, (x, gamma), (B, T))


def _wrong_norms(x, gamma, epsilon):
    """What plausible mistakes make of it, by what to say of them."""
    mean_square = (x * x).mean(axis=-1, keepdims=True)
    centred = x - x.mean(axis=-1, keepdims=True)
    sigma = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + epsilon)
    return {
        "ε is added to the mean square, under the root": (
            gamma * x / (np.sqrt(mean_square) + epsilon)
        ),
        "ε is missing: it is added to the mean square": gamma * x / np.sqrt(mean_square),
        "use the epsilon that is given": gamma * x / np.sqrt(mean_square + 1e-5),
        "no mean is taken off here": gamma * centred / sigma,
        "the squares are those of x itself: no mean is taken off": gamma * x / sigma,
        "it is the mean of the D squares, not their sum": (
            gamma * x / np.sqrt(D * mean_square + epsilon)
        ),
        "divide by ρ, the root": gamma * x / (mean_square + epsilon),
        "the mean is that of a row, over the last axis": gamma
        * x
        / np.sqrt((x * x).mean() + epsilon),
    }


@part(10, "27")
def check_silu(forward, backward):
    (x,) = normal(27, (B, T, D))
    y, (gate, _) = silu(2 * x)
    mistakes = {
        "multiply by x: y = x σ(x)": gate,
        "σ rises: it is 1 / (1 + exp(−x)), with the minus": 2 * x * (1 - gate),
    }
    expect_y(forward, (2 * x,), y, hint="y = x σ(x) = x / (1 + exp(−x))", mistakes=mistakes)
    far = np.array([1000.0, 0.0, -1000.0])
    overflow = "exp(1000) is no number: σ(1000) is 1, and σ(−1000) is 0"
    expect_y(forward, (far,), [1000, 0, 0], "y of 1000, 0 and −1000", overflow)
    hint = "x stands twice in x σ(x), so that the slope has two terms; σ' = σ (1 − σ)"
    expect_right(forward, backward, (2 * x,), hints=[hint])
    dx = dx_of(forward, backward, (far,), np.ones(3))
    expect("dx at 1000, 0 and −1000, for a dy of 1,", dx, [1, 0.5, 0], overflow)
    return also_right(forward, backward, (x,), (B, T))


@part(25, "27")
def check_swiglu(forward, backward):
    x, w_gate, w_up, w_down = inputs = tuple(normal(27, (B, T, D), (D, F), (D, F), (F, D)))
    expected, _ = swiglu(*inputs)
    gate, up = x @ w_gate, x @ w_up
    opened, _ = silu(gate)
    mistakes = {
        "the SiLU is that of x W_gate, not of x W_up": gate * silu(up)[0] @ w_down,
        "x W_gate goes through a SiLU first": gate * up @ w_down,
        "the gate is multiplied by x W_up": opened @ w_down,
        "the SiLU is that of x W_gate alone, not of the product": silu(gate * up)[0] @ w_down,
    }
    hint = "y = (SiLU(x W_gate) · x W_up) W_down"
    expect_y(forward, inputs, expected, "y", hint, mistakes)
    mistakes = {
        "there is dropout before the last map, with p and rng": expected,
        "the dropout is before the last map, not after it": dropout(expected, P, generator())[0],
        "the dropout is of the product, not of the gate before it": (
            (dropout(gate, P, generator())[0] * up) @ w_down
        ),
    }
    expected, _ = swiglu(*inputs, P, generator())
    seeded, hint = with_dropout(forward), "the dropout is that of the product of gate and x W_up"
    expect_y(seeded, inputs, expected, "y with dropout", hint, mistakes)
    both_ways = (
        "x goes into two maps: where dw_gate and dw_up are right, dx is the sum of what comes back "
        "through both"
    )
    hint = "each factor of a product gets the gradient of the product times the other factor"
    expect_right(forward, backward, inputs, hints=[both_ways, hint, hint])
    hint = "without dropout it is right: dh goes back through dropout, too"
    expect_right(seeded, backward, inputs, hints=[hint])
    expect_any_axes(forward, backward, inputs, (B, T))
    return float64_note(seeded, backward, inputs)


@part(45, "27")
def check_rotary(forward, rotary_table, backward):
    for arguments in ((7, 6), (40, 16, 100.0)):
        rotary_table.expect(
            arguments, positions.rotary_table(*arguments), mistakes=_wrong_tables(*arguments)
        )
    (x,), table = normal(27, (B, H, T, D)), positions.rotary_table(T + 5, D)
    dy, back = x[::-1], table * [[1.0], [-1.0]]  # turns the other way
    for pairs, other in (("neighbours", "halves"), ("halves", "neighbours")):
        for start in (0, 3):
            expected, _ = positions.rotary(x, table, pairs, start)
            mistakes = {
                f"that is the convention {other!r}": positions.rotary(x, table, other, start)[0],
                "it is turned the other way: the minus is before b sin": (
                    positions.rotary(x, back, pairs, start)[0]
                ),
                "each feature stands in y where it stood in x": _reordered(expected, pairs),
                **_misturned(x, table[start:], pairs),
            }
            if start:
                from_0, _ = positions.rotary(x, table, pairs)
                mistakes["the first token stands at position start"] = from_0
            what = f"y with pairs={pairs!r}, start={start}"
            hint = "row t of the table, from start on, has the cosines and the sines of token t"
            expect_y(forward, (x, table, pairs, start), expected, what, hint, mistakes)
        turned = Answer(forward.name, _with(forward.function, table, pairs, 3))
        mistakes = {
            f"it turns back by the convention {other!r}": positions.rotary(dy, back, other, 3)[0],
            "it turns back by the angles of positions from 0 on, not from start on": (
                positions.rotary(dy, back, pairs)[0]
            ),
        }
        hint = "the transpose of a rotation is the rotation by the opposite angle"
        hint = likely(dx_of(turned, backward, (x,), dy), mistakes, hint)
        expect_right(turned, backward, (x,), hints=[f"{hint} (pairs={pairs!r}, start=3)"])
    return float64_note(forward, backward, (x, table))


def _with(function, *options):
    return lambda x: function(x, *options)


def _wrong_tables(length, width, base=10000.0):
    """What plausible mistakes make of the table, by what to say of them."""
    table = positions.rotary_table(length, width, base)
    i = np.arange(width // 2)

    def of(exponents):
        angles = np.arange(length)[:, None] * base**exponents
        return np.stack([np.cos(angles), np.sin(angles)], axis=1)

    return {
        "the cosines come before the sines": table[:, ::-1],
        "positions count from 0": positions.rotary_table(length + 1, width, base)[1:],
        "the exponent of pair i is 2i/K, not i/K": of(-i / width),
        "the exponent is negative, −2i/K": of(2 * i / width),
        "pairs count from 0: the first turns by 1 a token": of(-2 * (i + 1) / width),
        "2i is put in proportion to K, and not to K − 2": of(-2 * i / (width - 2)),
        "use the base that is given": positions.rotary_table(
            length, width, 10000.0 if base != 10000.0 else 100.0
        ),
    }


def _misturned(x, table, pairs):
    """What plausible mistakes in a plane make of y, by what to say of them."""
    cos, sin = np.moveaxis(table[: x.shape[-2]], 1, 0)
    half = slice(0, D // 2), slice(D // 2, D)
    first, second = (slice(0, D, 2), slice(1, D, 2)) if pairs == "neighbours" else half
    a, b = x[..., first], x[..., second]
    turned = a * cos - b * sin

    def joined(y_a, y_b):
        y = np.empty_like(x)
        y[..., first], y[..., second] = y_a, y_b
        return y

    return {
        "y_b is made of x_a, not of y_a: has x been written over?": (
            joined(turned, turned * sin + b * cos)
        ),
        "that is a reflection: of a rotation's four entries only a sine has a minus": (
            joined(a * cos + b * sin, a * sin - b * cos)
        ),
        "only one of the two sines has a minus, that of y_a": joined(turned, b * cos - a * sin),
    }


def _reordered(y, pairs):
    """y with the first features of all pairs before the second ones, or the reverse."""
    axes = (-1, 2) if pairs == "neighbours" else (2, D // 2)
    return y.reshape(*y.shape[:-1], *axes).swapaxes(-1, -2).reshape(y.shape)


@part(45, "27")
def check_grouped_query_attention(forward, backward):
    shapes = (B, T, WIDTH), (B, S, WIDTH), (B, S, WIDTH), (2, WIDTH, WIDTH)
    *inputs, (w_query, w_output) = normal(27, *shapes)
    for count in (GROUPS, 1, HEADS):
        of_groups = normal(count, (2, WIDTH, WIDTH // HEADS * count))
        whole = *inputs, w_query, *of_groups[0], w_output, HEADS
        expected, what = _grouped(*whole), f"y of {HEADS} heads in {count} groups"
        hint = (
            "it is the attention of multi_head_attention, once keys and values of each group "
            "are there for all of its heads"
        )
        expect_y(forward, whole, expected, what, hint, _wrong_groups(inputs, whole, count))
    of_groups = normal(GROUPS, (2, WIDTH, WIDTH // HEADS * GROUPS))[0]
    whole = *inputs, w_query, *of_groups, w_output, HEADS
    masked = *whole, SOURCE_MASK
    mistakes = {"the mask is to be handed on": _grouped(*whole)}
    hint = "the mask is the same for all heads"
    expect_y(forward, masked, _grouped(*masked), "y with a mask", hint, mistakes)
    mistakes = {"p and rng are to be handed on": _grouped(*masked)}
    expected = _grouped(*masked, P, generator())
    forward = with_dropout(forward)
    hint = "the dropout is that of the attention, and nothing else draws"
    expect_y(forward, masked, expected, "y with dropout", hint, mistakes)
    pair = groups.grouped_query_attention, groups.grouped_query_attention_backward
    shared = (
        "keys and values of a group serve several heads, so that their gradient is the sum over "
        "these; and each line goes back with the cache of its own"
    )
    hints = dict.fromkeys(("dw_value", "dvalue", "dw_key", "dkey"), shared)
    check_gradients_of_heads(forward, backward, masked, pair, hints)
    return check_gradients(forward, backward, masked, directions=3)  # each has been compared


def _grouped(*arguments):
    return groups.grouped_query_attention(*arguments)[0]


def _wrong_groups(inputs, whole, count):
    """What plausible mistakes make of grouped queries, by what to say of them."""
    _, key, _, w_query, w_key, w_value, w_output, _ = whole
    columns = np.arange(w_key.shape[1]).reshape(count, -1)
    tiled = columns[np.arange(HEADS) % count].ravel()
    repeated = columns[np.arange(HEADS) * count // HEADS].ravel()
    first = columns[np.zeros(HEADS, int)].ravel()

    def with_columns(of_keys, of_values, query=w_query):
        maps = query, w_key[:, of_keys], w_value[:, of_values], w_output
        return _grouped(*inputs, *maps, HEADS)

    mistakes = {
        "the scores are divided by √K once, in scaled_dot_product_attention": with_columns(
            *2 * [columns.ravel()], w_query / math.sqrt(WIDTH // HEADS)
        ),
        "the values are made of value": _grouped(inputs[0], key, key, *whole[3:]),
        "the heads are merged and multiplied by w_output": _grouped(
            *inputs, w_query, w_key, w_value, np.eye(WIDTH), HEADS
        ),
    }
    if 1 < count < HEADS:
        mistakes |= {
            "heads that share a group stand in a row, 0 0 0 1 1 1: repeated; yours are tiled, "
            "0 1 0 1 0 1": with_columns(tiled, tiled),
            "the values are to be repeated as the keys are, and yours are tiled": with_columns(
                repeated, tiled
            ),
            "the keys are to be repeated as the values are, and yours are tiled": with_columns(
                tiled, repeated
            ),
            "there are G groups, and all your heads look into the first": with_columns(
                first, first
            ),
        }
    return mistakes


@part(10, "27")
def check_adamw_update(adamw_update):
    rng = np.random.default_rng(27)
    data, m, v = rng.standard_normal(6), rng.standard_normal(6), rng.random(6)
    for t, scale in ((2, 1.0), (3, 0.5)):
        grad = rng.standard_normal(6)
        constants = 0.1, t, 0.8, 0.95, 0.02, 0.3
        wanted = [array.copy() for array in (data, grad, m, v)]
        package_update(*wanted, *constants, scale)
        before, given_grad = [data.copy(), m.copy(), v.copy()], grad.copy()
        with unheard():
            adamw_update.writing(data, given_grad, m, v, *constants, scale)
        if not np.array_equal(given_grad, grad):
            raise CheckError("adamw_update wrote to grad, which is to be left as it is")
        if all(map(np.array_equal, before, (data, m, v))):
            raise CheckError(
                "adamw_update changed nothing: write to the arrays that are given, as data *= ... "
                "does"
            )
        _compare_decay(t, scale, (data, m, v), wanted, before, grad, constants)


def _compare_decay(t, scale, given, wanted, before, grad, constants):
    """Compare the moments first, as θ is wrong where they are."""
    *of_adam, decay = constants
    eta, kept = of_adam[0], 1 - of_adam[0] * decay
    wanted_data, _, wanted_m, wanted_v = wanted

    def adam(data, grad):
        data, grad, m, v = arrays = [array.copy() for array in (data, grad, *before[1:])]
        adam_update(*arrays, *of_adam, scale)
        return data, m, v

    decayed = adam(before[0], grad + decay * before[0])
    after = adam(before[0], grad)[0]
    unscaled = adam(before[0], grad / scale)
    for name, i, moment in (("m", 1, wanted_m), ("v", 2, wanted_v)):
        mistakes = {
            "the decay stands beside the gradient, not in it: the moments are Adam's": decayed[i],
            "hand scale on: the gradient is scale · grad": unscaled[i],
        }
        hint = "the moments are those of adam_update, which takes all but the decay"
        expect(f"{name} after step {t}", given[i], moment, hint, mistakes)
    mistakes = {
        "the parameters shrink, too, by η λ of themselves": after,
        "write to data itself, as in data *= ...": before[0],
        "they shrink by η λ, not by λ": after - decay * before[0],
        "they shrink: multiply by 1 − η λ": after + eta * decay * before[0],
        "multiply by 1 − η λ, not by η λ": after - kept * before[0],
        "what shrinks is θ before the step of Adam": after * kept,
    }
    hint = "θ ← (1 − η λ) θ, and then the step of Adam"
    expect(f"data after step {t}", given[0], wanted_data, hint, mistakes)
