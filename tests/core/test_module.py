import copy
import io
import pickle
from collections import namedtuple
from itertools import pairwise

import numpy as np
import pytest
from on_device import STAND_IN
from strict_cupy import strict

from minitransformer import CPU, Buffer, Module, Parameter, Transformer, debug
from minitransformer.cases.models import small_config
from minitransformer.core.backend import array_namespace, to_host
from minitransformer.core.parameter import FlatParameters, mean_or_last
from minitransformer.layers.layer_norm import LayerNorm
from minitransformer.layers.linear import Linear


class Tree(Module):
    """One of everything: a list, a parameter used twice, a layer used twice, a constant, a None."""

    def __init__(self):
        rng = np.random.default_rng(0)
        self.layers = [Linear(2, 3, rng), Linear(3, 2, rng, bias=False)]
        self.norm = LayerNorm(2)
        self.gain = self.norm.gamma
        self.same_norm = self.norm
        self.table = np.arange(6, dtype=np.float32).reshape(3, 2)
        self.nothing = None
        self.scale = 2.0


PATHS = ["layers.0.weight", "layers.0.bias", "layers.1.weight", "norm.gamma", "norm.beta"]
SIZE = 6 + 3 + 6 + 2 + 2


# The tree


def test_names_are_paths_in_order_of_assignment_and_shared_ones_come_once():
    assert [path for path, _ in Tree().named_parameters()] == PATHS


def test_shared_modules_come_once_under_their_first_path():
    paths = [path for path, _ in Tree().named_modules()]
    assert paths == ["", "layers.0", "layers.1", "norm"]
    paths = [path for path, _ in Tree().named_modules(path="tree")]
    assert paths == ["tree", "tree.layers.0", "tree.layers.1", "tree.norm"]


def test_two_parameters_of_equal_values_are_two():
    tree = Tree()
    tree.gain = Parameter(tree.norm.gamma.data)
    assert tree.num_parameters() == SIZE + 2
    assert dict(tree.named_parameters())["gain"] is tree.gain


def test_zero_grad_clears_every_gradient_in_place():
    tree = Tree()
    gradients = [parameter.grad for parameter in tree.parameters()]
    for grad in gradients:
        grad += 1
    tree.zero_grad()
    for parameter, grad in zip(tree.parameters(), gradients, strict=True):
        assert parameter.grad is grad
        assert not grad.any()


def test_the_summary_shows_shapes_and_counts_and_marks_what_is_shared():
    file = io.StringIO()
    Tree().summary(file)
    assert file.getvalue() == (
        "Tree: 19\n"
        "  layers.0: 9\n"
        "    weight (2, 3) = 6\n"
        "    bias (3,) = 3\n"
        "  layers.1: 6\n"
        "    weight (3, 2) = 6\n"
        "  norm: 4\n"
        "    gamma (2,) = 2\n"
        "    beta (2,) = 2\n"
        "  gain (2,) (shared, counted above)\n"
        "  same_norm (shared, counted above)\n"
        "    gamma (2,) (shared, counted above)\n"
        "    beta (2,) (shared, counted above)\n"
    )


def test_the_summary_is_printed_by_default(capsys):
    Linear(30, 40, np.random.default_rng(0), bias=False).summary()
    assert capsys.readouterr().out == "Linear: 1,200\n  weight (30, 40) = 1,200\n"


class Holder(Module):
    def __init__(self):
        weights = [Parameter(np.full(n, float(n))) for n in (1, 2, 3, 4)]
        self.pair = (weights[0], weights[1])
        self.named = {"third": weights[2], "deep": [weights[3]]}
        self.numbers = [1, 2, 3]


def test_parameters_are_found_in_tuples_dicts_and_nested_lists():
    paths = [path for path, _ in Holder().named_parameters()]
    assert paths == ["pair.0", "pair.1", "named.third", "named.deep.0"]
    assert FlatParameters(Holder()).data.tolist() == [1, 2, 2, 3, 3, 3, 4, 4, 4, 4]


def test_a_module_without_parameters_has_no_flat_storage():
    with pytest.raises(ValueError, match="has no parameters to store"):
        FlatParameters(Module())


def test_modules_parameters_and_buffers_say_what_they_are():
    assert repr(Linear(30, 40, np.random.default_rng(0))) == "Linear(1,240 parameters)"
    assert repr(Parameter(np.ones((2, 3)))) == "Parameter(shape=(2, 3), dtype=float64)"
    assert repr(Buffer(np.zeros(2, np.float32))) == "Buffer(shape=(2,), dtype=float32)"


# Moving


@pytest.mark.parametrize("where", [{}, {"device": CPU}])
def test_to_moves_parameters_and_constants_and_keeps_what_is_shared(where):
    tree = Tree()
    values = {path: parameter.data.copy() for path, parameter in tree.named_parameters()}
    tree.norm.gamma.grad += 1
    assert tree.to(**where, dtype=np.float64) is tree
    assert tree.table.dtype == np.float64
    np.testing.assert_array_equal(tree.table, [[0, 1], [2, 3], [4, 5]])
    for path, parameter in tree.named_parameters():
        assert parameter.data.dtype == parameter.grad.dtype == np.float64
        np.testing.assert_array_equal(parameter.data, values[path])
        assert not parameter.grad.any()
    assert tree.gain is tree.norm.gamma
    assert tree.same_norm is tree.norm
    assert (tree.nothing, tree.scale) == (None, 2.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("device", [None, CPU])
def test_to_without_a_type_keeps_it(dtype, device):
    tree = Tree().to(dtype=dtype).to(device)
    assert tree.table.dtype == tree.gain.data.dtype == dtype


class Constants(Module):
    """Arrays wherever they may be, and some of them in buffers, one of which is in two places."""

    Pair = namedtuple("Pair", "table index")

    def __init__(self):
        floats, whole, truth = np.ones(2, np.float32), np.arange(2), np.array([True, False])
        self.floats, self.whole, self.truth = floats, whole, truth
        self.listed = [floats, whole, [truth], "a word", 3]
        self.pair = Constants.Pair(floats, whole)
        self.named = {"table": floats, "deep": (truth, {"index": whole})}
        self.layers = [Linear(2, 2, np.random.default_rng(0))]
        self.kept = [Buffer(floats), Buffer(whole), Buffer(truth)]
        self.same = self.kept[0]

    def arrays(self):
        """Those of one kind, of numbers or of truth values, side by side."""
        deep, deeper = self.named["deep"]
        floats, whole, truth = (buffer.data for buffer in self.kept)
        return (
            (self.floats, self.listed[0], self.pair.table, self.named["table"], floats),
            (self.whole, self.listed[1], self.pair.index, deeper["index"], whole),
            (self.truth, self.listed[2][0], deep, truth),
        )


@pytest.mark.parametrize("device", [None, CPU, STAND_IN], ids=str)
def test_constants_and_buffers_move_wherever_they_are_and_only_floats_take_the_type(device):
    module = Constants()
    given, layers, words = module.listed, module.layers, module.listed[3:]
    module.to(device, np.float64)
    for arrays, dtype in zip(module.arrays(), (np.float64, np.arange(2).dtype, bool), strict=True):
        for array in arrays:
            assert array.dtype == dtype
            assert array_namespace(array) is (device or CPU).xp
            assert to_host(array).tolist() == to_host(arrays[0]).tolist()
    assert given[0].dtype == np.float32  # a list is not written to: it may be somebody else's
    assert module.layers is layers
    assert module.listed[3:] == words
    assert type(module.pair) is Constants.Pair
    assert module.same is module.kept[0]


def test_a_part_of_a_model_refuses_to_be_torn_out_of_its_flat_storage():
    model = Transformer(small_config())
    words = (
        "w_query is a view of the flat storage of a larger model, and moving this "
        r"MultiHeadAttention alone would tear it out; call to\(\) of the whole model"
    )
    with pytest.raises(RuntimeError, match=words):
        model.encoder.layers[0].self_attention.to(dtype=np.float64)
    assert {p.data.dtype for p in model.parameters()} == {np.dtype(np.float32)}
    for parameter in model.parameters():
        assert np.shares_memory(parameter.data, model.flat.data)


def test_what_is_in_the_flat_storage_of_no_other_model_may_be_moved():
    """A copy of a part, what was taken out of a model, and what was in a storage that is gone."""
    tree, model = Tree(), Transformer(small_config())
    flat = FlatParameters(tree)
    with pytest.raises(RuntimeError, match="call to"):
        tree.to(dtype=np.float64)
    del flat
    copied = copy.deepcopy(model.encoder.layers[0])
    taken, model.decoder.layers = model.decoder.layers[1], model.decoder.layers[:1]
    model.flat.gather(model)
    for module in (tree, copied, taken):
        assert {p.data.dtype for p in module.to(dtype=np.float64).parameters()} == {np.dtype(float)}
    assert {p.data.dtype for p in model.parameters()} == {np.dtype(np.float32)}
    assert model.flat.data.size == model.num_parameters()


def test_a_module_around_a_model_moves_its_flat_storage_with_it():
    around = Module()
    around.model = Transformer(small_config())
    around.to(dtype=np.float64)
    flat = around.model.flat
    assert flat.data.dtype == flat.grad.dtype == np.float64
    for parameter in around.parameters():
        assert np.shares_memory(parameter.data, flat.data)
        assert np.shares_memory(parameter.grad, flat.grad)


# One array for all


def test_parameters_and_gradients_lie_in_two_arrays_at_their_slices():
    tree = Tree()
    tree.layers[1].weight.grad += np.arange(6).reshape(3, 2)
    values = [parameter.data.copy() for parameter in tree.parameters()]
    flat = FlatParameters(tree)
    assert list(flat.slices) == PATHS
    ends = [0, 6, 9, 15, 17, 19]
    assert list(flat.slices.values()) == [slice(*both) for both in pairwise(ends)]
    assert flat.data.shape == flat.grad.shape == (SIZE,)
    assert np.flatnonzero(flat.grad).tolist() == [10, 11, 12, 13, 14]  # the others begin at zero
    np.testing.assert_array_equal(flat.data, np.concatenate([v.reshape(-1) for v in values]))
    np.testing.assert_array_equal(flat.grad[9:15], range(6))
    for parameter, value in zip(tree.parameters(), values, strict=True):
        np.testing.assert_array_equal(parameter.data, value)


# Assigning to a parameter


@pytest.mark.parametrize("name", ["data", "grad"])
def test_what_is_assigned_to_a_parameter_of_a_flat_storage_is_copied_into_it(name):
    tree = Tree()
    flat = FlatParameters(tree)
    view, given = getattr(tree.gain, name), np.array([3.0, 4.0])
    setattr(tree.gain, name, given)
    given[:] = 0
    assert getattr(tree.gain, name) is view
    assert view.dtype == np.float32
    assert getattr(flat, name)[flat.slices["norm.gamma"]].tolist() == [3, 4]


def test_a_parameter_may_be_assigned_a_view_of_itself():
    tree = Tree()
    tree.square = Parameter(np.arange(4.0, dtype=np.float32).reshape(2, 2))
    flat = FlatParameters(tree)
    tree.square.data = tree.square.data.T
    assert flat.data[flat.slices["square"]].tolist() == [0, 2, 1, 3]


@pytest.mark.parametrize("name", ["data", "grad"])
@pytest.mark.parametrize(("given", "error", "words"), [
    (np.ones(3), ValueError, r"shape \(2,\) was assigned an array of shape \(3,\); give one"),
    (np.float32(1), ValueError, r"an array of shape \(\)"),
    ([1.0, 2.0], TypeError, "expected a NumPy or CuPy array, got list"),
    (strict.zeros(2), TypeError, r"in another place than its own; .* model.device.asarray"),
], ids=["another shape", "a number", "a list", "another place"])  # fmt: skip
def test_what_does_not_fit_into_a_flat_storage_is_refused(name, given, error, words):
    tree = Tree()
    flat = FlatParameters(tree)
    before = getattr(flat, name).copy()
    with pytest.raises(error, match=words):
        setattr(tree.gain, name, given)
    np.testing.assert_array_equal(getattr(flat, name), before)


def test_a_parameter_of_no_flat_storage_takes_the_array_itself():
    parameter, data, grad = Parameter(np.ones(2)), np.zeros(3), np.ones(3)
    parameter.data, parameter.grad = data, grad
    assert parameter.data is data
    assert parameter.grad is grad


# Buffers


class Counts(Module):
    """A buffer of each kind, one of them in two places."""

    def __init__(self):
        self.weight = Parameter(np.ones(2, np.float32))
        self.mean = Buffer(np.zeros(2, np.float32))
        self.seen = [Buffer(np.zeros((), np.int64)), Buffer(np.array([True, False]))]
        self.same = self.mean

    def forward(self, x):
        self.mean.data = self.mean.data + x
        self.seen[0].data = self.seen[0].data + 1
        return x * self.weight.data, x


def kept(module):
    return {path: (b.data.dtype, b.data.tolist()) for path, b in module.named_buffers()}


def test_buffers_have_paths_and_are_no_parameters():
    module = Counts()
    assert list(kept(module)) == ["mean", "seen.0", "seen.1"]
    assert [path for path, _ in module.named_parameters()] == ["weight"]
    assert module.num_parameters() == FlatParameters(module).data.size == 2
    file = io.StringIO()
    module.summary(file)
    assert file.getvalue() == (
        "Counts: 2\n"
        "  weight (2,) = 2\n"
        "  mean (2,) (not trained)\n"
        "  seen.0 () (not trained)\n"
        "  seen.1 (2,) (not trained)\n"
        "  same (2,) (shared, counted above)\n"
    )


def test_what_is_assigned_to_a_buffer_is_copied_and_its_type_stays():
    buffer = Buffer(np.zeros(2, np.float32))
    array, given = buffer.data, np.array([3.0, 4.0])
    buffer.data = given
    given[:] = 0
    assert buffer.data is array
    assert (buffer.data.dtype, buffer.data.tolist()) == (np.float32, [3, 4])
    with pytest.raises(ValueError, match=r"a buffer of shape \(2,\) was assigned .* \(3,\)"):
        buffer.data = np.zeros(3)
    with pytest.raises(TypeError, match="a buffer was assigned an array in another place"):
        buffer.data = strict.zeros(2)


def test_copies_keep_what_is_in_buffers_and_have_their_own():
    module = Counts()
    module.forward(np.float32([3, 4]))
    copies = copy.deepcopy(module), pickle.loads(pickle.dumps(module))
    with debug(module):
        copies = *copies, copy.deepcopy(module)
        before = kept(module)
        module.forward(np.float32([1, 1]))
    for other in copies:
        assert kept(other) == before
        assert other.same is other.mean
        assert other.mean.merge is mean_or_last
    assert kept(module) == before | {"mean": (np.float32, [4, 5]), "seen.0": (np.int64, 2)}


def test_of_copies_of_floats_the_mean_is_kept_and_of_others_the_last():
    floats, whole = np.zeros(1, np.float32), np.zeros(1, np.int64)
    assert mean_or_last(floats, [floats + 1, floats + 4]).tolist() == [2.5]
    assert mean_or_last(whole, [whole + 1, whole + 4]).tolist() == [4]
