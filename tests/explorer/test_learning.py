"""The page learns as the package does: every loss and every parameter after each step, to 1e-9."""

import numpy as np
import pytest
from in_node import ask, decoded, names_of, runs, same_bits, small_model
from in_numpy import log_probabilities, said
from test_equal_to_numpy import KINDS, TOLERANCE, same

from minitransformer.data.text.batches import Batch
from minitransformer.data.text.vocabulary import BOS, EOS, PAD
from minitransformer.explorer.page import explorer_page
from minitransformer.optim.adam import Adam
from minitransformer.optim.sgd import SGD

OPTIMIZERS = {"adam": (Adam, 0.01), "sgd": (SGD, 0.1)}  # each with a learning rate
STEPS = 3
TRANSLATORS = {name: choices for name, choices in KINDS.items() if "kind" not in choices}


def lessons(vocabulary):
    """Requests to learn a piece and a sentence, each by both optimizers."""
    drawn = runs(vocabulary, 20)
    long = [run for run in drawn if len(run["source"]) > 5 and len(run["target"]) > 5][:2]
    long[0]["target"][1:3] = [9, 9]
    of_piece = dict(long[0], position=len(long[0]["target"]) - 2)
    of_sentence = dict(source=long[1]["source"], pieces=[*long[1]["target"][1:], EOS])
    return [
        dict(lesson, off=[], steps=STEPS, optimizer=name, learning_rate=rate)
        for lesson in (of_piece, of_sentence)
        for name, (_, rate) in OPTIMIZERS.items()
    ]


def taught(request):
    """The source, the target and the labels that a lesson is about, as a Batch of one."""
    if "pieces" in request:
        target, labels = [BOS, *request["pieces"][:-1]], request["pieces"]
    else:
        position = request["position"]
        target = request["target"][: position + 1]
        labels = [PAD] * position + [request["piece"]]
    return Batch(*(np.array([ids]) for ids in (request["source"], target, labels)))


def learned(model, request):
    """Loss and parameters at first and after each step, which change the model."""
    batch = taught(request)
    optimizer_class, _ = OPTIMIZERS[request["optimizer"]]
    optimizer = optimizer_class(model.flat)
    found = []
    for t in range(request["steps"] + 1):
        if t > 0:
            optimizer.step(request["learning_rate"])
        (loss, _), cache = model.loss(batch)
        parameters = [parameter.data.copy() for _, parameter in model.named_parameters()]
        found.append((float(loss), parameters))
        model.zero_grad()
        model.loss_backward(1.0, cache)
    return found


def differences_in_learning(answer, expected):
    """The numbers of the steps, counted over all lessons, after which something differs."""
    pairs = [
        (one, other)
        for lesson, steps in zip(answer["learned"], expected, strict=True)
        for one, other in zip(lesson["steps"], steps, strict=True)
    ]
    return [i for i, pair in enumerate(pairs) if not _same_step(*pair)]


def _same_step(found, expected):
    loss, parameters = expected
    numbers = [decoded(array) for array in found["parameters"]]
    number = np.array(found["loss"], dtype=float)  # null in JSON, and then NaN, is no number
    return np.allclose(number, loss, **TOLERANCE) and same(numbers, parameters)


@pytest.mark.parametrize("changes", TRANSLATORS.values(), ids=TRANSLATORS)
def test_losses_and_parameters_after_each_step_are_those_of_the_package(vocabulary, changes):
    asked = lessons(vocabulary)
    answer = ask(explorer_page(small_model(vocabulary, **changes), vocabulary), learned=asked)
    expected = [learned(small_model(vocabulary, **changes), request) for request in asked]
    assert differences_in_learning(answer, expected) == []
    assert all(steps[-1][0] < steps[0][0] for steps in expected)  # and something was learned


def test_learning_leaves_the_model_it_began_with_as_it_was_to_the_last_bit(model, vocabulary):
    asked = dict(learned=lessons(vocabulary), parameters=names_of(model))
    answer = ask(explorer_page(model, vocabulary), **asked)  # reads them after all has learned
    assert same_bits(answer["parameters"], model)


def test_a_head_that_is_off_learns_nothing(model, vocabulary):
    asked = [lesson | {"off": ["decoder.1.cross.0"]} for lesson in lessons(vocabulary)]
    (first, *_, last) = ask(explorer_page(model, vocabulary), learned=asked)["learned"][0]["steps"]
    width = model.config.d_model // model.config.num_heads
    for name, here in (("query", np.s_[:, :width]), ("output", np.s_[:width])):
        at = names_of(model).index(f"decoder.layers.1.cross_attention.w_{name}")
        change = decoded(last["parameters"][at]) - decoded(first["parameters"][at])
        assert not change[here].any()
        assert change.any()


NO_STEPS = dict(off=[], steps=0, optimizer="sgd", learning_rate=0.1)


def test_what_is_recited_is_what_greedy_search_says(model, vocabulary):
    asked = []
    for i, run in enumerate(runs(vocabulary, 6)):
        pieces = said(model, run["source"])
        pieces[-1] = pieces[-1] if i % 2 else 9  # every other one wants something else
        asked.append(dict(source=run["source"], pieces=pieces, **NO_STEPS))
    answer = ask(explorer_page(model, vocabulary), learned=asked)
    for i, (request, found) in enumerate(zip(asked, answer["learned"], strict=True)):
        pieces, recited = request["pieces"], found["recited"]
        log_p = log_probabilities(model, request["source"], [BOS, *pieces[:-1]])
        log_p = log_p[range(len(pieces)), pieces]
        assert recited["log_probability"] == pytest.approx(log_p.sum(), rel=1e-9)
        assert recited["said"] == bool(i % 2)
        assert (recited["ids"] == pieces) == bool(i % 2)


def test_a_piece_is_recited_after_those_before_it(model, vocabulary):
    source, target = [9, 8, 3], [BOS, 7, 11]
    log_p = log_probabilities(model, source, target)[-1]
    may_be_said = np.where(np.isin(np.arange(len(log_p)), (PAD, BOS)), -np.inf, log_p)
    best = int(may_be_said.argmax())
    asked = [
        dict(source=source, target=target, position=2, piece=piece, **NO_STEPS)
        for piece in (best, best + 1)
    ]
    answer = ask(explorer_page(model, vocabulary), learned=asked)["learned"]
    for found, piece in zip(answer, (best, best + 1), strict=True):
        assert found["recited"]["log_probability"] == pytest.approx(log_p[piece], rel=1e-9)
        assert found["recited"]["ids"][:3] == [7, 11, best]
        assert found["recited"]["said"] == (piece == best)
