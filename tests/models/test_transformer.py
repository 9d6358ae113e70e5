import kinds
import pytest

from minitransformer import Transformer, TransformerConfig
from minitransformer.cases.case import SOURCE, TARGET, B, D, F, H, S, T, V

both_norms = pytest.mark.parametrize("norm", ["post", "pre"])


def one_layer_config(**fields):
    sizes = dict(d_model=D, num_heads=H, d_ff=F, num_encoder_layers=1, num_decoder_layers=1)
    return TransformerConfig(V, V, **(sizes | dict(dropout=0.0, max_length=8) | fields))


@pytest.mark.parametrize(("field", "shapes"), [
    ("dropout", [(B, S, D)] * 3 + [(B, T, D)] * 4),
    ("attention_dropout", [(B, H, S, S), (B, H, T, T), (B, H, T, S)]),
    ("feed_forward_dropout", [(B, S, F), (B, T, F)]),
])  # fmt: skip
@both_norms
def test_each_dropout_acts_where_the_config_says(norm, field, shapes):
    model = Transformer(one_layer_config(norm=norm, **{field: 0.1}))
    recorder = kinds.Recorder()
    model.forward(SOURCE, TARGET, recorder)
    assert recorder.shapes == shapes


def test_epsilon_of_the_config_reaches_every_norm():
    model = Transformer(one_layer_config(norm="pre", epsilon=0.25))
    norms = [m for path, m in model.named_modules() if path.endswith("norm")]
    assert len(norms) == 7
    assert {norm.epsilon for norm in norms} == {0.25}
