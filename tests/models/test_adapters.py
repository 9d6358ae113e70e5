"""Adapters of low rank in whole language models, beside the same model in which they are merged.

That has the losses and gradients of PyTorch whatever it chooses: test_language_model_choices.py.
"""

import copy
from dataclasses import replace

import numpy as np
import pytest
from on_device import STAND_IN
from test_language_model_choices import model_of, of_each_pair

from minitransformer.cases.case import LABELS, TARGET, V
from minitransformer.core.backend import to_host
from minitransformer.core.errors import InputError
from minitransformer.core.module import Module
from minitransformer.core.parameter import Frozen, Parameter
from minitransformer.core.twins import accelerated
from minitransformer.data.text.batches import LabelledBatch
from minitransformer.models.adapters import adapted_name
from minitransformer.models.language_model import LanguageModel
from minitransformer.models.language_model_config import PRESETS, LanguageModelConfig
from minitransformer.models.masked_language_model import MaskedLanguageModelConfig
from minitransformer.runs.checkpoint.arrays import (
    PARAMETERS,
    load_frozen,
    merge_adapters,
    model_arrays,
)
from minitransformer.runs.checkpoint.file import CheckpointError

RANK = 2
BATCH = LabelledBatch.of(TARGET, LABELS)


def adapted(plain, rank=RANK):
    """A model with adapters of the arrays of a plain one; what they have learned is made up."""
    model = LanguageModel(replace(plain.config, lora=rank), seed=5, dtype=np.float64)
    load_frozen(model, model_arrays(plain))
    model.flat.data[:] = np.random.default_rng(6).normal(0, 0.3, model.flat.data.size)
    return model


def merged(plain, model):
    """A plain model in which are what the adapters of another one have learned."""
    copied = copy.deepcopy(plain)
    merge_adapters(copied, model_arrays(model))
    return copied


def maps(model):
    """Of each adapted map its path in a plain model, and where its A and B are in this one."""
    parameters = dict(model.named_parameters())
    return {
        path.removesuffix(".a"): (parameters[path], parameters[f"{path.removesuffix('.a')}.b"])
        for path in parameters
        if path.endswith(".a")
    }


@of_each_pair
@pytest.mark.parametrize("awake", [False, True])
def test_it_says_what_the_model_says_into_which_they_are_merged(config, awake):
    plain = model_of(config)
    model = adapted(plain)
    with accelerated(awake):
        logits, _ = model.forward(TARGET)
        expected, _ = merged(plain, model).forward(TARGET)
        before, _ = plain.forward(TARGET)
    np.testing.assert_allclose(logits, expected, rtol=1e-9, atol=1e-9)
    assert abs(logits - before).max() > 1e-3


@of_each_pair
def test_their_gradients_are_that_of_the_weight_seen_through_the_other_one(config):
    """With W' = W + A B the chain rule gives dA = dW' Bᵀ and dB = Aᵀ dW'."""
    plain = model_of(config)
    model = adapted(plain)
    whole = merged(plain, model)
    for each in (model, whole):
        each.loss_backward(1.0, each.loss(BATCH)[1])
    gradients = {adapted_name(name): p.grad for name, p in whole.named_parameters()}
    assert len(maps(model)) == (7 if config.activation == "swiglu" else 6) * config.num_layers
    for path, (a, b) in maps(model).items():
        dweight = gradients[f"{path}.weight"]
        scale = abs(dweight).max()
        np.testing.assert_allclose(a.grad, dweight @ b.data.T, rtol=1e-9, atol=1e-10 * scale)
        np.testing.assert_allclose(b.grad, a.data.T @ dweight, rtol=1e-9, atol=1e-10 * scale)


@of_each_pair
def test_new_ones_change_nothing_and_all_but_them_is_frozen(config):
    plain = model_of(config)
    model = LanguageModel(replace(config, lora=RANK), seed=5, dtype=np.float64)
    load_frozen(model, model_arrays(plain))
    expected, _ = plain.forward(TARGET)
    np.testing.assert_allclose(model.forward(TARGET)[0], expected, rtol=1e-9, atol=1e-9)
    assert all(name.endswith((".a", ".b")) for name, _ in model.named_parameters())
    assert model.num_parameters() == model.config.num_parameters()
    held = sum(frozen.data.size for _, frozen in model.named_frozen())
    assert held == plain.num_parameters() == config.num_parameters()


def test_the_same_seed_draws_the_same_ones_and_another_one_others():
    config = LanguageModelConfig(V, 16, num_layers=1, lora=RANK)
    one, same, other = (LanguageModel(config, seed).flat.data for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


def test_those_of_a_published_model_are_counted_as_its_paper_counts():
    """r (D_in + D_out) a map; of the 30 layers of SmolLM2 576 wide, of rank 8: 2,442,240."""
    config = LanguageModelConfig(**PRESETS["smollm2-135m"], lora=8)
    of_attention = 2 * (576 + 576) + 2 * (576 + 192)
    of_feed_forward = 3 * (576 + 1536)
    assert config.num_parameters() == 30 * 8 * (of_attention + of_feed_forward) == 2_442_240


@pytest.mark.parametrize(
    ("kind", "fields", "said"),
    [
        (LanguageModelConfig, dict(lora=-1), "lora=-1 must be >= 0"),
        (LanguageModelConfig, dict(lora=8), "lora=8 must be 7 at most"),
        (LanguageModelConfig, dict(lora=5, num_groups=1), "lora=5 must be 3 at most"),
        (MaskedLanguageModelConfig, dict(lora=1), "lora=1 is for models of kind 'language-model'"),
    ],
)
def test_a_rank_that_makes_no_sense_is_refused(kind, fields, said):
    with pytest.raises(InputError, match=said):
        kind(V, 16, num_heads=4, **fields)


def test_a_replica_and_a_copy_share_what_is_frozen_and_moving_one_leaves_the_other():
    model = adapted(model_of(LanguageModelConfig(V, 16, num_layers=1)))
    arrays = {id(frozen.data) for _, frozen in model.named_frozen()}
    other = model.replica()
    assert {id(frozen.data) for _, frozen in other.named_frozen()} == arrays
    assert other.embedding.weight is other.output_projection.weight  # as in the first
    copied = copy.deepcopy(model).to(dtype=np.float32)
    assert {f.data.dtype.name for _, f in copied.named_frozen()} == {"float32"}
    assert {f.data.dtype.name for _, f in model.named_frozen()} == {"float64"}


def test_what_is_frozen_forgets_gradients():
    frozen = Frozen(np.ones(3))
    frozen.grad += np.ones(3)
    np.testing.assert_array_equal(frozen.data, 1)
    assert not isinstance(frozen.grad, np.ndarray)


def test_a_summary_says_that_it_is_not_trained(capsys):
    adapted(model_of(LanguageModelConfig(V, 16, num_layers=1))).summary()
    printed = capsys.readouterr().out
    assert "a (16, 2) = 32" in printed
    assert "weight (16, 16) (not trained)" in printed


def test_they_are_merged_where_the_model_is():
    plain = model_of(LanguageModelConfig(V, 16, num_layers=1))
    model = adapted(plain)
    expected = merged(plain, model).forward(TARGET)[0]
    there = copy.deepcopy(plain).to(STAND_IN)
    merge_adapters(there, model_arrays(model))
    np.testing.assert_allclose(to_host(there.forward(TARGET)[0]), expected, atol=1e-9)
    other = LanguageModel(model.config, seed=0, device=STAND_IN, dtype=np.float64)
    load_frozen(
        other, {f"{PARAMETERS}/{n}": p.data for n, p in plain.to(STAND_IN).named_parameters()}
    )
    other.flat.data[:] = STAND_IN.asarray(model.flat.data)
    np.testing.assert_allclose(to_host(other.forward(TARGET)[0]), expected, atol=1e-9)


def test_what_no_module_has_as_an_attribute_cannot_be_frozen():
    class Pair(Module):
        def __init__(self):
            self.weights = [Parameter(np.ones(2)), Parameter(np.ones(3))]

    with pytest.raises(ValueError, match=r"weights\.0 is no attribute"):
        Pair().freeze()


def harm(arrays, name, array):
    return {n: a for n, a in arrays.items() if n != name} | ({} if array is None else {name: array})


MAP = f"{PARAMETERS}/stack.layers.0.self_attention.query"


@pytest.mark.parametrize(
    ("name", "array", "said"),
    [
        (f"{MAP}.b", None, r"adapters of stack.layers.0.self_attention.w_query are \(16, 2\) and"),
        (f"{MAP}.a", np.ones((16, 3)), r"w_query are \(16, 3\) and \(2, 16\)"),
        (f"{MAP}.a", np.ones((1, 2)), r"w_query are \(1, 2\) and \(2, 16\)"),
        (f"{PARAMETERS}/nowhere.a", np.ones((16, 2)), "adapters of nothing: parameters/nowhere.a"),
        (f"{PARAMETERS}/embedding.weight", np.ones(3), "adapters of nothing: .*embedding.weight"),
    ],
)
def test_adapters_of_another_model_are_not_merged(name, array, said):
    plain = model_of(LanguageModelConfig(V, 16, num_layers=1))
    arrays = harm(model_arrays(adapted(plain)), name, array)
    with pytest.raises(CheckpointError, match=said):
        merge_adapters(plain, arrays)


@pytest.mark.parametrize(
    ("array", "said"),
    [(None, "nothing"), (np.ones((3, 3)), r"an array of shape \(3, 3\)")],
)
def test_what_is_to_be_adapted_is_whole(array, said):
    plain = model_of(LanguageModelConfig(V, 16, num_layers=1))
    arrays = harm(model_arrays(plain), f"{PARAMETERS}/stack.layers.0.self_attention.w_key", array)
    model = LanguageModel(replace(plain.config, lora=1), seed=0, dtype=np.float64)
    with pytest.raises(CheckpointError, match=f"self_attention.key.weight .*{said}"):
        load_frozen(model, arrays)
