"""Slips of the pen in the package's own backwards, each a row: what is written in place of what.

Each is tried on the very case of the package that has to catch it. A newcomer's slip is a row here.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace

from battery.table import slipped

from minitransformer.cases import CASES
from minitransformer.layers.additive_attention import additive_attention_backward
from minitransformer.layers.alibi import alibi_attention, alibi_attention_backward
from minitransformer.layers.attention import (
    multi_head_attention_backward,
    scaled_dot_product_attention_backward,
)
from minitransformer.layers.batch_norm import (
    BatchNorm,
    batch_norm_backward,
    running_norm_backward,
)
from minitransformer.layers.bidirectional import Bidirectional, _halves
from minitransformer.layers.convolution import convolution_backward, windows_backward
from minitransformer.layers.convolution_2d import (
    convolution_2d_backward,
    windows_2d_backward,
)
from minitransformer.layers.dropout import dropout_backward
from minitransformer.layers.elman import elman_cell_backward
from minitransformer.layers.embedding import OutputProjection, embedding_backward
from minitransformer.layers.feed_forward import feed_forward_backward
from minitransformer.layers.gated_linear_unit import gated_linear_unit_backward
from minitransformer.layers.gelu import gelu_backward, gelu_by_tanh_backward
from minitransformer.layers.grouped_query_attention import (
    grouped_query_attention_backward,
    repeat_groups_backward,
)
from minitransformer.layers.gru import gru_cell_backward
from minitransformer.layers.layer_norm import layer_norm_backward
from minitransformer.layers.learned_positions import learned_positions_backward
from minitransformer.layers.linear import linear_backward
from minitransformer.layers.linear_attention import (
    feature_backward,
    linear_attention_backward,
)
from minitransformer.layers.local_response_norm import local_response_norm_backward
from minitransformer.layers.low_rank import LowRankLinear, low_rank_linear_backward
from minitransformer.layers.lstm import lstm_cell_backward
from minitransformer.layers.mixture_of_experts import MixtureOfExperts, route_backward
from minitransformer.layers.patches import class_token_backward, patches_backward
from minitransformer.layers.pooling import (
    average_pooling_backward,
    global_average_pooling_backward,
    max_pooling_backward,
)
from minitransformer.layers.positional_encoding import positional_encoding_backward
from minitransformer.layers.recurrence import recurrence_backward
from minitransformer.layers.relu import relu_backward
from minitransformer.layers.residual import residual_backward
from minitransformer.layers.restricted_attention import (
    restricted_attention,
    restricted_attention_backward,
)
from minitransformer.layers.rms_norm import rms_norm_backward
from minitransformer.layers.rotary import rotary_backward
from minitransformer.layers.segment_attention import (
    segment_attention,
    segment_attention_backward,
)
from minitransformer.layers.sigmoid import sigmoid_backward
from minitransformer.layers.silu import silu_backward
from minitransformer.layers.softmax import softmax_backward
from minitransformer.layers.swiglu import swiglu_backward
from minitransformer.layers.tanh import tanh_backward
from minitransformer.layers.tiled_attention import tiled_attention, tiled_attention_backward
from minitransformer.layers.zero_padded_shortcut import zero_padded_shortcut_backward
from minitransformer.loss.consistency import consistency_backward
from minitransformer.loss.cross_entropy import cross_entropy_backward
from minitransformer.loss.projected_loss import projected_loss_backward
from minitransformer.models.alexnet import ConvolutionPooling, Hidden
from minitransformer.models.convolution_norm import ConvolutionNorm, NormConvolution
from minitransformer.models.convolutional_translator import (
    ConvolutionalTranslator,
    GatedConvolution,
)
from minitransformer.models.language_model import LanguageModel
from minitransformer.models.recurrent_translator import RecurrentTranslator, TanhLinear
from minitransformer.models.residual_blocks import Block
from minitransformer.models.residual_network import ResidualNetwork
from minitransformer.models.small_network import SmallNetwork
from minitransformer.models.stacks import Decoder, DecoderLayer, EncoderLayer
from minitransformer.models.sublayers import (
    ActivatedFeedForward,
    GatedFeedForward,
    SelfAttention,
)
from minitransformer.models.token_model import TokenModel
from minitransformer.models.vision_transformer import VisionTransformer

BY_NAME = {case.name: case for case in CASES}


@dataclass(frozen=True, eq=False)
class Slip:
    """A function of the package with a slip.

    Attributes:
        case: the name of the case that has to catch it.
        function: what is written otherwise, a function or a method of a class.
        slip: the changed texts, {was: is}; each was must stand there once.
        wrong: the gradients that are wrong then, and no others: "all", or words of which each of
            their names has one, as ``w_hidden`` is one of ``layer.w_hidden.grad``.
        truth: what was done wrong, in a few words.
        says: what the diagnosis of each of them has to say. Without it none has to be known, and
            one direction tells whether a gradient is right.
    """

    case: str
    function: Callable
    slip: dict
    wrong: str
    truth: str
    says: str = ""

    def check(self, patch):
        """The Report of the case while the slip is made, by a pytest MonkeyPatch."""
        write(self.function, self.slip, patch)
        case = BY_NAME[self.case]
        return (case if self.says else replace(case, directions=1)).check()

    def found(self, names):
        """``names`` of wrong gradients in the words of ``wrong``; those without one as they are."""
        words = set(self.wrong.split())
        each = [words & set(name.removesuffix(".grad").split(".")) or {name} for name in names]
        return set().union(*each)

    def __str__(self):
        return f"{self.case}: {self.truth}"


def write(function, changes, patch):
    """Write a function of the package otherwise, for whoever has imported it, too."""
    function = inspect.unwrap(function)
    patch.setattr(function, "__code__", inspect.unwrap(slipped(function, changes)).__code__)


LAYERS = [
    Slip("linear", linear_backward, {"dy.sum(axis=0)": "dy.mean(axis=0)"}, "dbias",
         "the bias has a mean", "12 times too small: 12 is N, the number of rows"),
    Slip("linear", linear_backward, {"(dy @": "(-2 * dy @"}, "dx", "sign and factor",
         "2 times too large and of the wrong sign"),
    Slip("linear", linear_backward, {"x.reshape(-1, d_in).T @ dy": "x[-1].T @ dy[-x.shape[1] :]"},
         "dweight", "the weight has the last sentence's only",
         "it sums over the last index of axis 0 of dy only"),
    Slip("linear", linear_backward,
         {"dy.sum(axis=0)": "np.where(np.arange(d_out) == 3, np.nan, dy.sum(axis=0))"}, "dbias",
         "NaN", "1 of its 7 entries are NaN"),
    Slip("linear", linear_backward, {"(-1, d_in).T @ dy": "(-1, d_in).T @ dy + 0.1 * weight"},
         "dweight", "weight decay slipped in",
         "a term without dy is added to it: 0.1 times weight, as of weight decay"),
    Slip("linear, no bias", linear_backward, {"dx = (dy @": "dx = (0 * dy @"}, "dx",
         "nothing comes back", "zero everywhere"),
    Slip("residual, post-norm", linear_backward, {"weight.T)": "weight)"}, "dx",
         "the weight is not transposed", "`weight` has to be transposed"),
    Slip("residual, pre-norm", residual_backward, {"return dz,": "return 0 * dz,"}, "dx",
         "nothing goes past the sublayer", "dy itself is missing"),
    Slip("relu", relu_backward, {"dy * alive": "dy"}, "dx", "the mask is forgotten",
         "where x is negative it is"),
    Slip("relu", relu_backward, {"return dy * alive": "pass"}, "dx", "the return is forgotten",
         "backward returned None"),
    Slip("sigmoid", sigmoid_backward, {"dy * y * (1 - y)": "dy * y"}, "dx",
         "σ for its derivative", "the factor (1 − y) is missing"),
    Slip("sigmoid", sigmoid_backward, {"y * (1 - y)": "(1 - y * y)"}, "dx", "that of tanh",
         "it is dy times (1 − y²); it should be dy times y (1 − y)"),
    Slip("sigmoid", sigmoid_backward, {"* y * (1 - y)": "* sigmoid(y)[0] * (1 - sigmoid(y)[0])"},
         "dx", "at y, not at x", "the derivative is taken at y; it has to be taken at x"),
    Slip("tanh", tanh_backward, {"dy * (1 - y * y)": "dy"}, "dx", "it is passed over",
         "dy is handed on as it is"),
    Slip("tanh", tanh_backward, {"y * y": "y"}, "dx", "1 − y for 1 − y²"),
    Slip("tanh", tanh_backward, {"1 - y * y": "y * (1 - y)"}, "dx", "that of the sigmoid",
         "it is dy times y (1 − y); it should be dy times (1 − y²)"),
    Slip("tanh", tanh_backward, {"y = cache": "y = tanh(cache)[0]"}, "dx", "at y, not at x",
         "the derivative is taken at y; it has to be taken at x"),
    Slip("softmax", softmax_backward, {"return weights": "return 0 * weights"}, "dx",
         "nothing comes back", "zero everywhere"),
    Slip("softmax", softmax_backward, {" - (dweights * weights).sum(axis=-1, keepdims=True)": ""},
         "dx", "no sum over the row", "`weights.sum(axis=-1, keepdims=True)`"),
    Slip("softmax", softmax_backward, {"return weights *": "return weights / len(weights) *"},
         "dx", "divided by the batch size", "3 times too small: 3 is the batch size"),
    Slip("dropout", dropout_backward,
         {"* keep * scale": "* np.random.default_rng(2).permutation(keep) * scale"}, "dx",
         "another mask", "was the dropout mask drawn again"),
    Slip("dropout", dropout_backward, {"keep * scale": "keep"}, "dx", "not scaled",
         "1.42857 times too small"),
    Slip("layer_norm", layer_norm_backward,
         {"dx_hat = dy * gamma": "dx_hat = dy", "dx = (": "dx = gamma * ("}, "dx", "γ outside",
         "a gain such as gamma is multiplied after the mean terms"),
    Slip("layer_norm", layer_norm_backward, {" - through_mean": ""}, "dx", "no mean of dx̂",
         "the path through `x.mean(axis=-1, keepdims=True)`"),
    Slip("layer_norm", layer_norm_backward, {" - through_sigma": ""}, "dx", "no mean of dx̂ x̂",
         "the path through `(centred * centred).mean(axis=-1, keepdims=True)`"),
    Slip("layer_norm", layer_norm_backward, {" - through_mean - through_sigma": ""}, "dx",
         "neither mean", "are taken for constants: the paths through them are missing"),
    Slip("layer_norm", layer_norm_backward, {"dy * gamma": "dy"}, "dx", "γ forgotten",
         "the factor `gamma` is forgotten"),
    Slip("layer_norm", layer_norm_backward, {"through_sigma) / sigma": "through_sigma)"}, "dx",
         "not divided by σ", "each row is off by a factor of its own"),
    Slip("layer_norm", layer_norm_backward, {"(dy * x_hat).sum": "(dy * x_hat * sigma).sum"},
         "dgamma", "x − μ for x̂", "in place of `x_hat`"),
    Slip("layer_norm", layer_norm_backward, {"dx, dgamma, dbeta\n": "dx, dbeta, dgamma\n"},
         "dgamma dbeta", "γ and β exchanged", "were two gradients exchanged?"),
    Slip("embedding", embedding_backward,
         {"scatter_add(dweight, ids, dx * scale)": "dweight[ids] = dx * scale"}, "dweight",
         "the last of repeated tokens wins", "entries come more than once"),
    Slip("embedding", embedding_backward, {"dx * scale": "dx"}, "dweight", "not scaled",
         "2.44949 times too small: 2.44949 is √6, the root of the size of axis 1 of weight"),
    Slip("embedding, tied to the projection", OutputProjection.backward,
         {"self.weight.grad += dweight_transposed.T": "pass"}, "weight", "the tie is forgotten"),
    Slip("positional_encoding", positional_encoding_backward, {"return dy": "return dy[::-1]"},
         "dx", "the last sentence first", "it is the right gradient reversed along axis 0"),
    Slip("learned_positions", learned_positions_backward, {"dy.sum": "dy.mean"}, "dtable",
         "a mean over sentences", "3 times too small: 3 is the batch size"),
    Slip("learned_positions", learned_positions_backward, {"dy.sum(axis=0)": "dy[-1]"}, "dtable",
         "the last sentence only", "it sums over the last index of axis 0 of dy only"),
    Slip("learned_positions", learned_positions_backward,
         {"[: dy.shape[1]]": "[-dy.shape[1] :]"}, "dtable", "the last rows for the first",
         "its halves along axis 0 are right and in another order"),
    Slip("feed_forward", feed_forward_backward, {"dh = relu_backward(dh, relu_cache)": "pass"},
         "dx dw_1 db_1", "the ReLU is passed over", "the condition, a mask, is forgotten"),
]
ATTENTION = [
    Slip("attention", scaled_dot_product_attention_backward, {"_cache) * scale": "_cache)"},
         "dquery dkey", "scores not scaled",
         "1.73205 times too large: 1.73205 is √3, the root of the head width d_k"),
    Slip("attention", scaled_dot_product_attention_backward,
         {"return dquery, dkey, dvalue": "return dquery, dvalue, dkey"}, "dkey dvalue",
         "key and value exchanged", "were two gradients exchanged?"),
    Slip("attention", scaled_dot_product_attention_backward,
         {"swapaxes(-1, -2) @ dy": "swapaxes(-1, -2) @ dy / 5"}, "dvalue",
         "divided by the length", "5 times too small"),
    Slip("attention", scaled_dot_product_attention_backward,
         {"return dquery, dkey, dvalue": "return dquery, None, dvalue"}, "dkey", "None",
         "backward returned None"),
    Slip("attention, padding mask", scaled_dot_product_attention_backward,
         {"weights.swapaxes": "(weights + 0.1 * (weights == 0)).swapaxes"}, "dvalue",
         "masked keys, too", "leaks into padding"),
    Slip("attention, multi-head self, causal and padding mask", multi_head_attention_backward,
         {"merge_heads(dx) for dx": "dx.reshape(dy.shape) for dx"},
         "dx w_query w_key w_value", "heads merged without moving their axis back"),
    Slip("additive_attention", additive_attention_backward, {"(v * (1 - hidden * hidden))": "v"},
         "dquery dkey of_query of_key", "tanh is passed over"),
    Slip("additive_attention", additive_attention_backward,
         {"softmax_backward(dweights, softmax_cache)": "weights * dweights"},
         "dquery dkey of_query of_key dv", "softmax is passed over"),
    Slip("additive_attention", additive_attention_backward,
         {"dscores.reshape(-1) @ hidden": "weights.reshape(-1) @ hidden"}, "dv", "dv of weights"),
    Slip("additive_attention", additive_attention_backward, {"dz.sum(axis=1)": "dz[:, -1]"},
         "dkey of_key", "the last query only"),
]


def of_another_forward(arguments, where):
    """The change that gives backward the cache of a forward with other arguments."""
    call = f"restricted_attention(query, key, value, num_heads, {arguments})"
    return {"    return y, (": f"    if {where}:\n        return y, {call}[1]\n    return y, ("}


KEYS = "windows_backward(dx.reshape(seen_shape), windows_cache) for dx"
WINDOWS = [
    Slip("restricted_attention", restricted_attention_backward,
         {KEYS: "dx.reshape(batch, -1, 3, size * d_model)[:, :, 1] for dx"}, "dkey dvalue",
         "what goes to the keys of other blocks is dropped"),
    Slip("restricted_attention", restricted_attention_backward,
         {"windows_cache) for dx": "(windows_cache[0], 0, windows_cache[2])) for dx"},
         "dkey dvalue", "keys and values one block too far"),
    Slip("restricted_attention", restricted_attention_backward,
         {KEYS: f"array_namespace(dx).roll({KEYS[:-7]}, 1, axis=1) for dx"}, "dkey dvalue",
         "a block too far, and round", "it is the right gradient shifted along axis 1, 2 too far"),
    Slip("restricted_attention", restricted_attention_backward,
         {"= cache\n": "= cache\n    dy = array_namespace(dy).roll(dy, 1, axis=1)\n"},
         "all", "the last block is filled up at the wrong side"),
    Slip("restricted_attention", restricted_attention,
         of_another_forward("1", where="window == 2"), "all", "the window is off by one"),
    Slip("restricted_attention, causal, padding mask", restricted_attention,
         of_another_forward("2, mask=mask", where="causal"), "all", "backward looks ahead"),
    Slip("restricted_attention, multi-head self, padding mask", restricted_attention,
         of_another_forward("2", where="mask is not None"), "dx w_query w_key w_value",
         "padding is looked at"),
    Slip("convolution", windows_backward,
         {"tap * d : (tap + 1) * d": "(2 - tap) * d : (3 - tap) * d"}, "dx",
         "the kernel is not turned round"),
    Slip("convolution", windows_backward, {"+= dseen": "= dseen"}, "dx",
         "= for += where windows overlap"),
    Slip("convolution, causal", windows_backward, {"before : before + length": ": length"}, "dx",
         "padding cut off at the wrong end",
         "it is the right gradient shifted along axis 1, 3 too far"),
    Slip("convolution, causal", windows_backward,
         {"start : start + length": "6 - start : 6 - start + length",
          "zeros(padded_shape": "zeros((len(dseen), length + 9, d)"},
         "dx", "backward is causal, too"),
    Slip("convolution, causal", convolution_backward,
         {"dweight.reshape(weight_shape)": "np.roll(dweight.reshape(weight_shape), 1, axis=0)"},
         "dweight", "the weight's is shifted by a tap",
         "it is the right gradient shifted along axis 0, 1 too far"),
    Slip("convolution, causal, dilation, padding mask", windows_backward,
         {"enumerate(starts)": "enumerate(range(3))"}, "dx", "the dilation is forgotten"),
    Slip("convolution, padding mask", convolution_backward,
         {"dx if mask is None else dx * mask[..., None]": "dx"}, "dx", "it reaches padding",
         "leaks into padding"),
    Slip("convolution_2d", windows_2d_backward, {"tap, :]": "-1 - tap, :]"}, "dx",
         "the kernel is not turned round"),
    Slip("convolution_2d", windows_2d_backward, {"+= dseen": "= dseen"}, "dx",
         "= for += where windows overlap"),
    Slip("convolution_2d", windows_2d_backward, {"[:, *inner]": "[:, :-2, :-2]"}, "dx",
         "padding cut off at two edges only"),
    Slip("convolution_2d", windows_2d_backward, {"dpadded[:, rows, columns]":
         "dpadded[:, columns.start : rows.stop - rows.start + columns.start, "
         "rows.start : columns.stop - columns.start + rows.start]"}, "dx",
         "rows and columns of taps exchanged"),
    Slip("convolution_2d", convolution_2d_backward, {"dy.sum(axis=(0, 1, 2))":
         "dy.sum(axis=0).mean(axis=(0, 1))"}, "dbias", "the bias has a mean over the picture",
         "35 times too small"),
    Slip("convolution_2d", convolution_2d_backward, {"rows.swapaxes(1, 2) @ dy":
         "rows.swapaxes(1, 2)[:, :, :35] @ dy[:, :35]"}, "dweight",
         "the weight has the first picture's only",
         "it sums over the first index of axis 0 of dy only"),
    Slip("convolution_2d, no padding, no bias", convolution_2d_backward,
         {"together(dkernels, weight_shape)":
          "together(dkernels, weight_shape).swapaxes(0, 1)"}, "dweight",
         "rows and columns of the kernel exchanged", "its axes in the order (1, 0, 2, 3)"),
    Slip("convolution_2d, stride 2", windows_2d_backward,
         {"enumerate(places)": "enumerate((slice(r.start, r.start + dseen.shape[1]), "
          "slice(c.start, c.start + dseen.shape[2])) for r, c in places)"}, "dx",
         "the stride is forgotten"),
    Slip("convolution_2d, width 1, stride 2", windows_2d_backward,
         {"zeros(": "ones("}, "dx", "ones where no window looks"),
    Slip("convolution_2d, dilation 2", windows_2d_backward,
         {"enumerate(places)": "enumerate((slice(r.start // 2, r.stop - r.start // 2), "
          "slice(c.start // 2, c.stop - c.start // 2)) for r, c in places)"}, "dx",
         "the dilation is forgotten"),
    Slip("convolution_2d, groups", convolution_2d_backward,
         {"drows = dy @": "drows = dy[::-1] @"}, "dx", "each group has the other's dy"),
    Slip("convolution_2d, groups", convolution_2d_backward,
         {"together(dkernels, weight_shape)": "dkernels.reshape(weight_shape)"}, "dweight",
         "groups put together without moving their axis back"),
    Slip("convolution_2d, depthwise, stride 2", convolution_2d_backward,
         {"drows.reshape(groups, -1, c)": "drows.reshape(groups, -1, c)[::-1]"}, "dx",
         "the channels of dx in the order of other groups"),
    Slip("pooling, maximum", max_pooling_backward, {"dy[:, :, :, None] * is_largest":
         "dy[:, :, :, None] * (1.0 + 0 * is_largest)"}, "dx", "every entry of a window gets dy"),
    Slip("pooling, maximum", max_pooling_backward,
         {"== place[": "== (kernel_size**2 - 1) - place["}, "dx",
         "each window is turned round", "is the index of the maximum wrong?"),
    Slip("pooling, maximum", max_pooling_backward, {"== place[:, :, :, None]":
         "== place[:1, :, :, None]"}, "dx", "the first picture's maxima for all"),
    Slip("pooling, maximum", max_pooling_backward, {"== place[:, :, :, None]":
         "== place[:, :, :, None, ::-1]"}, "dx", "another channel's maxima"),
    Slip("pooling, average", average_pooling_backward, {" / seen_shape[3]": ""}, "dx",
         "not divided by the window", "4 times too large"),
    Slip("pooling, average", average_pooling_backward, {"/ seen_shape[3]": "/ seen_shape[3]**2"},
         "dx", "divided twice", "4 times too small"),
    Slip("pooling, global average", global_average_pooling_backward,
         {" / (height * columns)": ""}, "dx", "not divided by the pixels",
         "35 times too large"),
    Slip("pooling, global average", global_average_pooling_backward,
         {"(height * columns)": "height"}, "dx", "divided by the rows only", "5 times too large"),
    Slip("gated_linear_unit", gated_linear_unit_backward,
         {"sigmoid_backward(dy * a, gate_cache)": "dy * a * gate"}, "dx", "σ for its derivative",
         "in `sigmoid(b)`"),
    Slip("gated_linear_unit", gated_linear_unit_backward, {"[da, db]": "[db, da]"}, "dx",
         "halves exchanged", "its halves along axis 2 are right and in another order"),
    Slip("gated_linear_unit", gated_linear_unit_backward, {"(dy * a,": "(dy,"}, "dx",
         "the gate without what it gates", "the factor `a` is forgotten"),
    Slip("gated_linear_unit", gated_linear_unit_backward, {"dy * gate\n": "dy\n"}, "dx",
         "what is gated without the gate", "the factor `gate` is forgotten"),
]
BOTH = "as in batch norm, are missing or have a wrong factor"
ONE_CHANNEL = {"sum_of_near(dy * x * power / s, size)": "dy * x * power / s"}
NORMS_AND_PATCHES = [
    Slip("batch_norm", batch_norm_backward, {" - through_mean": ""}, "dx", "no mean of dy",
         "the path through `x.mean(axis=rows)`"),
    Slip("batch_norm", batch_norm_backward, {" - through_sigma": ""}, "dx", "no mean of dy x̂",
         "the path through `(centred * centred).mean(axis=rows)`"),
    Slip("batch_norm", batch_norm_backward, {"(dgamma / count)": "dgamma"}, "dx",
         "a sum for the mean of dy x̂", "is 9 times too large"),
    Slip("batch_norm", batch_norm_backward, {"(gamma / sigma)": "(1 / sigma)"}, "dx",
         "γ forgotten", "the factor `gamma` is forgotten"),
    Slip("batch_norm", batch_norm_backward,
         {"(dy - ": "(dy * gamma - ", "* (gamma / sigma)": "/ sigma"}, "dx",
         "γ with one of three terms", BOTH),
    Slip("batch_norm", batch_norm_backward, {"(dy * x_hat).sum": "(dy * x_hat * sigma).sum"},
         "dx dgamma", "x − μ for x̂"),
    Slip("batch_norm, pictures", batch_norm_backward, {"math.prod(dy.shape[:-1])": "len(dy)"},
         "dx", "the pictures are counted, not their places", BOTH),
    Slip("batch_norm, pictures", BatchNorm.forward, {"(batch_norm_b": "(running_norm_b"}, "dx",
         "as at inference", "are taken for constants: the paths through them are missing"),
    Slip("batch_norm, running statistics", running_norm_backward,
         {"dy * (gamma": "(dy - dbeta / dy[..., 0].size) * (gamma"}, "dx", "as in training",
         "a constant along axis 1, such as mean(dx̂) in batch norm"),
    Slip("batch_norm, running statistics", running_norm_backward, {"gamma / sigma": "gamma"},
         "dx", "not divided by σ", "the division by `sigma` is forgotten"),
    Slip("layer_norm, pictures", layer_norm_backward,
         {"dx_hat.mean(axis=-1": "dx_hat.mean(axis=(1, 2, 3)"}, "dx", "a mean over the picture",
         "a constant in each row, such as mean(dx̂)"),
    Slip("local_response_norm", local_response_norm_backward,
         {" - 2 * alpha * beta * x * through_s": ""}, "dx", "no path through s",
         "in `sum_of_near(x * x, size)`"),
    Slip("local_response_norm", local_response_norm_backward, ONE_CHANNEL, "dx",
         "only what a channel's square does to itself"),
    Slip("local_response_norm", local_response_norm_backward, {"2 * alpha": "alpha"}, "dx",
         "a square's derivative is halved", "counts half"),
    Slip("local_response_norm", local_response_norm_backward, {"alpha * beta *": "alpha *"}, "dx",
         "the power is forgotten", "1.3333 times too large"),
    Slip("local_response_norm", local_response_norm_backward,
         {"dy * x * power": "dy * power", "* x * through": "* x * x * through"}, "dx",
         "its own x for that of the near one"),
    Slip("local_response_norm, more near than there are", local_response_norm_backward,
         {"power / s,": "power,"}, "dx", "the same power", "lacks the exponent lowered by 1"),
    Slip("local_response_norm, the paper's constants", local_response_norm_backward,
         {"dy * power - ": "dy - "}, "dx", "what passes s by is not divided",
         "the factor `power` is forgotten"),
    Slip("patches", patches_backward, {"swapaxes(2, 3)": "reshape(x_shape)"}, "dx",
         "the axis is not moved back", "it holds the right numbers in another order"),
    Slip("patches", patches_backward, {"dy.reshape": "dy[:, ::-1].reshape"}, "dx",
         "the last patch first", "it holds the right numbers in another order"),
    Slip("patches", patches_backward,
         {"rows, columns, size": "columns, rows, size", "(2, 3)": "(1, 2).swapaxes(2, 3)"},
         "dx", "patches column by column", "it holds the right numbers in another order"),
    Slip("patches", patches_backward, {"dx.reshape(x_shape)": "dx.reshape(x_shape)[..., ::-1]"},
         "dx", "the last channel first", "reversed along axis 3"),
    Slip("patches, class token", class_token_backward, {"dy[:, 1:]": "dy[:, :-1]"}, "dx",
         "the last row is taken for the token's", "shifted along axis 1, 1 too far"),
    Slip("patches, class token", class_token_backward, {"dy[:, 0]": "dy[:, -1]"}, "dtoken",
         "the last row's for the token's", "a dy that is reversed along axis 1"),
    Slip("patches, class token", class_token_backward, {".sum(axis=0)": ".mean(axis=0)"},
         "dtoken", "a mean over pictures", "3 times too small: 3 is the batch size"),
    Slip("patches, class token", class_token_backward, {"dy[:, 0].sum(axis=0)": "dy.sum((0, 1))"},
         "dtoken", "that of all rows", "a dy that is summed over axis 1"),
]

WEIGHTS = {
    "elman": "w_input w_hidden bias",
    "gru": "w_input w_hidden b_input b_hidden",
    "lstm": "w_input w_hidden bias",
}
RECURRENT = [
    *(
        Slip(f"{layer}, padding at both ends", recurrence_backward, {was: now}, wrong, truth)
        for layer, weights in WEIGHTS.items()
        for was, now, wrong, truth in (
            ("dh = dh + dfrom_state[t] @ w_hidden_t", "pass", "all",
             "no gradient from step to step through U"),
            ("dstate = _where_real(mask, t, (dh, *dothers), dstate)", "dstate = (dh, *dothers)",
             "all", "no gradient through the state carried over padding"),
            ("_where_real(mask, t, dstate, (0,) * len(dstate))", "dstate", f"dx {weights}",
             "a gradient at padding, from the state"),
            ("dy = xp.where(mask[:, :, None], dy, 0)", "pass", "all",
             "dy of padding is not dropped"),
            ("xp.zeros_like(h_before[0]) if ds is None else ds", "xp.zeros_like(h_before[0])",
             "all", "what came of the last state is forgotten"),
            ("h_before.reshape(-1, len(w_hidden)).T @ rows", "h_before[1].T @ dfrom_state[1]",
             "w_hidden", "dU of one step only"),
        )
    ),
    *(
        Slip(f"{function.__name__.partition('_')[0]}, padding at both ends", function, slip,
             "all", truth)
        for function, slip, truth in (
            (elman_cell_backward, {" * (1 - h * h)": ""}, "tanh is passed over"),
            (elman_cell_backward, {"1 - h * h": "1 - h"}, "1 − h for 1 − h²"),
            (elman_cell_backward, {"array_namespace(h).zeros_like(h)": "dz"},
             "h is given dz a second time, past U"),
            (gru_cell_backward, {"[dgates, da_n * r]": "[dgates, da_n]"},
             "the reset gate on the wrong side of the product"),
            (gru_cell_backward, {", dh * z": ", 0 * dh"}, "no gradient past the update gate"),
            (gru_cell_backward, {"dn = dh - dh * z": "dn = dh * z"},
             "the update gate for its opposite"),
            (gru_cell_backward, {"[dr, dz]": "[dz, dr]"}, "reset and update gate exchanged"),
            (lstm_cell_backward, {"dc = dc + dh": "dc = dh"},
             "the memory's gradient is not carried on"),
            (lstm_cell_backward, {"dc * f": "dc"}, "the forget gate is left out"),
            (lstm_cell_backward, {"dh * o *": "dh *"}, "the output gate is left out"),
            (lstm_cell_backward, {"dc * c]": "dc * shown]"},
             "the memory after the step, squashed, for that before"),
        )
    ),
    Slip("bidirectional gru, padding at both ends", Bidirectional.backward,
         {"dx_from_end, *_ = self.from_end.backward(dothers, end_cache)": "dx_from_end = 0"},
         "dx from_end", "one direction only"),
    Slip("bidirectional gru, padding at both ends", _halves,
         {"x[..., :middle], x[..., middle:]": "x[..., middle:], x[..., :middle]"},
         "dx from_start from_end", "halves exchanged"),
    Slip("bidirectional lstm, padding at both ends", Bidirectional.backward,
         {"return dx + dx_from_end": "return dx + dx_from_end[:, ::-1]"}, "dx",
         "time is turned twice"),
]
LOSSES = [
    Slip("loss", cross_entropy_backward, {"share * dloss": "share * dloss / (t > 0).sum()"},
         "dlogits", "divided by N twice",
         "9 times too small: 9 is N, the number of rows with a gradient"),
    Slip("loss, label smoothing", cross_entropy_backward,
         {"(share * dloss)[:, None]": "share.max() * dloss"}, "dlogits", "at padding, too",
         "leaks into padding"),
    Slip("consistency", consistency_backward, {"[dz_p, dz_q]": "[dz_q, dz_p]"}, "dlogits",
         "the passes are exchanged", "its halves along axis 0 are right and in another order"),
    Slip("projected_loss, two passes", projected_loss_backward, {"kappa * dloss": "dloss"},
         "dx dweight", "the weight of the consistency is forgotten", "counts half"),
]

# Of the models, whose embeddings are tied: the parts of them with a gradient that is wrong.
WORDS = "source_embedding"
OF_MEMORY = f"{WORDS} encoder"
OF_STATES = f"{OF_MEMORY} bridge decoder"
IN_CONVOLUTIONS = f"{OF_MEMORY} source_positions"
OF_SAID = f"{WORDS} target_positions"
OF_DECODER = f"{IN_CONVOLUTIONS} target_positions decoder attention"  # all but what is behind it
OF_X = "embedding positions"
UNKNOWN = "3 of the slopes along 3 directions are wrong"
MODELS = [
    Slip("encoder_layer, post-norm", EncoderLayer.backward, {"dquery + dkey + dvalue": "dquery"},
         "dx", "x is a query only"),
    Slip("decoder_layer, pre-norm", DecoderLayer.backward,
         {"dmemory = dkey + dvalue": "dmemory = dkey"}, "dmemory", "the memory is no value"),
    Slip("model, pre-norm, none tying", Decoder.backward,
         {"dmemory + dmemory_of_layer": "dmemory_of_layer"}, OF_MEMORY,
         "of the memory, only what the first layer asked"),
    Slip("model, restricted", restricted_attention_backward,
         {"dk, dv = (windows": "dk[:, :1] = 0; dk, dv = (windows"}, f"{OF_MEMORY} decoder",
         "what a block sends to the keys of the one before is dropped"),
    Slip("model, convolution", ConvolutionalTranslator.encode_backward,
         {"dx + de, self": "dx, self"}, f"{WORDS} source_positions",
         "the words of the source are no values", UNKNOWN),
    Slip("model, convolution", ConvolutionalTranslator.encode_backward,
         {"dx = dkeys + de": "dx = dkeys"}, IN_CONVOLUTIONS,
         "what the encoder made of them is no value"),
    Slip("model, convolution", ConvolutionalTranslator.encode_backward,
         {"de = dvalues * ROOT_HALF": "de = dvalues"}, IN_CONVOLUTIONS, "no √½ of the values"),
    Slip("model, convolution", ConvolutionalTranslator.encode_backward,
         {"dx = dx * ROOT_HALF": "pass"}, IN_CONVOLUTIONS, "no √½ of the encoder's layers"),
    Slip("model, convolution", ConvolutionalTranslator.encode_backward,
         {"dx = dx + layer": "dx = layer"}, IN_CONVOLUTIONS,
         "nothing goes past a layer of the encoder"),
    Slip("model, convolution", ConvolutionalTranslator.encode_backward,
         {"reversed(caches)": "caches"}, IN_CONVOLUTIONS,
         "the caches of the encoder's layers in forward's order"),
    Slip("model, convolution", ConvolutionalTranslator.decode_backward,
         {"return dkeys, dvalues": "return dvalues, dkeys"}, IN_CONVOLUTIONS,
         "keys and values exchanged"),
    Slip("model, convolution", ConvolutionalTranslator.decode_backward, {"dkeys + dk,": "dk,"},
         IN_CONVOLUTIONS, "of the keys, only what the first layer asked"),
    Slip("model, convolution", ConvolutionalTranslator.decode_backward, {"dg + dquery,": "dg,"},
         OF_SAID, "the word just said is no query"),
    Slip("model, convolution", ConvolutionalTranslator.decode_backward, {"dc + dquery": "dc"},
         OF_DECODER, "a layer of the decoder makes no query"),
    Slip("model, convolution", ConvolutionalTranslator.decode_backward, {"dc + dquery": "dquery"},
         OF_DECODER, "a layer of the decoder makes nothing but a query"),
    Slip("model, convolution", ConvolutionalTranslator.decode_backward,
         {"self.last.backward(dy, last_cache)": "dy"}, f"{OF_DECODER} last",
         "the last linear map is passed over"),
    Slip("model, convolution", ConvolutionalTranslator.decode_backward,
         {"dc = dx * ROOT_HALF": "dc = dx"}, OF_DECODER, "no √½ of what is found in the source"),
    Slip("model, convolution", ConvolutionalTranslator.decode_backward,
         {"self.attention, caches": "self.attention[::-1], caches"}, "attention",
         "the gradients of a layer's attention go to another's weights"),
    Slip("model, convolution", GatedConvolution.backward,
         {"return dropout_backward(dx, dropout_cache)": "return dx"}, OF_DECODER,
         "dropout before the convolution is passed over"),
    *(Slip("model, blocks since 2017", SelfAttention.backward, instead,
           "embedding stack", words, UNKNOWN) for instead, words in (
        ({"dk = self._turn_backward(dk, k_turned)": "pass"}, "keys are not turned back"),
        ({"dq = self._turn_backward(dq, q_turned)": "dq, _ = self.rotary.forward(dq)"},
         "queries are turned further"),
        ({"(repeat_groups_backward(dx, self.num_groups)": "(dx[:, ::2]"},
         "of each group, the second head sends nothing"),
        ({"dq, dk, dv = self._attention_backward(dheads":
          "dk, dq, dv = self._attention_backward(dheads"}, "queries and keys exchanged"),
        ({"return dquery, dkey, dvalue": "return dquery, dkey, 0"}, "the text is no value"),
    )),
    *(Slip("activated_feed_forward", ActivatedFeedForward.backward, instead, wrong, words, *causes)
      for instead, wrong, words, *causes in (
        ({"self.activation_backward(dh, activation_cache)": "dh"}, "dx inner",
         "the activation is passed over"),
        ({"dropout_backward(dh, dropout_cache)": "dh * 2"}, "dx inner",
         "twice what went through the outer map"),
        ({"return self.inner.backward(dh, inner_cache)":
          "return 0 * self.inner.backward(dh, inner_cache)"}, "dx", "nothing goes further down"),
        ({"self.activation_backward(dh, activation_cache)": "dh * (activation_cache[0] > 0)"},
         "dx inner", "the slope of a ReLU"),
    )),
    *(Slip("gated_feed_forward", GatedFeedForward.backward, instead, wrong, words, *causes)
      for instead, wrong, words, *causes in (
        ({"dh * gate,": "dh,"}, "dx up", "what is gated without the gate"),
        ({"dh * up,": "dh,"}, "dx gate", "the gate without what it gates"),
        ({"silu_backward(dh * up, silu_cache)": "dh * up"}, "dx gate", "SiLU is passed over"),
        ({"dx_gate + dx_up": "dx_gate"}, "dx", "one way of two"),
        ({"dropout_backward(dh, dropout_cache)": "dh * 2"}, "dx gate up",
         "twice what went through the last map"),
    )),
    Slip("model, adapters", LowRankLinear.backward, {"return dx": "return dy @ self.weight.data.T"},
         "stack", "the way through the adapters is forgotten", UNKNOWN),
    Slip("model, recurrent, fixed vector", RecurrentTranslator.decode_backward,
         {"dm + dx[..., d:].sum(axis=1)": "dm"}, OF_MEMORY,
         "what every step was given of the fixed vector is forgotten", UNKNOWN),
    Slip("model, recurrent, fixed vector", RecurrentTranslator.decode_backward,
         {"dx[..., d:].sum(axis=1)": "dx[:, -1, d:]"}, OF_MEMORY,
         "of the fixed vector, only what the last step was given"),
    Slip("model, recurrent, fixed vector", RecurrentTranslator.decode_backward,
         {"dm + dx[..., d:].sum": "dx[..., d:].sum"}, OF_MEMORY,
         "no gradient through the first state"),
    Slip("model, recurrent, additive attention", RecurrentTranslator.encode_backward,
         {"self.encoder.backward(dmemory,": "self.encoder.backward((dmemory[0], None),"}, OF_MEMORY,
         "no gradient through the first state"),
    Slip("model, recurrent, additive attention", RecurrentTranslator.decode_backward,
         {"ds = ds + dquery": "pass"}, OF_STATES, "a state is no query"),
    Slip("model, recurrent, additive attention", RecurrentTranslator.decode_backward,
         {"(dkeys + dvalues, dm)": "(dvalues, dm)"}, OF_MEMORY,
         "the encoder's states are values and no keys"),
    Slip("model, recurrent, additive attention", RecurrentTranslator.decode_backward,
         {"ds[..., k:]": "0 * ds[..., k:]"}, f"{OF_STATES} attention",
         "what was found in the source is not passed on"),
    Slip("model, recurrent, additive attention", RecurrentTranslator.decode_backward,
         {"dy = dropout_backward(dy, dropout_cache)": "pass"}, f"{OF_STATES} attention combine",
         "dropout before the projection is passed over"),
    Slip("model, recurrent, additive attention", TanhLinear.backward,
         {"tanh_backward(dy, tanh_cache)": "dy"}, f"{OF_STATES} attention combine",
         "tanh is passed over"),
    Slip("model, language model", TokenModel._embed_backward,
         {"embedding.backward(dx, embedding_cache)": "pass"}, "embedding",
         "words are learned from what they are predicted by alone"),
    Slip("model, language model", TokenModel._embed_backward,
         {"dx = dropout_backward(dx, dropout_cache)": "pass"}, OF_X,
         "dropout of words and positions is passed over"),
    Slip("model, masked language model", LanguageModel.features_backward,
         {"dx = self.stack.backward(dy, stack_cache)": "dx = dy"}, f"{OF_X} stack",
         "the stack is passed over"),
    Slip("model, language model", TokenModel.backward,
         {"self.output_projection.backward(dlogits, projection_cache)":
          "dlogits @ self.output_projection.weight.data"}, "embedding",
         "the projection is not learned"),
    Slip("model, tagger", OutputProjection.backward, {"+= dweight": "+= 2 * dweight"},
         "output_projection", "the projection learns twice, as if it were tied",
         "2 times too large"),
    Slip("model, tagger", LanguageModel.features_backward,
         {"dx = self.stack.backward(dy, stack_cache)": "return"}, f"{OF_X} stack",
         "the encoder is left as it began"),
]
PLAIN, PAST_A, PAST_C, PATCHED = (
    f"model, {name}"
    for name in (
        "residual network, plain",
        "residual network, shortcuts A",
        "residual network, shortcuts C, pre-activation",
        "vision transformer",
    )
)
OF_PICTURE = "dinput_0"
CONVOLUTIONS = f"convolutions {OF_PICTURE}"
FIRST_TWO = f"0 1 {OF_PICTURE}"  # of the convolutions
STAGES = f"first stages {OF_PICTURE}"
OF_PATCHES = f"class_token embedding positions {OF_PICTURE}"
PICTURES = [
    Slip("model, small network", SmallNetwork.features_backward,
         {"dropout_backward(dy, dropout_cache)": "dy"}, CONVOLUTIONS, "dropout is passed over"),
    Slip("model, small network", ConvolutionNorm.backward,
         {"relu_backward(dy, relu_cache) if self.activated else dy": "dy"}, FIRST_TWO,
         "the ReLU is passed over"),
    Slip("model, small network", ConvolutionNorm.backward,
         {"dh = self.norm.backward(dh, norm_cache)": "pass"}, CONVOLUTIONS,
         "the norm is passed over"),
    Slip("model, alexnet", ConvolutionPooling.backward,
         {"local_response_norm_backward(dx, norm_cache) if self.normed else dx": "dx"}, FIRST_TWO,
         "normalisation is passed over"),
    Slip("model, alexnet", Hidden.backward, {"dropout_backward(dy, dropout_cache)": "dy"},
         f"hidden {CONVOLUTIONS}", "dropout is passed over"),
    Slip("model, alexnet", Hidden.backward,
         {"dx = activate_backward(dx, activation_cache)": "pass"}, f"hidden {CONVOLUTIONS}",
         "the ReLU of a hidden map is passed over"),
    Slip(PLAIN, Block.backward, {"else relu_backward(dy, relu_cache)": "else dy"}, STAGES,
         "the last ReLU is passed over"),
    Slip(PAST_A, Block.backward, {"return dz + dpast if": "return dz if"}, STAGES,
         "nothing goes past a block"),
    Slip(PAST_A, Block.backward, {"backward(dz, shortcut_cache)": "backward(dy, shortcut_cache)"},
         STAGES, "what goes past a block goes past its ReLU, too"),
    Slip(PAST_A, Block.backward, {"return dz + dpast if": "return dpast if"}, STAGES,
         "nothing goes through F"),
    *(Slip("zero_padded_shortcut", zero_padded_shortcut_backward, instead, "dx", words, *causes)
      for instead, words, *causes in (
        ({"dy[..., : x_shape[-1]]": "dy[..., -x_shape[-1] :]"}, "the channels of zeros for x's"),
        ({"dx[:, ::stride, ::stride]": "dx[:, 1::stride, ::stride]"},
         "the rows between those that were taken"),
        ({"dx[:, ::stride, ::stride]": "dx[:, : dy.shape[1], : dy.shape[2]]"},
         "the first positions for those that were taken"),
        ({"dx[:, ::stride, ::stride] = dy[": "dx[:, ::stride, ::stride] += 2 * dy["},
         "twice the gradient"),
    )),
    Slip(PAST_C, NormConvolution.backward, {"dh = relu_backward(dh, relu_cache)": "pass"}, STAGES,
         "the ReLU is passed over"),
    Slip(PAST_C, ResidualNetwork._activated_backward,
         {"dx = relu_backward(dx, relu_cache)": "pass"}, f"{STAGES} norm",
         "the last ReLU is passed over"),
    Slip(PATCHED, VisionTransformer.features_backward,
         {"of_all[:, 0] = dy": "of_all[:] = dy[:, None]"}, f"{OF_PATCHES} stack",
         "every patch is taken for the class token"),
    Slip(PATCHED, VisionTransformer.features_backward,
         {"dx = self.positions.backward(dx, positions_cache)": "pass"}, "positions",
         "positions are not learned"),
    Slip(PATCHED, VisionTransformer.features_backward,
         {"dx = dropout_backward(dx, dropout_cache)": "pass"}, OF_PATCHES,
         "dropout is passed over"),
    Slip(PATCHED, VisionTransformer.features_backward,
         {"self.class_token.backward(dx, token_cache)": "dx[:, 1:]"}, "class_token",
         "the class token is not learned"),
    Slip(PATCHED, VisionTransformer.features_backward,
         {"dx = self.stack.backward(of_all, stack_cache)": "dx = of_all"}, f"{OF_PATCHES} stack",
         "the stack is passed over"),
]
GROUPED = "grouped_query_attention, padding mask"
OF_KEYS = "dkey dvalue dw_key dw_value"
TILED = "tiled_attention"
EXPERTS = "mixture_of_experts"
SINCE_2017 = [
    Slip("rms_norm", rms_norm_backward,
         {"dx_hat - through_rho": "dx_hat - dx_hat.mean(axis=-1, keepdims=True) - through_rho"},
         "dx", "the mean taken off, as in layer norm", "a constant in each row, such as mean(dx̂)"),
    Slip("rms_norm", rms_norm_backward, {" - through_rho": ""}, "dx", "no mean of dx̂ x̂",
         "the path through `(x * x).mean(axis=-1, keepdims=True)`"),
    Slip("rms_norm", rms_norm_backward, {"through_rho) / rho": "through_rho)"}, "dx",
         "not divided by ρ", "each row is off by a factor of its own"),
    Slip("rms_norm", rms_norm_backward, {"dx_hat = dy * gamma": "dx_hat = dy", "dx = (":
         "dx = gamma * ("}, "dx", "γ outside"),
    Slip("rms_norm", rms_norm_backward, {"dy * x_hat).sum": "dy * x_hat * rho).sum"}, "dgamma",
         "x for x̂", "stands `x` in place of `x_hat`"),
    Slip("rms_norm", rms_norm_backward, {"x_hat * (dx_hat * x_hat).mean":
         "x_hat * (dx_hat * x_hat).sum"}, "dx", "a sum for the mean", "is 6 times too large"),
    Slip("silu", silu_backward, {"gate + y * (1 - gate)": "gate"}, "dx", "the gate is constant",
         "the path through `x` in `0.5 * x`"),
    Slip("silu", silu_backward, {"y * (1 - gate)": "gate * (1 - gate)"}, "dx", "σ' without x",
         "the factor `x` is forgotten"),
    Slip("silu", silu_backward, {"(1 - gate)": "(1 - y)"}, "dx", "1 − y for 1 − σ"),
    Slip("silu", silu_backward, {"gate + y": "y"}, "dx", "only what moves the gate",
         "the path through `x` in `x * gate`"),
    Slip("swiglu", swiglu_backward, {"dh * gate,": "dh,"}, "dx dw_up",
         "what is gated without the gate", "the factor `gate` is forgotten"),
    Slip("swiglu", swiglu_backward, {"dh * up,": "dh,"}, "dx dw_gate",
         "the gate without what it gates", "the factor `up` is forgotten"),
    Slip("swiglu", swiglu_backward, {"silu_backward(dh * up, silu_cache)": "dh * up"},
         "dx dw_gate", "SiLU is passed over", "the derivative of `x * gate`"),
    Slip("swiglu", swiglu_backward, {"dx_gate + dx_up": "dx_gate"}, "dx", "one way of two",
         "in `linear(x, w_up)`"),
    Slip("swiglu", swiglu_backward, {"dw_gate, dw_up, dw_down\n": "dw_up, dw_gate, dw_down\n"},
         "dw_gate dw_up", "gate and what it gates exchanged", "were two gradients exchanged?"),
    Slip("swiglu, dropout", swiglu_backward, {"dropout_backward(dh, dropout_cache)": "dh"},
         "dx dw_gate dw_up", "dropout is passed over", "the derivative of `x * keep * scale`"),
    Slip("rotary, neighbours", rotary_backward, {"-sin": "sin"}, "dx", "turned on and not back",
         "none of them at 0 on axis 2, the first"),
    Slip("rotary, neighbours", rotary_backward, {"sin, pairs)": "sin, 'halves')"}, "dx",
         "the pairs of the other convention", "none of them at 0 on axis 2, the first"),
    Slip("rotary, halves", rotary_backward, {"turned(dy, cos, -sin, pairs)": "dy"}, "dx",
         "handed on as it is", "the sum over them is missing"),
    Slip("rotary, halves, after others", rotary_backward, {"turned(dy, cos, -sin, pairs)":
         "turned(dy, cos[::-1], -sin[::-1], pairs)"}, "dx", "positions from the end",
         "it runs along axis 2 in the wrong order"),
    Slip("rotary, neighbours, after others", rotary_backward, {"cos, -sin": "cos[:1], -sin[:1]"},
         "dx", "the first position for all", "none of them at 0 on axis 2, the first"),
    Slip("gelu", gelu_backward, {" + x * density": ""}, "dx", "the gate is constant",
         "the path through `x` in `x * math.sqrt(0.5)`"),
    Slip("gelu", gelu_backward, {" + x * density": " + density"}, "dx", "the bell without x",
         "the factor `x` is forgotten"),
    Slip("gelu", gelu_backward, {"-0.5 * x * x": "-x * x"}, "dx", "a narrower bell"),
    Slip("gelu", gelu_backward, {"math.sqrt(2 * math.pi)": "math.sqrt(math.pi)"}, "dx",
         "a higher bell", "the factor `math.sqrt(0.5)` is forgotten"),
    Slip("gelu", gelu_backward, {"gate + x": "x"}, "dx", "only what moves the gate",
         "the path through `x` in `x * gate`"),
    Slip("gelu, by tanh", gelu_by_tanh_backward, {" + x * dt": ""}, "dx", "the gate is constant",
         "in `ROOT_2_BY_PI * (x + CUBIC * x * x * x)`"),
    Slip("gelu, by tanh", gelu_by_tanh_backward, {"(1 + 3 * CUBIC": "(1 + CUBIC"}, "dx",
         "the cube's derivative without its 3", "the path through `CUBIC * x * x`"),
    Slip("gelu, by tanh", gelu_by_tanh_backward, {"* (1 + 3 * CUBIC * near * near)": ""}, "dx",
         "the cube is forgotten", "the path through `CUBIC * x * x * x`"),
    Slip("gelu, by tanh", gelu_by_tanh_backward, {"(1 - t * t)": "(1 - t)"}, "dx",
         "1 − t for 1 − t²", "is taken to be 1 − h"),
    Slip("gelu, by tanh", gelu_by_tanh_backward, {"* ROOT_2_BY_PI": ""}, "dx",
         "√(2/π) is forgotten", "the factor `ROOT_2_BY_PI` is forgotten"),
    Slip("alibi", alibi_attention, {"    return y, (": "    if slopes[0] > 0:\n        return y, "
         "alibi_attention(query, key, value, 0 * slopes)[1]\n    return y, ("}, "all",
         "backward has no bias"),
    Slip("alibi", alibi_attention, {"    return y, (": "    if slopes[0] > 0:\n        return y, "
         "alibi_attention(query, key, value, -slopes)[1]\n    return y, ("}, "all",
         "in backward what is far counts more"),
    Slip("alibi", alibi_attention, {"    return y, (": "    if slopes[0] > slopes[1]:\n        "
         "return y, alibi_attention(query, key, value, slopes[::-1])[1]\n    return y, ("}, "all",
         "each head has another's slope"),
    Slip("alibi", alibi_attention_backward,
         {"return scaled": "cache = (*cache[:3], 1.0, *cache[4:])\n    return scaled"},
         "dquery dkey", "scores not scaled", "1.73205 is √3, the root of the head width d_k"),
    Slip("alibi, nothing allowed in some rows", alibi_attention, {"    return y, (":
         "    if mask is not None:\n        return y, alibi_attention(query, key, value, slopes)[1]"
         "\n    return y, ("}, "all", "backward looks at padding"),
    Slip(TILED, tiled_attention, {"total * rescale": "total"}, "dquery dkey",
         "the sum so far is not brought to the new maximum"),
    Slip(TILED, tiled_attention, {"average * rescale": "average"}, "all",
         "the average so far is not brought to the new maximum"),
    Slip(TILED, tiled_attention, {"shift + xp.log(total)": "shift * total"}, "all",
         "L is not m + log ℓ"),
    Slip(TILED, tiled_attention_backward, {" - delta)": ")"}, "dquery dkey", "no sum over the row",
         "`weights.sum(axis=-1, keepdims=True)`"),
    Slip(TILED, tiled_attention_backward,
         {"(dy_rows * y[:, :, rows])": "(dy_rows @ value[:, :, :3].swapaxes(-1, -2) * "
          "xp.exp(_scores(q, key, rows, slice(0, 3), causal, mask) - log_total[:, :, rows]))"},
         "dquery dkey", "the row sum is that of the first tile"),
    Slip(TILED, tiled_attention_backward, {"(dweights - delta) * scale": "(dweights - delta)"},
         "dquery dkey", "scores not scaled", "1.73205 is √3, the root of the head width d_k"),
    Slip(TILED, tiled_attention_backward, {"dquery[:, :, rows] +=": "dquery[:, :, rows] ="},
         "dquery", "= for += over tiles of keys"),
    Slip(TILED, tiled_attention_backward, {"dvalue[:, :, columns] +=": "dvalue[:, :, columns] ="},
         "dvalue", "= for += over tiles of queries"),
    Slip("tiled_attention, causal", tiled_attention_backward,
         {"scores = _scores(q, key, rows, columns, causal, mask)":
          "scores = _scores(q, key, rows, columns, False, mask)"}, "all",
         "backward looks ahead in tiles on the diagonal"),
    Slip("tiled_attention, causal", tiled_attention_backward,
         {"rows.stop if causal": "rows.start if causal"}, "all",
         "the tiles on the diagonal are passed over"),
    Slip("tiled_attention, nothing allowed in some rows", tiled_attention_backward,
         {"causal, mask)": "causal, None)"}, "all", "backward looks at padding"),
    Slip("linear_attention", linear_attention_backward, {"-(dnumerator * y)": "0 * (dnumerator)"},
         "dquery dkey", "the denominator is constant", "the path through `z[..., -1:]`"),
    Slip("linear_attention", linear_attention_backward, {"-(dnumerator * y)": "-(dy * y)"},
         "dquery dkey", "the denominator's is not divided"),
    Slip("linear_attention", linear_attention_backward, {"dy / total": "dy"}, "all",
         "not divided by the denominator"),
    Slip("linear_attention", feature_backward, {"0, 1, y)": "0, 1, 1 + 0 * y)"},
         "dquery dkey", "a slope of 1 below 0, too",
         "the derivative of `xp.exp(xp.where(x > 0, 0, x))`"),
    Slip("linear_attention", feature_backward, {"0, 1, y)": "0, 1, 0 * y)"},
         "dquery dkey", "a slope of 0 below 0, as of a ReLU",
         "the path through `x` in `xp.where(x > 0, 0, x)`"),
    Slip("linear_attention, causal", linear_attention_backward,
         {"of_query, from_end=True)": "of_query)"}, "dkey", "keys hear from queries before them"),
    Slip("linear_attention, causal", linear_attention_backward,
         {"dz, from_end=True)": "dz)"}, "dvalue", "values hear from queries before them"),
    Slip("linear_attention, causal", linear_attention_backward, {"sums(dz, value, of_key)":
         "over_all(dz, value, of_key)"}, "dquery", "queries hear from keys after them",
         "none of them at 8 on axis 2, the last"),
    Slip("linear_attention, causal, padding mask", linear_attention_backward,
         {"dof_key = dof_key * mask": "pass"}, "dkey", "it reaches padding", "leaks into padding"),
    Slip("low_rank", low_rank_linear_backward, {"db = scale * ": "db = "}, "db",
         "α/r is forgotten for B", "1.5 times too small"),
    Slip("low_rank", low_rank_linear_backward, {"dh = scale * ": "dh = "}, "dx da",
         "α/r is forgotten on the way back"),
    Slip("low_rank", low_rank_linear_backward, {" + dh @ a.T": ""}, "dx",
         "dx through the frozen weight only", "in `linear(x, a)`"),
    Slip("low_rank", low_rank_linear_backward, {"dy @ weight.T + dh": "dh"}, "dx",
         "dx through the correction only", "in `linear(x, weight, bias)`"),
    Slip("low_rank, no bias", low_rank_linear_backward, {"h.reshape(-1, rank).T @ dy":
         "(x.reshape(-1, d_in)[:, :rank]).T @ dy"}, "db", "of x for h"),
    Slip(EXPERTS, MixtureOfExperts.backward, {"(gate * dy_rows, cache)": "(dy_rows, cache)"},
         "dx experts", "experts hear as if their gates were open"),
    Slip(EXPERTS, MixtureOfExperts.backward, {"(dy_rows * said)": "dy_rows"},
         "dx w_router", "the gates do not know what they let through"),
    Slip(EXPERTS, MixtureOfExperts.backward, {"dx[rows] +=": "dx[rows] ="}, "dx",
         "= for +=: of k experts the last one"),
    Slip(EXPERTS, MixtureOfExperts.backward, {"dx + dx_router": "dx"}, "dx",
         "nothing comes back through the router", "in `linear(x, w_router)`"),
    Slip(EXPERTS, route_backward, {" + softmax_backward(dp, p_cache)": ""}, "dx w_router",
         "the balance has no gradient"),
    Slip(EXPERTS, route_backward, {"softmax_backward(dgates, gates_cache) +":
         "softmax_backward(dgates, p_cache) +"}, "dx w_router", "a softmax of all for that of k"),
    Slip(EXPERTS, route_backward, {"dbalance * len(part) / num_tokens": "dbalance * len(part)"},
         "dx w_router", "a sum over tokens for the mean"),
    Slip("segment_attention", segment_attention_backward,
         {"[:, before:]": "[:, : dy.shape[1]]"}, "dx",
         "what goes to the memory for what goes to x"),
    Slip("segment_attention", segment_attention_backward,
         {" + (dkey + dvalue)[:, before:]": ""}, "dx", "x as queries only",
         "the path through `x` in `xp.concatenate([memory, x], axis=1)`"),
    Slip("segment_attention", segment_attention_backward, {"dkey + dvalue": "dkey"}, "dx",
         "x as queries and keys only", "in `linear(value, w_value)`"),
    Slip("segment_attention", segment_attention_backward, {"dx, *dweights": "dx, dweights[1], "
         "dweights[0], *dweights[2:]"}, "dw_query dw_key", "queries and keys exchanged",
         "were two gradients exchanged?"),
    Slip("segment_attention", segment_attention,
         {"    return y, (": "    if before:\n        return y, (before, multi_head_attention("
          "x, context, context, *weights, num_heads)[1])\n    return y, ("}, "all",
         "backward looks ahead"),
    Slip(GROUPED, repeat_groups_backward,
         {"num_groups, -1, length, head_width).sum(axis=2)":
          "-1, num_groups, length, head_width).sum(axis=1)"},
         OF_KEYS, "the sums are those of a tiling, 0 1 0 1"),
    Slip(GROUPED, repeat_groups_backward, {".sum(axis=2)": ".mean(axis=2)"},
         OF_KEYS, "a mean over the heads of a group", "2 times too small"),
    Slip(GROUPED, repeat_groups_backward, {".sum(axis=2)": "[:, :, 0]"},
         OF_KEYS, "the first head of a group only"),
    Slip(GROUPED, grouped_query_attention_backward,
         {"(dx, num_groups) for": "(dx, num_groups)[:, ::-1] for"},
         OF_KEYS, "groups in the order of their ends"),
]
SLIPS = [
    *LAYERS, *ATTENTION, *WINDOWS, *NORMS_AND_PATCHES, *RECURRENT, *LOSSES, *MODELS, *PICTURES,
    *SINCE_2017,
]
