import pytest
from battery.table import slipped

from minitransformer.cases.case import LABELS, TARGET
from minitransformer.cases.models import ModelLoss, small_language_model_config
from minitransformer.gradcheck import check_module
from minitransformer.models.language_model import LanguageModel
from minitransformer.models.token_model import TokenModel

OF_X = "embedding positions"
MUTANTS = {
    "words are learned from what they are predicted by alone": (
        TokenModel._embed_backward,
        {"embedding.backward(dx, embedding_cache)": "pass"},
        "embedding",
    ),
    "dropout of words and positions is passed over": (
        TokenModel._embed_backward,
        {"dx = dropout_backward(dx, dropout_cache)": "pass"},
        OF_X,
    ),
    "the stack is passed over": (
        LanguageModel.features_backward,
        {"dx = self.stack.backward(dy, stack_cache)": "dx = dy"},
        f"{OF_X} stack",
    ),
    "the projection is not learned": (
        TokenModel.backward,
        {
            "self.output_projection.backward(dlogits, projection_cache)": (
                "dlogits @ self.output_projection.weight.data"
            )
        },
        "embedding",
    ),
}


def wrong_parts(model):
    report = check_module(ModelLoss(model), TARGET, LABELS, directions=1, tolerance=1e-6)
    return {tensor.name.split(".")[1] for tensor in report.tensors if not tensor.right}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_backward_of_a_language_model_is_rejected(name, monkeypatch):
    right, slip, wrong = MUTANTS[name]
    owner = TokenModel if "TokenModel" in right.__qualname__ else LanguageModel
    monkeypatch.setattr(owner, right.__name__, slipped(right, slip))
    assert wrong_parts(LanguageModel(small_language_model_config(), seed=1)) == set(wrong.split())
