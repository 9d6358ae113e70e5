"""Plausible wrong answers to exercise 01 are told what is wrong with them."""

import numpy as np
import pytest
from exercise_files import functions_in, only_wrong, solution_of

from minitransformer import Transformer, TransformerConfig
from minitransformer.decoding import cross_attention
from minitransformer.layers.attention import split_heads
from minitransformer.layers.linear import linear

SOLUTION = functions_in(solution_of("ex01"))


@pytest.mark.parametrize(
    ("name", "shape", "says"),
    [
        ("cross_weights", lambda B, S, T, D, H, F, V: (B, H, S, T), "another order; target"),
        ("cross_keys", lambda B, S, T, D, H, F, V: (B, H, S, D), "D / H"),
        ("cross_keys", lambda B, S, T, D, H, F, V: (B, H, T, D // H), "come from the memory"),
        ("encoder_weights", lambda B, S, T, D, H, F, V: (B, S, S), "source positions ask"),
        ("decoder_weights", lambda B, S, T, D, H, F, V: (B, H, T, S), "target positions are asked"),
        ("logits", lambda B, S, T, D, H, F, V: (B, T, D), "for each of V words"),
        ("inside", lambda B, S, T, D, H, F, V: (B, T, F), "there are S of them"),
        ("memory", lambda B, S, T, D, H, F, V: "B S D", "row of D numbers"),
    ],
)
def test_a_wrong_shape_is_told_what_the_array_is(name, shape, says):
    def answer(*sizes):
        return SOLUTION["shapes_in_the_model"](*sizes) | {name: shape(*sizes)}

    said = only_wrong("ex01", "shapes_in_the_model", shapes_in_the_model=answer)
    assert said.startswith(f"{name}: ")
    assert says in said


def test_a_shape_that_is_left_out_is_missed():
    said = only_wrong(
        "ex01", "shapes_in_the_model", shapes_in_the_model=lambda *sizes: {"memory": (1, 2, 3)}
    )
    assert "no inside, encoder_weights" in said


@pytest.mark.parametrize(
    ("difference", "says"),
    [
        (lambda V, D, F, N: 2 * V * D, "count it once"),
        (lambda V, D, F, N: V * D, "count it once"),
        (lambda V, D, F, N: -V * D, "is missing"),
        (lambda V, D, F, N: -2 * D, "each of the two stacks ends with a LayerNorm"),
        (lambda V, D, F, N: -(10 * N + 4) * D, "LayerNorms are missing"),
        (lambda V, D, F, N: -2 * N * D, "three LayerNorms"),
        (lambda V, D, F, N: -N * (4 * D * D + 2 * D), "and its LayerNorm"),
        (lambda V, D, F, N: -4 * D, "end of each stack is missing"),
        (lambda V, D, F, N: -(5 * N + 2) * D, "γ and β"),
        (lambda V, D, F, N: -2 * N * (F + D), "have biases"),
        (lambda V, D, F, N: 12 * N * D, "attention has no biases"),
        (lambda V, D, F, N: -4 * N * D * D, "two attentions"),
        (lambda V, D, F, N: -3 * N * D * D, "for its output too"),
        (lambda V, D, F, N: 7, "one attention, one feed-forward"),
    ],
)
def test_a_wrong_count_is_told_what_was_counted_wrong(difference, says):
    def answer(*sizes):
        return SOLUTION["count_parameters"](*sizes) + difference(*sizes)

    assert says in only_wrong("ex01", "count_parameters", count_parameters=answer)


def test_the_answers_are_what_a_model_has():
    B, S, T, D, H, F, V, N = 2, 5, 4, 12, 3, 20, 17, 2
    model = Transformer(
        TransformerConfig.preset(
            "toy", V, d_model=D, num_heads=H, d_ff=F, num_encoder_layers=N, num_decoder_layers=N
        )
    )
    assert SOLUTION["count_parameters"](V, D, F, N) == model.num_parameters()

    source, target = np.ones((B, S), int), np.ones((B, T), int)
    logits, _ = model.forward(source, target)
    _, ((_, (encoder, _)), (_, (decoder, _))) = model.features(source, target)
    memory, _ = model.encode(source, model.source_mask(source))
    weights = {
        "encoder_weights": encoder[0][0][1][4][-1],
        "decoder_weights": decoder[0][0][1][4][-1],
        "cross_weights": cross_attention(model, source, target)[0],
    }
    cross, network = model.decoder.layers[0].cross_attention, model.encoder.layers[0].feed_forward
    arrays = weights | {
        "memory": memory,
        "inside": linear(memory, network.w_1.data)[0],
        "cross_keys": split_heads(linear(memory, cross.w_key.data)[0], H),
        "logits": logits,
    }
    shapes = {name: array.shape for name, array in arrays.items()}
    assert SOLUTION["shapes_in_the_model"](B, S, T, D, H, F, V) == shapes
