"""How encoder layer and decoder layer are checked, against the modules of the package."""

import dataclasses
from itertools import pairwise

import numpy as np

from minitransformer.cases.case import SOURCE_MASK, TARGET_MASK, B, D, H, S, T
from minitransformer.cases.models import small_config
from minitransformer.course.exercises.own.common import (
    expect_gradients,
    expect_right,
    expect_y,
    generator,
    gradients_of,
)
from minitransformer.course.exercises.own.layers import network_weights
from minitransformer.course.exercises.parts import Answer, part
from minitransformer.gradcheck import CheckError
from minitransformer.gradcheck.pair import read_only, returned
from minitransformer.models.stacks import DecoderLayer, EncoderLayer

NO_DROPOUT, DROPOUT = (0.0, 0.0, 0.0), (0.3, 0.2, 0.4)  # p, attention_p, hidden_p
ATTENTION = "w_query", "w_key", "w_value", "w_output"
NORM = "gamma", "beta"
NETWORK = "w_1", "b_1", "w_2", "b_2"
HINTS = {
    "dx": "x goes past the sublayer, and into it as query, key and value: dx is the sum of all",
    "dmemory": "the memory is key and value of the cross-attention: dmemory is the sum of both",
}
ON_THE_WAY = (
    "each line of the forward goes back with the cache of its own, and where it used an array "
    "twice the two gradients are added"
)


@part(45, "11")
def check_encoder_layer(forward, backward):
    groups = {"attention": ATTENTION, "attention_norm": NORM}
    groups |= {"network": NETWORK, "network_norm": NORM}
    layer = _Layer(EncoderLayer, {"x": (B, S, D)}, (SOURCE_MASK,), groups)
    layer.check(forward, backward)


@part(45, "11")
def check_decoder_layer(forward, backward):
    groups = {"self_attention": ATTENTION, "self_norm": NORM}
    groups |= {"cross_attention": ATTENTION, "cross_norm": NORM}
    groups |= {"network": NETWORK, "network_norm": NORM}
    shapes = {"x": (B, T, D), "memory": (B, S, D)}
    layer = _Layer(DecoderLayer, shapes, (TARGET_MASK, SOURCE_MASK), groups)
    layer.check(forward, backward)


class _Layer:
    """A layer whose parameters come in tuples, and inputs for it.

    Args:
        module: the class of the package that computes the same.
        shapes: of x, and of the memory where there is one, by name.
        masks: one for each attention.
        groups: the names of the parameters, by the name of the tuple that they are in; these are
            the parameters of the module, in its order.
    """

    def __init__(self, module, shapes, masks, groups):
        rng = np.random.default_rng(11)
        draw = {ATTENTION: _attention_weights, NORM: _norm_weights, NETWORK: network_weights}
        self.module, self.masks, self.groups = module, masks, groups
        sequences = [rng.standard_normal(shape) for shape in shapes.values()]
        parameters = [array for names in groups.values() for array in draw[names](rng)]
        self.arrays = [read_only(array) for array in (*sequences, *parameters)]
        self.names = [*shapes, *(f"{group}.{name}" for group in groups for name in groups[group])]
        sizes = [len(names) for names in groups.values()]
        self.ends = np.cumsum([len(shapes), *sizes])  # of the sequences and of each tuple in arrays

    def check(self, forward, backward):
        """Raise a CheckError unless y and its gradients are those of the package."""
        for pre_norm in (False, True):
            self._check_y(forward, pre_norm)
            self._check_gradients(forward, backward, pre_norm)
        for pre_norm in (False, True):
            self._check_as_a_pair(forward, backward, pre_norm)

    def _check_as_a_pair(self, forward, backward, pre_norm):
        """What ``check_pair`` says where each entry of the gradients has been compared."""

        def of_arrays(*arrays):
            options = self._options(self.masks, pre_norm, 0.01, DROPOUT)
            return forward.function(*self._grouped(arrays), *options)

        def flat(dy, cache):
            return self._flat(backward.function(dy, cache))

        pair = Answer(forward.name, of_arrays), Answer(backward.name, flat)
        expect_right(*pair, self.arrays, names=self.names, directions=3)

    def _check_y(self, forward, pre_norm):
        """Compare y, with one more thing each time that may go wrong."""
        unmasked = (None,) * len(self.masks)
        formula = "x + Sublayer(LayerNorm(x))" if pre_norm else "LayerNorm(x + Sublayer(x))"
        of_sublayers = f"each sublayer makes {formula} of x" + (
            ", and the memory is key and value of the second" if "memory" in self.names else ""
        )
        of_dropout = (
            "p is for what a sublayer returns, attention_p for the weights of attention, hidden_p "
            "for the network; each draws from rng when its turn comes"
        )
        for what, masks, epsilon, dropout, hint in (
            ("", unmasked, 1e-5, NO_DROPOUT, of_sublayers),
            (", masked", self.masks, 1e-5, NO_DROPOUT, "each attention gets its own mask"),
            (", masked, epsilon=0.01", self.masks, 0.01, NO_DROPOUT, "each LayerNorm gets epsilon"),
            (", masked, epsilon=0.01, with dropout", self.masks, 0.01, DROPOUT, of_dropout),
        ):
            options = self._options(masks, pre_norm, epsilon, dropout)
            expected, *_ = self._expected(masks, pre_norm, epsilon, dropout)
            other, *_ = self._expected(masks, not pre_norm, epsilon, dropout)
            mistakes = {f"with pre_norm={pre_norm} a sublayer makes {formula} of x": other}
            what, inputs = f"y with pre_norm={pre_norm}{what}", self._grouped(self.arrays)
            expect_y(forward, (*inputs, *options), expected, what, hint, mistakes)

    def _check_gradients(self, forward, backward, pre_norm):
        """Compare the gradients in the order in which a backward meets them."""
        options = self._options(self.masks, pre_norm, 0.01, DROPOUT)
        _, cache = forward.y_and_cache(*self._grouped(self.arrays), *options)
        _, dy, expected = self._expected(self.masks, pre_norm, 0.01, DROPOUT)
        of_sequences, groups = self.names[: self.ends[0]], self.groups
        names = [*(f"d{name}" for name in of_sequences), *(f"the tuple d{g}" for g in groups)]
        given = gradients_of(backward, dy, cache, names)
        self._check_groups(backward, given[self.ends[0] :])
        given, expected = (
            dict(zip((f"d{name}" for name in self.names), gradients, strict=True))
            for gradients in (self._flat(given), expected)
        )
        order = [f"d{name}" for name in self._backwards(pre_norm)]
        what = f"with pre_norm={pre_norm}"
        expect_gradients(what, given, {name: expected[name] for name in order}, HINTS, ON_THE_WAY)

    def _backwards(self, pre_norm):
        """The names of the arrays, those that a backward meets first in front."""
        groups = list(self.groups)[::-1]  # LayerNorm, sublayer, LayerNorm, ...
        if pre_norm:
            groups = [
                group for pair in zip(groups[1::2], groups[::2], strict=True) for group in pair
            ]
        names = [f"{group}.{name}" for group in groups for name in self.groups[group][::-1]]
        return [*names, *self.names[: self.ends[0]][::-1]]

    def _check_groups(self, backward, gradients):
        """Raise unless these are a tuple of gradients for each tuple of parameters."""
        for of_group, (group, names) in zip(gradients, self.groups.items(), strict=True):
            if not isinstance(of_group, tuple | list) or len(of_group) != len(names):
                parts = ", ".join(f"d{name}" for name in names)
                raise CheckError(
                    f"d{group}, which {backward.name} returns, must be a tuple, ({parts}); "
                    f"it is {returned(of_group)}"
                )

    def _expected(self, masks, pre_norm, epsilon, dropout):
        """y, some dy, and the gradients of all arrays, by the package."""
        p, attention_p, hidden_p = dropout
        config = dataclasses.replace(
            small_config("pre" if pre_norm else "post"),
            epsilon=epsilon,
            dropout=p,
            attention_dropout=attention_p,
            feed_forward_dropout=hidden_p,
        )
        module = self.module(config, np.random.default_rng(0))
        sequences, weights = self.arrays[: self.ends[0]], self.arrays[self.ends[0] :]
        parameters = [parameter for _, parameter in module.named_parameters()]
        for parameter, weight in zip(parameters, weights, strict=True):
            parameter.data, parameter.grad = weight, np.zeros_like(weight)
        y, cache = module.forward(*sequences, *masks, generator())
        dy = np.random.default_rng(12).standard_normal(y.shape)
        dsequences = module.backward(dy, cache)
        dsequences = dsequences if isinstance(dsequences, tuple) else (dsequences,)
        return y, dy, [*dsequences, *(parameter.grad for parameter in parameters)]

    def _options(self, masks, pre_norm, epsilon, dropout):
        return H, *masks, pre_norm, epsilon, *dropout, generator()

    def _grouped(self, arrays):
        """The arrays as a learner's forward takes them, those of a tuple in a tuple."""
        groups = [tuple(arrays[i:j]) for i, j in pairwise(self.ends)]
        return *arrays[: self.ends[0]], *groups

    def _flat(self, gradients):
        """What a learner's backward returns, one after the other."""
        of_sequences, of_groups = gradients[: self.ends[0]], gradients[self.ends[0] :]
        return *of_sequences, *(gradient for group in of_groups for gradient in group)


def _attention_weights(rng):
    return rng.standard_normal((4, D, D)) / np.sqrt(D)


def _norm_weights(rng):
    return rng.uniform(0.5, 1.5, D), rng.uniform(-0.5, 0.5, D)
