"""PyTorch's side of the benchmarks is the same model, and its training the same training."""

from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import loss_curve  # noqa: E402
import train_step  # noqa: E402
from _settings import Settings  # noqa: E402
from _torch_side import TorchSide, learning_rate  # noqa: E402
from tiny_workload import InThisProcess, tiny_workload  # noqa: E402
from torch_model import TorchTransformer, from_ours, load_ours  # noqa: E402

from minitransformer import Transformer  # noqa: E402
from minitransformer.training.config import TrainingConfig  # noqa: E402

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_the_model_has_our_loss_and_gradients(norm):
    """Every parameter of theirs is checked, so none is left out or taken for another."""
    workload = tiny_workload(count=1, norm=norm)
    loss, gradients = torch_gradients(workload)
    our_loss, ours = our_gradients(workload)
    assert np.isclose(loss, our_loss, rtol=1e-12)
    ours = from_ours(ours, workload.config)
    assert ours.keys() == gradients.keys()
    for name, gradient in gradients.items():
        np.testing.assert_allclose(ours[name], gradient, rtol=1e-8, atol=1e-12, err_msg=name)


def our_gradients(workload):
    model = Transformer(workload.config, dtype=np.float64)
    for path, parameter in model.named_parameters():
        parameter.data[...] = workload.weights[path]
    (batch,) = workload.batches
    (loss, _), cache = model.loss(batch, smoothing=0.1)
    model.loss_backward(1.0, cache)
    return float(loss), {path: parameter.grad for path, parameter in model.named_parameters()}


def torch_gradients(workload):
    model = TorchTransformer(workload.config, torch.float64).eval()
    load_ours(model, workload.weights)
    (batch,) = workload.batches
    ids = (torch.tensor(x).long() for x in (batch.source, batch.target, batch.labels))
    loss = model.loss(*ids, smoothing=0.1)
    loss.backward()
    return float(loss.detach()), {n: p.grad.numpy() for n, p in model.named_parameters()}


def test_both_sides_have_one_schedule():
    settings = Settings(peak_learning_rate=0.01, warmup_steps=4, total_steps=10)
    config = TrainingConfig(schedule="linear", peak_learning_rate=0.01, warmup_steps=4)
    for step in range(1, 13):
        rate = learning_rate(settings, step)
        assert np.isclose(rate, config.learning_rate(step, 10, None), atol=1e-15)


def test_pytorch_can_be_the_other_side():
    result = train_step.measure(tiny_workload(count=2), Settings(), tuned_malloc=True)
    assert result["theirs"]["name"] == f"PyTorch {torch.__version__}, eager"
    assert result["tuned_malloc"]
    assert 0 < result["agreement"]["float64"]["gradient"] < 1e-11


def test_dropout_is_drawn_in_training_and_not_in_the_comparison(tmp_path):
    side = TorchSide(tiny_workload(count=1, dropout=0.5), Settings())
    losses = [side.gradients(0, tmp_path / "g.npz", "float32") for _ in range(2)]
    assert losses[0] == losses[1]
    with torch.no_grad():
        drawn = [float(side.loss(*side.batches[0], 0.1)) for _ in range(2)]
    assert drawn[0] != drawn[1]


SETTINGS = Settings(peak_learning_rate=0.01, warmup_steps=10, total_steps=40, threads=1)


def trained(**wrong):
    """What the script's run has trained, once more; with ``wrong`` settings of PyTorch's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loss_curve, "SideProcess", partial(InThisProcess, **wrong))
        return loss_curve.train(tiny_workload(count=8), SETTINGS, 40)


@pytest.fixture
def runs(ran):
    return ran("loss_curve").result["runs"]


def test_the_losses_fall_alike(runs):
    found = loss_curve.compare(runs)
    assert found["agree"]
    assert found["rounding"] < 1e-4
    for run in runs:
        assert len(run["losses"]) == 40
        assert np.mean(run["losses"][-5:]) < np.mean(run["losses"][:5]) - 0.1


@pytest.mark.parametrize("side", ["ours", "torch"])
def test_only_dropout_makes_seeds_differ(runs, side):
    first, second = (r["losses"] for r in runs if r["side"] == side and r["dropout"])
    assert first != second
    repeated = [r["losses"] for r in trained() if r["side"] == side and not r["dropout"]]
    assert repeated == [r["losses"] for r in runs if r["side"] == side and not r["dropout"]]


@pytest.mark.parametrize("wrong", [
    dict(peak_learning_rate=0.02),
    dict(peak_learning_rate=0.011),
    dict(warmup_steps=14),
    dict(smoothing=0.0),
    dict(clip_norm=0.0),
], ids=str)  # fmt: skip
def test_another_recipe_on_one_side_is_noticed(wrong):
    found = loss_curve.compare(trained(**wrong))
    assert found["rounding"] > loss_curve.ROUNDING
    assert not found["agree"]
