"""Wrong backwards of the package's own layers, losses and models: all are rejected, most named."""

from dataclasses import replace

import numpy as np
import pytest
from battery.table import slipped
from battery.verdicts import Verdict
from made import MadeWrong
from slips import BY_NAME, SLIPS, write

from minitransformer.cases import CASES
from minitransformer.cases.models import ModelLoss
from minitransformer.gradcheck import check_pair, trial
from minitransformer.gradcheck.report import CheckError
from minitransformer.layers.dropout import dropout, dropout_backward
from minitransformer.layers.layer_norm import LayerNorm
from minitransformer.layers.tiled_attention import tiled_attention_backward
from minitransformer.models.convolutional_translator import ConvolutionalTranslator

X = np.random.default_rng(0).standard_normal((3, 5, 7))


@pytest.mark.parametrize("slip", SLIPS, ids=str)
def test_a_slip_is_rejected_and_its_cause_named(slip, monkeypatch):
    report = slip.check(monkeypatch)
    wrong = [tensor for tensor in report.tensors if not tensor.right]
    assert wrong, "the slip changes nothing"
    if slip.wrong == "all":
        assert wrong == report.tensors, report
    else:
        assert slip.found(tensor.name for tensor in wrong) == set(slip.wrong.split()), report
    for tensor in wrong:
        assert tensor.error > (1e-2 if slip.says else 1e-4)  # none hides near the tolerance
        assert slip.says in tensor.diagnosis
    assert ("Only" in str(report)) == (len(wrong) == 1 < len(report.tensors))


def test_each_layer_each_loss_and_each_kind_of_model_has_a_slip():
    def kinds(names):
        return {" ".join(name.split(", ")[: 1 + name.startswith("model")]) for name in names}

    slipped_in = kinds(slip.case for slip in SLIPS)
    assert kinds(BY_NAME) - slipped_in == {"model post-norm"}  # which is pre-norm but for its norms


@pytest.mark.parametrize("written", ["dquery = query", "dkey = key", "dvalue = value"])
def test_a_backward_that_writes_over_what_it_is_made_of_is_refused(written, monkeypatch):
    """Or else a comparison of what was given with what came back may compare it with itself."""
    write(tiled_attention_backward, {"    for rows": f"    {written}\n    for rows"}, monkeypatch)
    with pytest.raises(CheckError, match="it must not write to what it is given"):
        BY_NAME["tiled_attention"].check()


def test_one_that_writes_over_the_output_is_wrong_in_each_gradient(monkeypatch):
    write(tiled_attention_backward, {"    for rows": "    dquery = y\n    for rows"}, monkeypatch)
    dquery, *others = BY_NAME["tiled_attention"].check().tensors
    assert "1 times y" in dquery.diagnosis
    for tensor in others:
        assert not tensor.right
        assert "backward writes to the y that forward returned" in tensor.diagnosis


def made_wrong(case):
    """A case with generic slips, one in each gradient, and the backward that has them."""
    forward, backward, inputs, names = case.build(np.random.default_rng(0))
    made = MadeWrong(backward, first=len(case.name))
    return replace(case, build=lambda rng: (forward, made, inputs, names)), made


@pytest.mark.parametrize(
    "case", [case for case in CASES if not case.directions], ids=lambda case: case.name
)
def test_a_slip_made_in_each_gradient_is_told_by_its_name(case):
    wrong, made = made_wrong(case)
    for kind, tensor in zip(made.kinds.values(), wrong.check().tensors, strict=True):
        assert not tensor.right
        judged = Verdict("wrong", ((tensor.name, tensor.diagnosis),)).judged(kind)
        assert judged == "named" or "zero everywhere" in tensor.diagnosis, tensor


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", [case for case in CASES if case.directions], ids=lambda case: case.name
)
def test_a_slip_made_in_each_gradient_of_a_whole_model_is_rejected(case, monkeypatch):
    """What it is called, the layers' cases say: to look for it in a model would take minutes."""
    monkeypatch.setattr(trial, "diagnose", lambda evidence: "")
    wrong, _ = made_wrong(replace(case, directions=1))
    assert not any(tensor.right for tensor in wrong.check().tensors)


@pytest.mark.parametrize(
    ("changes", "says"),
    [({"x " + "+ x": "x"}, "'x \\+ x' stands 0 times"), ({"changes": ""}, r"stands \d+ times")],
)
def test_a_slip_must_change_something_and_at_one_place(changes, says):
    with pytest.raises(ValueError, match=says):
        slipped(test_a_slip_must_change_something_and_at_one_place, changes)


def test_the_mask_of_one_dropout_at_two_places_that_overwrites_the_first_is_named():
    def forward(x):
        rng = np.random.default_rng(3)
        h, _ = dropout(x, 0.4, rng)
        return dropout(h + 1, 0.4, rng)

    def backward(dy, last_cache):
        return dropout_backward(dropout_backward(dy, last_cache), last_cache)

    (tensor,) = check_pair(forward, backward, (X,)).tensors
    assert "the factor `keep` is forgotten" in tensor.diagnosis


@pytest.mark.parametrize(("case", "backward", "was", "now", "most"), [
    ("model, language model", LayerNorm.backward, "_backward(dy", "_backward(dy", 5),
    ("model, language model", LayerNorm.backward, "_backward(dy", "_backward(2 * dy", 18),
    ("model, language model", LayerNorm.backward, "(dy, ", "(dy + 0.1 * np.abs(dy), ", 18),
    ("model, convolution", ConvolutionalTranslator.encode_backward,
     "dx = dx * ROOT_HALF", "pass", 100),  # 2 times too large, as many sizes are
], ids=["right", "twice", "not linear", "the size of many axes"])  # fmt: skip
def test_a_model_is_judged_after_few_calls_of_forward_a_gradient(
    case, backward, was, now, most, monkeypatch
):
    """A right one's slope takes two or four, a refined one 20, and each trial of a cause
    three; whether a wrong one is at a kink takes four.
    """
    calls, forward = [], ModelLoss.forward

    def counted(*arguments):
        calls.append(1)
        return forward(*arguments)

    monkeypatch.setattr(ModelLoss, "forward", counted)
    write(backward, {was: now}, monkeypatch)
    report = replace(BY_NAME[case], directions=1).check()
    assert report.right == (was == now)
    assert len(calls) < most * len(report.tensors)
