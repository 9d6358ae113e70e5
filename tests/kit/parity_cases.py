"""What is compared with PyTorch: the package's cases, and trainings, on inputs of their own.

Torch's side of each is a function of ``torch_twin``. What it computes is kept in VECTORS, as
``make_torch_vectors.py`` writes it. Nothing here imports torch.

Inputs and weights are drawn anew each time, also where torch's results are read from a file. So
they come from the raw bits of a generator, which NumPy promises not to change, and are multiples of
1/256, the same numbers in float32 and in float64.
"""

import math
from pathlib import Path

import numpy as np

from minitransformer.cases import CASES
from minitransformer.cases.case import B, Case, D, S, T, V, module
from minitransformer.cases.models import ModelLoss, small_config
from minitransformer.core.module import FlatParameters, Module, Parameter
from minitransformer.core.twins import Twin
from minitransformer.layers.dropout import dropout
from minitransformer.models.registry import new_model
from minitransformer.optim.adam import Adam

VECTORS = Path(__file__).parent / "vectors" / "torch.npz"
STORE = f"run python {Path(__file__).with_name('make_torch_vectors.py')}, which needs PyTorch"
LEARNING_RATE = 1e-3
STEPS = 20
SHRINKING = 0.5 ** np.array([0, 10, 20, 26, 29, 32])  # (D,), down to the size of Adam's ε


def draw(case):
    """The inputs of a case, always the same, by name: floats in ±½, but gains in 1 ± ½."""
    bits = np.random.PCG64(0)
    _, _, inputs, names = case.build(np.random.default_rng(0))
    return {
        name: _drawn(bits, x.shape) / 2 + name.endswith("gamma") if x.dtype.kind == "f" else x
        for name, x in zip(names, inputs, strict=True)
        if x is not None
    }


def upstream(shape):
    """The gradient of an output of that shape, in ±1."""
    return _drawn(np.random.PCG64(1), shape)


def _drawn(bits, shape):
    return (bits.random_raw(math.prod(shape)) % 257).astype(np.float64).reshape(shape) / 128 - 1


def ours(case, dtype="float64"):
    """What a case computes: y and the gradients, by name."""
    arrays = {n: x.astype(dtype) if x.dtype.kind == "f" else x for n, x in draw(case).items()}
    forward, backward, _, names = case.build(np.random.default_rng(0))
    y, cache = forward(*map(arrays.get, names))
    if backward is None:
        return {"y": y}
    gradients = backward(upstream(y.shape).astype(dtype), cache)
    gradients = gradients if isinstance(gradients, tuple) else (gradients,)
    gradients = zip(names, gradients, strict=False)  # those of masks and ids may be left off
    return {"y": y} | {f"d{name}": dx for name, dx in gradients if dx is not None}


class Kept:
    """Stands in for dropout: all is kept in training, as torch would drop something else."""

    @staticmethod
    def twin_of(function):
        return Twin(lambda x, *_: (x, None), lambda dy, cache: dy) if function is dropout else None


def differences(ours, theirs):
    """The relative error of every tensor, max |ours − theirs| / max |theirs|, by name.

    Raises:
        AssertionError: the two sides have not the same tensors, or one of theirs is all zero and
            so could not tell right from missing.
    """
    assert ours.keys() == theirs.keys()
    errors = {}
    for name, expected in theirs.items():
        assert ours[name].shape == expected.shape, name
        assert np.any(expected), f"{name} is all zero"
        errors[name] = float(abs(ours[name] - expected).max() / abs(expected).max())
    return errors


def pack(arrays):
    """A dict of arrays as one structured array, which is one small entry of an .npz file."""
    packed = np.zeros((), [(name, x.dtype, x.shape) for name, x in arrays.items()])
    for name, x in arrays.items():
        packed[name] = x
    return packed


def stored_results(case):
    """What torch computed in float64 when ``make_torch_vectors.py`` was last run."""
    with np.load(VECTORS, allow_pickle=False) as vectors:
        assert case.name in vectors, f"{VECTORS} has nothing for {case.name!r}: {STORE}"
        packed = vectors[case.name]
    return {name: packed[name] for name in packed.dtype.names}


class AdamSteps(Module):
    """A weight after one step of Adam for each of the gradients given."""

    def __init__(self):
        self.weight = Parameter(np.zeros(D))

    def forward(self, gradients):
        flat = FlatParameters(self)
        adam = Adam(flat)
        for gradient in gradients * SHRINKING:
            flat.grad[:] = gradient
            adam.step(LEARNING_RATE)
        return flat.data, None


class Training(ModelLoss):
    """The losses of STEPS steps of Adam that go through the batches in turn."""

    def forward(self, sources, targets, labels):
        flat = FlatParameters(self)
        adam = Adam(flat)
        losses = []
        for step in range(STEPS):
            i = step % len(sources)
            loss, cache = super().forward(sources[i], targets[i], labels[i])
            flat.grad[:] = 0
            self.backward(1.0, cache)
            adam.step(LEARNING_RATE)
            losses.append(loss)
        return np.array(losses), None


def _forward_alone(make, *inputs):
    def build(rng):
        forward, _, arrays, names = module(make, *inputs)(rng)
        return forward, None, arrays, names

    return build


def _padded_ids(bits, *shape):
    """Ids from 1 on; row i of each batch ends in i times padding."""
    rows, length = shape[-2:]
    real = np.arange(length) < length - np.arange(rows)[:, None]
    return np.where(real, 1 + (bits.random_raw(shape) % (V - 1)).astype(np.int64), 0)


def _training(norm):
    bits = np.random.PCG64(1)
    sentences, sources = _padded_ids(bits, 3, B, T + 1), _padded_ids(bits, 3, B, S)
    return _forward_alone(
        lambda rng: Training(new_model(small_config(norm))),
        *(sources, sentences[..., :-1], sentences[..., 1:]),
    )


TRAININGS = [Case(f"training, {norm}-norm", _training(norm)) for norm in ("post", "pre")]
ADAM = Case("adam", _forward_alone(lambda rng: AdamSteps(), (STEPS, D)))
NOT_IN_TORCH = {
    "low_rank, around a linear layer",  # whose weight is drawn; the pair is there
    "model, convolution",  # but its layers are
    "model, adapters",  # its frozen arrays are made up; tests/models/test_adapters.py
    "model, residual network, shortcuts B, bottlenecks",  # too large to store; test_in_torch.py
}
PARITY = [*(case for case in CASES if case.name not in NOT_IN_TORCH), ADAM, *TRAININGS]
