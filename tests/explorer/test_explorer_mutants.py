"""A wrong line in the JavaScript is caught by the comparison with NumPy."""

import shutil

import pytest
from in_node import ask, runs, small_model, small_vocabulary
from in_numpy import Watched
from test_equal_to_numpy import differences
from test_learning import differences_in_learning, learned, lessons

from minitransformer.explorer.page import FOLDER, explorer_page

# fmt: off
MUTANTS = {  # file, a piece of it, what stands there instead
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
}
# fmt: on


@pytest.fixture(scope="module")
def asked():
    """(page, requests, what NumPy says) of a few sentences of some length, and of lessons."""
    vocabulary = small_vocabulary()
    # With a large ε and a piece that stands twice nothing is too small to be seen.
    model = small_model(vocabulary, norm="pre", epsilon=0.1)
    page = explorer_page(model, vocabulary)
    drawn = runs(vocabulary, 20)
    requests = [run for run in drawn if min(len(run["source"]), len(run["target"])) > 5][:2]
    requests[0]["target"][1:3] = [9, 9]
    for request in requests:
        request["position"] = len(request["target"]) - 1
    with pytest.MonkeyPatch.context() as patch:
        watched = [Watched(patch, model, request) for request in requests]
    to_learn = lessons(vocabulary)
    numbers = model.flat.data.copy()
    taught = []
    for lesson in to_learn:
        model.flat.data[:] = numbers
        taught.append(learned(model, lesson))
    return page, dict(runs=requests, learned=to_learn), watched, taught


def caught(asked, folder):
    page, requests, watched, taught = asked
    answer = ask(page, folder, **requests)
    pairs = zip(answer["runs"], watched, strict=True)
    found = [name for pair in pairs for name in differences(*pair)]
    return found + differences_in_learning(answer, taught)


@pytest.fixture
def copied(tmp_path):
    return shutil.copytree(FOLDER, tmp_path / "explorer")


def test_without_a_mutation_nothing_differs(asked, copied):
    assert caught(asked, copied) == []


FAST = {"db from x", "steps at the first position", "no correction of the moments"}
EACH = [pytest.param(x, marks=[pytest.mark.slow] * (x not in FAST)) for x in MUTANTS]


@pytest.mark.parametrize("name", EACH)
def test_a_wrong_line_is_caught(asked, copied, name):
    file, right, wrong = MUTANTS[name]
    source = (copied / file).read_text(encoding="utf-8")
    assert source.count(right) == 1
    (copied / file).write_text(source.replace(right, wrong), encoding="utf-8")
    assert caught(asked, copied)
