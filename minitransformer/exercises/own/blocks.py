"""How encoder layer and decoder layer are checked, against the modules of the package."""

import dataclasses
from itertools import pairwise

import numpy as np

from minitransformer.exercises.own.common import all_right, generator, likely, quietly, y_of
from minitransformer.exercises.own.layers import network_weights
from minitransformer.exercises.parts import expect, read_only, y_and_cache
from minitransformer.gradcheck import CheckError, check_pair
from minitransformer.gradcheck.cases import SOURCE_MASK, TARGET_MASK, B, D, H, S, T, small_config
from minitransformer.transformer import DecoderLayer, EncoderLayer

NO_DROPOUT, DROPOUT = (0.0, 0.0, 0.0), (0.3, 0.2, 0.4)  # p, attention_p, hidden_p
ATTENTION = "w_query", "w_key", "w_value", "w_output"
NORM = "gamma", "beta"
NETWORK = "w_1", "b_1", "w_2", "b_2"
OF_X = (
    "x is used several times, past each sublayer and in it, there as query, key and value: dx is "
    "the sum of the gradients of all uses"
)
OF_MEMORY = "the memory is key and value of the cross-attention: dmemory is the sum of both"


def check_encoder_layer(forward, backward):
    groups = {"attention": ATTENTION, "attention_norm": NORM}
    groups |= {"network": NETWORK, "network_norm": NORM}
    layer = _Layer("encoder_layer", EncoderLayer, {"x": (B, S, D)}, (SOURCE_MASK,), groups)
    return layer.check(forward, backward, {"dx": OF_X})


def check_decoder_layer(forward, backward):
    groups = {"self_attention": ATTENTION, "self_norm": NORM}
    groups |= {"cross_attention": ATTENTION, "cross_norm": NORM}
    groups |= {"network": NETWORK, "network_norm": NORM}
    shapes = {"x": (B, T, D), "memory": (B, S, D)}
    layer = _Layer("decoder_layer", DecoderLayer, shapes, (TARGET_MASK, SOURCE_MASK), groups)
    return layer.check(forward, backward, {"dmemory": OF_MEMORY, "dx": OF_X})


class _Layer:
    """A layer whose parameters come in tuples, and inputs for it.

    Args:
        name: of the learner's forward.
        module: the class of the package that computes the same.
        shapes: of x, and of the memory where there is one, by name.
        masks: one for each attention.
        groups: the names of the parameters, by the name of the tuple that they are in; these are
            the parameters of the module, in its order.
    """

    def __init__(self, name, module, shapes, masks, groups):
        rng = np.random.default_rng(11)
        draw = {ATTENTION: _attention_weights, NORM: _norm_weights, NETWORK: network_weights}
        self.name, self.module, self.masks, self.groups = name, module, masks, groups
        self.sequences = [rng.standard_normal(shape) for shape in shapes.values()]
        self.parameters = [array for names in groups.values() for array in draw[names](rng)]
        self.names = [*shapes, *(f"{g}.{name}" for g, names in groups.items() for name in names)]

    def check(self, forward, backward, hints):
        """A Report on the pair; ``hints`` as for :func:`all_right`."""
        for pre_norm in (False, True):
            self._check_y(forward, pre_norm)
            self._check_form_of_gradients(forward, backward, pre_norm)
        reports = (
            check_pair(
                self._flat(forward, self.masks, pre_norm, 0.01, DROPOUT),
                lambda dy, cache: self._flattened(backward(dy, cache)),
                (*self.sequences, *self.parameters),
                names=self.names,
            )
            for pre_norm in (False, True)
        )
        return all_right(reports, hints)

    def _check_y(self, forward, pre_norm):
        """Compare y, with one more thing each time that may go wrong."""
        unmasked = (None,) * len(self.masks)
        formula = "x + Sublayer(LayerNorm(x))" if pre_norm else "LayerNorm(x + Sublayer(x))"
        for what, masks, epsilon, dropout, hint in (
            ("", unmasked, 1e-5, NO_DROPOUT, f"each sublayer makes {formula} of x, one by one"),
            (", masked", self.masks, 1e-5, NO_DROPOUT, "each attention gets its own mask"),
            (", masked, epsilon=0.01", self.masks, 0.01, NO_DROPOUT, "each LayerNorm gets epsilon"),
            (
                ", masked, epsilon=0.01, with dropout",
                self.masks,
                0.01,
                DROPOUT,
                "p is for what a sublayer returns, attention_p for the weights of attention, "
                "hidden_p for the network; each draws from rng when its turn comes",
            ),
        ):
            options = masks, pre_norm, epsilon, dropout
            y = y_of(self.name, self._flat(forward, *options), *self.sequences, *self.parameters)
            other = self._expected(masks, not pre_norm, epsilon, dropout)
            mistakes = {f"{formula} is what pre_norm={pre_norm} asks for": other}
            what = f"y with pre_norm={pre_norm}{what}"
            expect(what, y, self._expected(*options), hint=likely(y, mistakes, hint))

    def _check_form_of_gradients(self, forward, backward, pre_norm):
        """Raise unless backward returns a gradient for each sequence, then a tuple for each tuple.

        Raises:
            CheckError: it does not, or fails.
        """
        flat = self._flat(forward, self.masks, pre_norm, 0.01, NO_DROPOUT)
        y, cache = y_and_cache(self.name, flat, *self.sequences, *self.parameters)
        name = f"{self.name}_backward"
        result = quietly(name, backward, read_only(np.ones_like(y)), cache)
        wanted = [*(f"d{name}" for name in self.names[: len(self.sequences)])]
        wanted += [f"d{group}" for group in self.groups]
        if not isinstance(result, tuple | list) or len(result) != len(wanted):
            raise CheckError(f"{name} must return {', '.join(wanted)}")
        of_groups = result[len(self.sequences) :]
        for gradient, (group, names) in zip(of_groups, self.groups.items(), strict=True):
            if not isinstance(gradient, tuple | list) or len(gradient) != len(names):
                parts = ", ".join(f"d{name}" for name in names)
                raise CheckError(f"of what {name} returns, d{group} must be a tuple, ({parts})")

    def _expected(self, masks, pre_norm, epsilon, dropout):
        """The y of the package."""
        p, attention_p, hidden_p = dropout
        config = dataclasses.replace(
            small_config("pre" if pre_norm else "post"),
            epsilon=epsilon,
            dropout=p,
            attention_dropout=attention_p,
            feed_forward_dropout=hidden_p,
        )
        module = self.module(config, np.random.default_rng(0))
        for (_, parameter), array in zip(module.named_parameters(), self.parameters, strict=True):
            parameter.data = array
        return module.forward(*self.sequences, *masks, generator())[0]

    def _flat(self, forward, masks, pre_norm, epsilon, dropout):
        """The learner's forward as a function of the sequences and of each parameter by itself."""
        sizes = [len(names) for names in self.groups.values()]
        ends = np.cumsum([len(self.sequences), *sizes])

        def flat_forward(*arrays):
            groups = [arrays[i:j] for i, j in pairwise(ends)]
            options = H, *masks, pre_norm, epsilon, *dropout, generator()
            return forward(*arrays[: ends[0]], *groups, *options)

        return flat_forward

    def _flattened(self, gradients):
        count = len(self.sequences)
        return *gradients[:count], *(d for group in gradients[count:] for d in group)


def _attention_weights(rng):
    return rng.standard_normal((4, D, D)) / np.sqrt(D)


def _norm_weights(rng):
    return rng.uniform(0.5, 1.5, D), rng.uniform(-0.5, 0.5, D)
