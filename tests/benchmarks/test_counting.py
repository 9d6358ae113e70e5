"""Operations and chains are those that can be counted by hand."""

import numpy as np
import pytest
from _counting import CountingMachine

from minitransformer.layers.linear import linear, linear_backward


@pytest.fixture
def machine():
    return CountingMachine()


def ones(machine, *shape):
    return machine.asarray(np.ones(shape))


def test_a_product_counts_its_multiplications_a_bias_its_additions_and_a_sum_what_it_reads(machine):
    y, cache = linear(ones(machine, 2, 5, 3), ones(machine, 3, 4), ones(machine, 4))
    assert machine.operations == 2 * 5 * 3 * 4 + 2 * 5 * 4
    assert machine.chain == 2  # the product, then the sum
    y.sum(axis=-1)
    assert machine.operations == 2 * 5 * 3 * 4 + 2 * (2 * 5 * 4)
    linear_backward(y, cache)
    assert machine.chain == 3  # its three gradients do not wait for each other


def test_moving_entries_counts_nothing_and_keeps_the_chain(machine):
    x = ones(machine, 4, 6) * 2.0
    before = machine.operations
    moved = machine.concatenate([x.reshape(6, 4).T, x[:, :3]], axis=1)
    assert (machine.operations, machine.chain) == (before, 1)
    assert (moved + 1.0).shape == (4, 9)
    assert machine.chain == 2


def test_a_loop_is_one_chain_and_independent_calls_are_none(machine):
    h = ones(machine, 2)
    for _ in range(5):
        h = machine.tanh(h + 1.0)
    assert machine.chain == 10
    for _ in range(50):
        machine.tanh(ones(machine, 2))
    assert machine.chain == 10


def test_what_is_written_into_an_array_is_part_of_its_chain(machine):
    buffer, x = machine.zeros((2, 3)), ones(machine, 3) * 2.0 * 2.0
    buffer[0] = x
    buffer[1] += 1.0
    assert (buffer * 2.0).shape == (2, 3)
    assert machine.chain == 4
