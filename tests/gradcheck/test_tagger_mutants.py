import pytest
from battery.table import slipped

from minitransformer.cases.case import LABELS, TARGET
from minitransformer.cases.models import ModelLoss, small_tagger_config
from minitransformer.gradcheck import check_module
from minitransformer.layers.embedding import OutputProjection
from minitransformer.models.language_model import LanguageModel
from minitransformer.models.tagger import Tagger

MUTANTS = {
    "the projection is not learned": (
        OutputProjection.backward,
        {"self.weight.grad += dweight_transposed.T": "pass"},
        "output_projection",
    ),
    "the projection learns twice, as if it were tied": (
        OutputProjection.backward,
        {
            "+= dweight_transposed.T": "+= 2 * dweight_transposed.T",
        },
        "output_projection",
    ),
    "the encoder is left as it began": (
        LanguageModel.features_backward,
        {
            "dx = self.stack.backward(dy, stack_cache)": "return",
        },
        "embedding positions stack",
    ),
    "the stack is passed over": (
        LanguageModel.features_backward,
        {"dx = self.stack.backward(dy, stack_cache)": "dx = dy"},
        "embedding positions stack",
    ),
}
OWNERS = {owner.__name__: owner for owner in (OutputProjection, LanguageModel)}


def wrong_parts(model):
    report = check_module(ModelLoss(model), TARGET, LABELS, directions=1, tolerance=1e-6)
    return {tensor.name.split(".")[1] for tensor in report.tensors if not tensor.right}


def test_the_backward_of_a_tagger_is_right():
    assert wrong_parts(Tagger(small_tagger_config(), seed=1)) == set()


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_backward_of_a_tagger_is_rejected(name, monkeypatch):
    right, slip, wrong = MUTANTS[name]
    owner = OWNERS[right.__qualname__.partition(".")[0]]
    monkeypatch.setattr(owner, right.__name__, slipped(right, slip))
    assert wrong_parts(Tagger(small_tagger_config(), seed=1)) == set(wrong.split())
