"""The recurrent translator with additive attention, built from PyTorch's own GRUs, is the same."""

import numpy as np
import pytest
from parity_cases import SMOOTHING, Case, WithLoss, differences

from minitransformer.cases.case import (
    LABELS,
    SOURCE,
    TARGET,
    D,
    K,
    V,
)
from minitransformer.models.recurrent_translator import (
    RecurrentTranslator,
    RecurrentTranslatorConfig,
)

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
import torch_twin  # noqa: E402


class RecurrentWithLoss(WithLoss, RecurrentTranslator):
    pass


def new_model(tying):
    return RecurrentWithLoss(RecurrentTranslatorConfig(V, V, D, d_hidden=K, tying=tying))


def torch_translator(twin, t):
    """Which weights are tied shows in which there are, as in ``torch_twin.model``."""
    for_source = t["source_embedding.weight"]
    for_target = t.get("target_embedding.weight", for_source)
    for_output = t.get("output_projection.weight", for_target)

    def tanh_linear(path, x):
        weights = twin.linear_weights(twin.part(t, f"{path}.linear"))
        return torch.tanh(torch.nn.functional.linear(x, **weights))

    x = twin.embedding({"weight": for_source, "ids": t["source"]})
    encoder = twin.put("layer", twin.part(t, "encoder"))
    states = twin.recurrent({"x": x, "source": t["source"], **encoder}, directions=2)
    h, m = states[:, :-1], states[:, -1]  # (B, S, 2K), (B, 2K)

    x = twin.embedding({"weight": for_target, "ids": t["target"]})
    decoder = twin.put("layer", twin.part(t, "decoder"))
    first, every_step = tanh_linear("bridge", m), torch.ones_like(t["target"])
    states = twin.recurrent({"x": x, "h": first, "source": every_step, **decoder}, directions=1)
    s = states[:, :-1]  # (B, T, K)

    attention = twin.part(t, "attention")
    c = twin.additive_attention(
        {"query": s, "key": h, "value": h, "source": t["source"], **attention}
    )
    y = tanh_linear("combine", torch.cat([s, c], -1))  # (B, T, D)
    logits = torch.nn.functional.linear(y, for_output)
    labelled = {"logits": logits, "labels": t["labels"]}
    return {"logits": logits, **twin.cross_entropy(labelled, SMOOTHING)}


@pytest.mark.parametrize("tying", ["three-way", "none"])
def test_torch_computes_the_same_logits_loss_and_gradients(tying):
    case = Case(
        f"recurrent translator, {tying} tying",
        lambda rng: new_model(tying),
        torch_translator,
        dict(source=SOURCE, target=TARGET, labels=LABELS, dloss=np.array(0.75)),
    )
    arrays = case.draw()
    errors = differences(case.ours(arrays, "float64"), case.torch(torch_twin, arrays, "float64"))
    assert len(errors) > 20
    assert max(errors.values()) < 1e-10, errors
