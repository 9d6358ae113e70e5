import numpy as np
import pytest
from _flops import batch_flops, gemm_shapes, step_flops
from tiny_workload import tiny_workload

from minitransformer import TransformerConfig


def test_a_step_on_multi30k_has_88_gflop_of_tiny_and_561_of_base():
    """The average batch of Multi30k: 1963 source and 1901 target tokens in sentences of 16."""
    lengths = np.full(120, 1963 / 120), np.full(120, 1901 / 120)
    tiny, base = (
        step_flops(TransformerConfig.preset(name, 8000), *lengths) for name in ("tiny", "base")
    )
    gflop = {kind: round(count / 1e9, 1) for kind, count in tiny.items()}
    assert gflop == {"linear": 63.8, "attention": 0.9, "logits": 23.4}
    assert round(sum(base.values()) / 1e9) == 561


def test_padding_is_no_work():
    workload = tiny_workload(count=1)
    (batch,) = workload.batches
    lengths = [(ids != 0).sum(axis=1) for ids in (batch.source, batch.labels)]
    assert lengths[0].sum() < batch.source.size
    assert batch_flops(workload.config, batch) == step_flops(workload.config, *lengths)


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_pytorch_counts_as_many_operations(norm):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode
    from torch_model import TorchTransformer

    config = TransformerConfig.preset("toy", 50, d_model=16, num_heads=2, d_ff=24, norm=norm)
    B, S, T = 3, 7, 5
    ids = [torch.ones(B, length, dtype=torch.int64) for length in (S, T, T)]
    model = TorchTransformer(config).eval()
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        model.loss(*ids, smoothing=0.1).backward()
    ours = sum(step_flops(config, np.full(B, S), np.full(B, T)).values())
    assert ours == counter.get_total_flops()


def test_the_measured_products_are_those_of_the_step():
    """Forward and both gradients of one map have the same operations, one third of its step's."""
    config = TransformerConfig.preset("tiny", 8000)
    operations = {name: 2 * m * k * n for name, (m, k, n) in gemm_shapes(config, 100).items()}
    none = np.zeros(0)
    logits = step_flops(config, none, np.full(1, 100))["logits"]
    assert [3 * count for name, count in operations.items() if "D x V" in name] == [logits] * 3
