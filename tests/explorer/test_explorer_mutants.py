"""A wrong line in the JavaScript is caught by the comparison with NumPy."""

import shutil
from functools import cache

import pytest
from in_node import ask, runs, small_model, small_vocabulary
from in_numpy import INPUTS, Watched
from test_equal_to_numpy import KINDS, differences
from test_learning import differences_in_learning, learned, lessons
from test_texts import draws_that_differ

from minitransformer.explorer.page import FOLDER, explorer_page

GPT_2, LLAMA = KINDS["as GPT-2 has it"], KINDS["as Llama has it"]
ALIBI = dict(kind="language-model", positions="alibi", activation="gelu", window=3)
BERT = dict(kind="masked-language-model", window=2)
TRANSLATOR = dict(norm="pre")
# fmt: off
MUTANTS = {  # file, a piece of it, what stands there instead; whose run it is, if no translator's
    "db from x": ("layers/linear.js", "bias && sum_of_rows(dy)", "bias && sum_of_rows(x)"),
    "γ within the sums only": ("layers/layer_norm.js",
        "const dx_hat = row(dy, t).map((value, j) => value * gamma.data[j]);",
        "const dx_hat = row(dy, t);"),
    "no way through σ": ("layers/layer_norm.js", " - x_hat_t[j] * through_sigma", ""),
    "no way through μ": ("layers/layer_norm.js", "value - through_mean - ", "value - "),
    "ε forgotten": ("layers/layer_norm.js", ") + epsilon)", "))"),
    "softmax's sum forgotten": ("layers/softmax.js", "(dw[j] - together)", "dw[j]"),
    "the future is seen": ("layers/softmax.js", "fill(1, 0, t + 1)", "fill(1)"),
    "dkey without the scale": ("layers/attention.js",
        "scaled(matmul(transposed(dscores), query), scale)", "matmul(transposed(dscores), query)"),
    "every position gives its value alike": ("layers/attention.js",
        "matmul(transposed(weights), dy)",
        "matmul(transposed(softmax(scaled(weights, 0))[0]), dy)"),
    "a slope where ReLU is 0": ("layers/relu.js", "return multiply(dy, alive)", "return dy"),
    "a piece that stands twice counts once": ("layers/embedding.js",
        "(dweight_id[j] += value * scale)", "(dweight_id[j] = value * scale)"),
    "no √D in the embedding's backward": ("layers/embedding.js", "+= value * scale", "+= value"),
    "the sum of two ways is one way": ("transformer.js",
        "[add(dx, through), dmemory]", "[dx, dmemory]"),
    "the memory hears of one layer": ("transformer.js",
        "dmemory_of_block ? add(dmemory, dmemory_of_block) : dmemory",
        "dmemory_of_block ?? dmemory"),
    "keys forgotten in the source": ("transformer.js",
        "const dother = add(dkey, dvalue)", "const dother = dvalue"),
    "p is not taken off": ("layers/log_probability.js",
        "((v === piece ? 1 : 0) - p_v)", "(v === piece ? 1 : 0)"),
    "steps at the first position": ("translate.js", "this.position += 1", "this.position += 0"),
    "no correction of the moments": ("optim/adam.js",
        "[1 - BETA_1 ** t, 1 - BETA_2 ** t]", "[1, 1]"),
    "g in place of g²": ("optim/adam.js", "(1 - BETA_2) * grad[i] * grad[i]",
        "(1 - BETA_2) * Math.abs(grad[i])"),
    "moments that begin anew": ("optim/optimizer.js", "this.vectors[path] = vectors;", ""),
    "every second step is counted": ("optim/optimizer.js", "this.t += 1", "this.t += 2"),
    "each parameter counts as a step": ("optim/optimizer.js",
        "const grad =", "this.t += 1; const grad ="),
    "up the hill": ("optim/sgd.js", "theta - learning_rate", "theta + learning_rate"),
    "a model that is written to": ("optim/sgd.js",
        "return [data.map((theta, i) => theta - learning_rate * grad[i])];",
        "data.forEach((theta, i) => (data[i] = theta - learning_rate * grad[i])); return [data];"),
    "the sum in place of the mean": ("loss/cross_entropy.js", "0 : 1 / count", "0 : 1"),
    "the mean over padding, too": ("loss/cross_entropy.js",
        "targets.filter((target) => target !== PAD).length", "targets.length"),
    "the target is not taken off": ("loss/cross_entropy.js", " - (v === target ? 1 : 0)", ""),
    "a shared matrix has one gradient of several": ("boxes.js",
        "before ? add(before, value) : value", "value"),
    "a piece is wanted everywhere": ("learn.js", "Array(position).fill(PAD)",
        "Array(position).fill(piece)"),
    "the decoder sees what it should say": ("learn.js", "[BOS, ...pieces.slice(0, -1)]", "pieces"),
    "ε of the mean square forgotten": ("layers/rms_norm.js", ") + epsilon)", "))", LLAMA),
    "no way through ρ": ("layers/rms_norm.js",
        "(value - x_hat_t[j] * through_rho)", "value", LLAMA),
    "turned on, not back": ("layers/rotary.js", "scaled(sin, -1)", "sin", LLAMA),
    "halves as neighbours": ("layers/rotary.js",
        'pairs === "neighbours"', "true", KINDS["halves, GELU, a window"]),
    "groups tiled": ("layers/grouped_query_attention.js",
        "set(row(of_group, Math.floor((h * num_groups) / num_heads)))",
        "set(row(of_group, h % num_groups))", LLAMA),
    "a group hears of one head": ("layers/grouped_query_attention.js",
        "(sum[i] += value)", "(sum[i] = value)", LLAMA),
    "SiLU's slope is its gate": ("layers/silu.js",
        "sigma + y.data[i] * (1 - sigma)", "sigma", LLAMA),
    "the gate hears of itself": ("layers/swiglu.js",
        "const dgate = multiply(dh, up)", "const dgate = multiply(dh, gate)", LLAMA),
    "√D where there is none": ("layers/embedding.js",
        "embedding(ids, weight, 1)", "embedding(ids, weight)", LLAMA),
    "every step turned as the first": ("generate.js",
        "this.position += 1", "this.position += 0", LLAMA),
    "every step at the first vector": ("language_model.js",
        "this.add_positions(words, first)", "this.add_positions(words, 0)", GPT_2),
    "all positions learn of the first": ("layers/learned_positions.js",
        ".set(row(dy, t))", ".set(row(dy, 0))", GPT_2),
    "tanh has no slope": ("layers/gelu.js",
        "(1 + t.data[i] + value * dt)", "(1 + t.data[i])", GPT_2),
    "GELU's bell forgotten": ("layers/gelu.js",
        "gate.data[i] + value * density", "gate.data[i]", ALIBI),
    "slopes from 1 on": ("layers/alibi.js", "(-8 * (h + 1))", "(-8 * h)", ALIBI),
    "steps count from the first key": ("layers/alibi.js",
        "t + keys - queries - s", "t - s", ALIBI),
    "a window wider by one": ("layers/masks.js", "t - window)", "t - window - 1)", ALIBI),
    "no window in steps": ("generate.js", "this.last_row(k.shape[1])", "null", ALIBI),
    "a window of what comes before": ("layers/masks.js", "t + window + 1", "t + 1", BERT),
    "no future for a masked model": ("language_model.js",
        "return this.near(length);", "return super.mask(length);", BERT),
    "p counts among all": ("layers/log_probability.js",
        "!among || among.data[v]", "true", BERT),
}
OF_DRAWS = {
    "one more than the likeliest": ("sampling.js", "i < top_k", "i <= top_k"),
    "heat in place of its inverse": ("sampling.js", "score / temperature", "score * temperature"),
    "equal logits the other way": ("sampling.js", "|| a - b", "|| b - a"),
    "what is never said is said": ("sampling.js", "never.includes(id)", "false"),
    "the piece before": ("sampling.js", "findIndex((upto)", "findLastIndex((upto)"),
    "another stream of numbers": ("random.js", "constant = 0x43b0d7e5", "constant = 0x43b0d7e4"),
}
# fmt: on


@cache
def asked(**choices):
    """(page, requests, what NumPy says) of a few sentences of some length, and of lessons."""
    vocabulary = small_vocabulary()
    # With a large ε and a piece that stands twice nothing is too small to be seen.
    model = small_model(vocabulary, epsilon=0.1, **choices)
    page = explorer_page(model, vocabulary)
    kind = model.config.kind
    drawn = runs(vocabulary, 20, kind)
    requests = [run for run in drawn if min(len(run["source"]), len(run["target"])) > 5][:2]
    requests[0]["target"][1:3] = [9, 9]
    for request in requests:
        request["position"] = len(request[INPUTS[kind][-1]]) - 1
    with pytest.MonkeyPatch.context() as patch:
        watched = [Watched(patch, model, request) for request in requests]
    to_learn = lessons(vocabulary) if kind == "transformer" else []
    numbers = model.flat.data.copy()
    taught = []
    for lesson in to_learn:
        model.flat.data[:] = numbers
        taught.append(learned(model, lesson))
    return page, dict(runs=requests, learned=to_learn), watched, taught


def caught(choices, folder):
    page, requests, watched, taught = asked(**choices)
    answer = ask(page, folder, **requests)
    pairs = zip(answer["runs"], watched, strict=True)
    found = [name for pair in pairs for name in differences(*pair)]
    return found + differences_in_learning(answer, taught)


@pytest.fixture
def copied(tmp_path):
    return shutil.copytree(FOLDER, tmp_path / "explorer")


@pytest.mark.parametrize("choices", [TRANSLATOR, GPT_2, LLAMA, ALIBI, BERT])
def test_without_a_mutation_nothing_differs(choices, copied):
    assert caught(choices, copied) == []


FAST = {"db from x", "no way through σ", "steps at the first position", "turned on, not back"}
FAST |= {"no correction of the moments"}
EACH = [pytest.param(x, marks=[pytest.mark.slow] * (x not in FAST)) for x in MUTANTS]


@pytest.mark.parametrize("name", EACH)
def test_a_wrong_line_is_caught(copied, name):
    *mutation, choices = MUTANTS[name] if len(MUTANTS[name]) > 3 else (*MUTANTS[name], TRANSLATOR)
    mutate(copied, *mutation)
    assert caught(choices, copied)


def mutate(folder, file, right, wrong):
    source = (folder / file).read_text(encoding="utf-8")
    assert source.count(right) == 1
    (folder / file).write_text(source.replace(right, wrong), encoding="utf-8")


@pytest.mark.parametrize("name", OF_DRAWS)
def test_a_wrong_draw_is_caught(copied, name):
    mutate(copied, *OF_DRAWS[name])
    assert draws_that_differ(copied)
