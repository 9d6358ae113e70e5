"""Wrong backwards through time, each one slip of the pen in the right one: all are rejected.

A mutant says in which module which function is written otherwise, {was: is}, and which gradients
are wrong then, "all" or by name.
"""

from dataclasses import dataclass, replace
from types import ModuleType

import numpy as np
import pytest
from battery.table import slipped

from minitransformer.cases.case import (
    LABELS,
    SOME_TOKENS,
    SOURCE,
    TARGET,
    B,
    D,
    F,
    H,
    K,
    S,
    T,
)
from minitransformer.cases.layers import StatesAndLast
from minitransformer.cases.models import ModelLoss, small_recurrent_config
from minitransformer.gradcheck import check_module
from minitransformer.layers import additive_attention, elman, gru, lstm
from minitransformer.layers.additive_attention import AdditiveAttention
from minitransformer.layers.bidirectional import Bidirectional
from minitransformer.layers.elman import Elman
from minitransformer.layers.gru import GRU
from minitransformer.layers.lstm import LSTM
from minitransformer.models.recurrent_translator import RecurrentTranslator, TanhLinear

rng = np.random.default_rng(0)
X = rng.standard_normal((B, T, D))
STATES = rng.standard_normal((2, B, K))
LOOP = "recurrence_backward"


@dataclass
class Mutant:
    name: str
    where: ModuleType
    function: str
    slip: dict
    wrong: str

    def __str__(self):
        return f"{self.where.__name__.rpartition('.')[2]}: {self.name}"


WEIGHTS = {
    elman: "w_input w_hidden bias",
    gru: "w_input w_hidden b_input b_hidden",
    lstm: "w_input w_hidden bias",
}
MODULES = {elman: (Elman, 1), gru: (GRU, 1), lstm: (LSTM, 2)}
AT_PADDING = "dstate = _where_real(mask, t, (dh, *dothers), dstate)"
AT_TOKENS = "_where_real(mask, t, dstate, (0,) * len(dstate))"
THROUGH_U = "dh = dh + dfrom_state[t] @ w_hidden_t"
FIRST = "xp.zeros_like(h_before[0]) if ds is None else ds"
ONE_GEMM = "h_before.reshape(-1, len(w_hidden)).T @ rows"

MUTANTS = [
    *(
        mutant
        for layer, weights in WEIGHTS.items()
        for mutant in (
            Mutant(
                "no gradient from step to step through U",
                *(layer, LOOP, {THROUGH_U: "pass"}),
                "all",
            ),
            Mutant(
                "no gradient through the state carried over padding",
                *(layer, LOOP, {AT_PADDING: "dstate = (dh, *dothers)"}),
                "all",
            ),
            Mutant(
                "a gradient at padding, from the state",
                *(layer, LOOP, {AT_TOKENS: "dstate"}),
                f"x {weights}",
            ),
            Mutant(
                "dy of padding is not dropped",
                *(layer, LOOP, {"dy = xp.where(mask[:, :, None], dy, 0)": "pass"}),
                "all",
            ),
            Mutant(
                "what came of the last state is forgotten",
                *(layer, LOOP, {FIRST: "xp.zeros_like(h_before[0])"}),
                "all",
            ),
            Mutant(
                "dU of one step only",
                *(layer, LOOP, {ONE_GEMM: "h_before[1].T @ dfrom_state[1]"}),
                "w_hidden",
            ),
        )
    ),
    Mutant("tanh is passed over", elman, "elman_cell_backward", {" * (1 - h * h)": ""}, "all"),
    Mutant("1 − h for 1 − h²", elman, "elman_cell_backward", {"1 - h * h": "1 - h"}, "all"),
    Mutant(
        "h is given dz a second time, past U",
        *(elman, "elman_cell_backward", {"array_namespace(h).zeros_like(h)": "dz"}),
        "all",
    ),
    Mutant(
        "reset gate on the wrong side of the product",
        *(gru, "gru_cell_backward", {"[dgates, da_n * r]": "[dgates, da_n]"}),
        "all",
    ),
    Mutant(
        "no gradient past the update gate",
        *(gru, "gru_cell_backward", {", dh * z": ", 0 * dh"}),
        "all",
    ),
    Mutant(
        "update gate taken for its opposite",
        *(gru, "gru_cell_backward", {"dn = dh - dh * z": "dn = dh * z"}),
        "all",
    ),
    Mutant(
        "reset and update gate exchanged",
        *(gru, "gru_cell_backward", {"[dr, dz]": "[dz, dr]"}),
        "all",
    ),
    Mutant(
        "the memory's gradient is not carried on",
        *(lstm, "lstm_cell_backward", {"dc = dc + dh": "dc = dh"}),
        "all",
    ),
    Mutant(
        "forget gate left out",
        *(lstm, "lstm_cell_backward", {"dc * f": "dc"}),
        "all",
    ),
    Mutant(
        "output gate left out",
        *(lstm, "lstm_cell_backward", {"dh * o *": "dh *"}),
        "all",
    ),
    Mutant(
        "the memory after the step, squashed, for that before",
        *(lstm, "lstm_cell_backward", {"dc * c]": "dc * shown]"}),
        "all",
    ),
]


def names(module, parts, wrong):
    """The names of the gradients in a report."""
    weights = WEIGHTS[module].split()
    wrong = (parts + weights) if wrong == "all" else wrong.split()
    return {f"layer.{name}.grad" if name in weights else f"d{name}" for name in wrong}


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_wrong_backward_through_time_is_rejected(mutant, monkeypatch):
    kind, num_states = MODULES[mutant.where]
    layer = StatesAndLast(kind(D, K, np.random.default_rng(0)))
    h, c = (*STATES[:num_states], None)[:2]
    written = slipped(getattr(mutant.where, mutant.function), mutant.slip)
    monkeypatch.setattr(mutant.where, mutant.function, written)
    report = check_module(layer, X, h, c, SOME_TOKENS, directions=2)
    wrong = {tensor.name for tensor in report.tensors if not tensor.right}
    assert wrong == names(mutant.where, ["x", "h", "c"][: 1 + num_states], mutant.wrong), report


class OneDirection(Bidirectional):
    def backward(self, doutputs, cache):
        start_cache, _ = cache
        dx, *_ = self.from_start.backward([d[..., :K] for d in doutputs], start_cache)
        return dx


class HalvesExchanged(Bidirectional):
    def backward(self, doutputs, cache):
        return super().backward([np.roll(d, K, axis=-1) for d in doutputs], cache)


class TimeTurnedTwice(Bidirectional):
    """What reads from the end gives its dx in the order of the text already."""

    def backward(self, doutputs, cache):
        start_cache, end_cache = cache
        dx, *_ = self.from_start.backward([d[..., :K] for d in doutputs], start_cache)
        other, *_ = self.from_end.backward([d[..., K:] for d in doutputs], end_cache)
        return dx + other[:, ::-1]


@pytest.mark.parametrize(
    ("kind", "halves"),
    [
        (OneDirection, ["from_end"]),
        (HalvesExchanged, ["from_start", "from_end"]),
        (TimeTurnedTwice, []),
    ],
)
def test_a_wrong_backward_of_two_directions_is_rejected(kind, halves):
    layer = StatesAndLast(kind(GRU, D, K, np.random.default_rng(0)))
    report = check_module(layer, X, None, None, SOME_TOKENS, directions=2)
    weights = WEIGHTS[gru].split()
    expected = {f"layer.{half}.{name}.grad" for half in halves for name in weights}
    assert {tensor.name for tensor in report.tensors if not tensor.right} == {"dx", *expected}


@pytest.mark.parametrize(
    ("slip", "wrong"),
    [
        (
            {"(v * (1 - hidden * hidden))": "v"},
            "dquery dkey of_query.weight.grad of_key.weight.grad",
        ),
        (
            {"softmax_backward(dweights, softmax_cache)": "weights * dweights"},
            "dquery dkey of_query.weight.grad of_key.weight.grad dv",
        ),
        ({"dscores.reshape(-1) @ hidden": "weights.reshape(-1) @ hidden"}, "dv"),
        ({"dz.sum(axis=1)": "dz[:, -1]"}, "dkey of_key.weight.grad"),
    ],
    ids=["tanh is passed over", "softmax is passed over", "dv of the weights", "last query only"],
)
def test_a_wrong_backward_of_additive_attention_is_rejected(slip, wrong, monkeypatch):
    layer = AdditiveAttention(D, F, K, np.random.default_rng(0))
    shapes = (B, T, D), (B, S, F), (B, S, H)
    inputs = [np.random.default_rng(1).standard_normal(shape) for shape in shapes]
    written = slipped(additive_attention.additive_attention_backward, slip)
    monkeypatch.setattr(additive_attention, "additive_attention_backward", written)
    report = check_module(layer, *inputs, directions=2)
    assert {tensor.name for tensor in report.tensors if not tensor.right} == set(wrong.split())


OF_MEMORY = "encoder source_embedding"
OF_STATES = f"{OF_MEMORY} bridge decoder target_embedding"
OF_Y = f"{OF_STATES} attention combine"
MODEL_MUTANTS = {
    "what every step was given of the fixed vector is forgotten": (
        *("none", RecurrentTranslator.decode_backward),
        {"dm + dx[..., d:].sum(axis=1)": "dm"},
        OF_MEMORY,
    ),
    "of the fixed vector, only what the last step was given": (
        *("none", RecurrentTranslator.decode_backward),
        {"dx[..., d:].sum(axis=1)": "dx[:, -1, d:]"},
        OF_MEMORY,
    ),
    "no gradient through the first state, beside a fixed vector": (
        *("none", RecurrentTranslator.decode_backward),
        {"dm + dx[..., d:].sum": "dx[..., d:].sum"},
        OF_MEMORY,
    ),
    "no gradient through the first state, beside attention": (
        *("additive", RecurrentTranslator.encode_backward),
        {"self.encoder.backward(dmemory,": "self.encoder.backward((dmemory[0], None),"},
        OF_MEMORY,
    ),
    "a state is no query": (
        *("additive", RecurrentTranslator.decode_backward),
        {"ds = ds + dquery": "pass"},
        OF_STATES,
    ),
    "the encoder's states are values and no keys": (
        *("additive", RecurrentTranslator.decode_backward),
        {"(dkeys + dvalues, dm)": "(dvalues, dm)"},
        OF_MEMORY,
    ),
    "what was found in the source is not passed on": (
        *("additive", RecurrentTranslator.decode_backward),
        {"ds[..., k:]": "0 * ds[..., k:]"},
        f"{OF_STATES} attention",
    ),
    "dropout before the projection is passed over": (
        *("additive", RecurrentTranslator.decode_backward),
        {"dy = dropout_backward(dy, dropout_cache)": "pass"},
        OF_Y,
    ),
    "tanh is passed over": (
        *("additive", TanhLinear.backward),
        {"dy * (1 - y * y)": "dy"},
        OF_Y,
    ),
}


@pytest.mark.parametrize("name", MODEL_MUTANTS)
def test_a_wrong_backward_of_a_recurrent_translator_is_rejected(name, monkeypatch):
    attention, right, slip, wrong = MODEL_MUTANTS[name]
    owner = TanhLinear if "TanhLinear" in right.__qualname__ else RecurrentTranslator
    monkeypatch.setattr(owner, right.__name__, slipped(right, slip))
    config = replace(small_recurrent_config(attention), tying="none")
    model = RecurrentTranslator(config, seed=1)
    report = check_module(ModelLoss(model), SOURCE, TARGET, LABELS, directions=1)
    found = {tensor.name.split(".")[1] for tensor in report.tensors if not tensor.right}
    assert found == set(wrong.split()), report
