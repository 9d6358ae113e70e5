"""When a twin runs in place of its reference, and whose cache goes to which backward."""

from contextvars import copy_context

import numpy as np
import pytest
from elsewhere import in_a_process, in_a_thread
from strict_cupy import strict

from minitransformer.core.twins import Twin, accelerated, standing_in, twinned

X = np.arange(3.0)


@twinned
def square(x, times=1):
    """Says what it does."""
    return times * x * x, ("reference", x)


@twinned
def square_backward(dy, cache):
    who, x = cache
    assert who == "reference"
    return "reference", 2 * x * dy


def twin_forward(x, times=1):
    return times * x * x + 100, ("twin", x)


def twin_backward(dy, cache):
    who, x = cache
    assert who == "twin"
    return "twin", 2 * x * dy


@pytest.fixture(autouse=True)
def twin(monkeypatch):
    monkeypatch.setitem(square.twins, "numpy", Twin(twin_forward, twin_backward))


def who_runs():
    y, _ = square(X)
    return "twin" if y[0] == 100 else "reference"


def test_twins_sleep_until_somebody_asks_for_speed():
    assert who_runs() == "reference"
    with accelerated():
        assert who_runs() == "twin"
    assert who_runs() == "reference"


@pytest.mark.parametrize(("before", "after"), [
    ("", "isinstance(cache, TwinCache)"),
    ("layer_norm.twins['numpy'] = Twin(lambda *inputs: ('y', 'yours'))", "cache == 'yours'"),
], ids=["ours", "yours"])  # fmt: skip
def test_whoever_asks_for_speed_first_finds_twins(before, after):
    """In a new process, in which nothing else has registered ours; one of yours stays."""
    program = f"""
import numpy as np
from minitransformer.layers.layer_norm import layer_norm
from minitransformer.core.twins import Twin, TwinCache, accelerated
{before}
with accelerated():
    _, cache = layer_norm(np.ones((2, 3)), np.ones(3), np.ones(3))
assert {after}, cache
"""
    in_a_process(program)


def test_twins_fall_asleep_again_after_an_error():
    with pytest.raises(ZeroDivisionError), accelerated():
        raise ZeroDivisionError
    assert who_runs() == "reference"


def test_a_reference_can_be_asked_for_amid_twins():
    with accelerated():
        with accelerated(False):
            assert who_runs() == "reference"
            with accelerated():
                assert who_runs() == "twin"
            assert who_runs() == "reference"
        assert who_runs() == "twin"


def test_arrays_of_another_library_do_not_meet_the_twin():
    with accelerated():
        y, _ = square(strict.asarray(X))
    np.testing.assert_array_equal(y.get(), X**2)


def test_a_twin_gets_all_arguments_those_that_are_given_by_their_names_too():
    with accelerated():
        np.testing.assert_array_equal(square(X, 3)[0], 3 * X**2 + 100)
        np.testing.assert_array_equal(square(X, times=3)[0], 3 * X**2 + 100)
        np.testing.assert_array_equal(square(x=X, times=3)[0], 3 * X**2 + 100)
        np.testing.assert_array_equal(square(times=3, x=X)[0], 3 * X**2 + 100)
        _, cache = square(x=X)
    for gradients in (square_backward(dy=1.0, cache=cache), square_backward(cache=cache, dy=1.0)):
        assert gradients[0] == "twin"


def test_a_learners_function_gets_them_by_position():
    class Own:
        def twin_of(self, function):
            return Twin(lambda mine, often: (often * mine, None), None)

    with standing_in(Own()):
        np.testing.assert_array_equal(square(times=2, x=X)[0], 2 * X)


def test_what_is_given_twice_or_unknown_is_refused_as_by_the_reference():
    with accelerated():
        for wrong in (dict(x=X), dict(rate=1), dict(cache=None)):
            with pytest.raises(TypeError, match=r"argument '?(x|rate|cache)'?"):
                square(X, **wrong)


@pytest.mark.parametrize("awake_later", [True, False])
def test_each_cache_goes_to_the_backward_that_can_read_it(awake_later):
    caches = {}
    for name, awake in [("twin", True), ("reference", False)]:
        with accelerated(awake):
            _, caches[name] = square(X)
    with accelerated(awake_later):
        for name, cache in caches.items():
            who, dx = square_backward(np.ones(3), cache)
            assert who == name
            np.testing.assert_array_equal(dx, 2 * X)


def test_a_backward_alone_may_have_a_twin_that_reads_the_cache_of_the_reference(monkeypatch):
    monkeypatch.delitem(square.twins, "numpy")
    alone = Twin(lambda dy, cache: ("alone", cache[0]))
    monkeypatch.setitem(square_backward.twins, "numpy", alone)
    _, cache = square(X)
    assert square_backward(X, cache)[0] == "reference"
    with accelerated():
        assert square_backward(X, cache) == ("alone", "reference")


def test_a_pair_and_its_backward_with_twins_each_do_not_mix_their_caches(monkeypatch):
    alone = Twin(lambda dy, cache: ("alone", cache[0]))
    monkeypatch.setitem(square_backward.twins, "numpy", alone)
    with accelerated():
        _, cache = square(X)
        assert square_backward(X, cache)[0] == "twin"


def test_the_result_of_a_twin_without_a_backward_is_handed_on_as_it_is():
    @twinned
    def update(data, rate):
        data -= rate

    update.twins["numpy"] = Twin(lambda data, rate: data.fill(rate))
    data = np.zeros(2)
    assert update(data, 1.0) is None
    assert data.tolist() == [-1, -1]
    with accelerated():
        assert update(data, 7.0) is None
    assert data.tolist() == [7, 7]


def test_a_thread_wakes_no_twins_but_its_own():
    with accelerated():
        assert in_a_thread(who_runs) == "reference"
        context = copy_context()
        assert in_a_thread(lambda: context.run(who_runs)) == "twin"

    def awake():
        with accelerated():
            return who_runs()

    assert in_a_thread(awake) == "twin"
    assert who_runs() == "reference"


def test_a_marked_function_keeps_its_name_and_what_it_says():
    assert (square.__name__, square.__doc__) == ("square", "Says what it does.")


@twinned
def outer(x):
    return square(x)


@twinned
def outer_backward(dy, cache):
    who, dx = square_backward(dy, cache)
    return f"outer, {who}", dx


def test_a_reference_may_hand_on_the_cache_of_a_twin_within_it():
    with accelerated():
        _, cache = outer(X)
    assert outer_backward(1.0, cache)[0] == "outer, twin"
