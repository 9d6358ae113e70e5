import numpy as np

from minitransformer.layers.masks import causal_mask, padding_mask

IDS = np.array([[4, 0, 7], [5, 5, 0]])


def test_padding_may_not_be_looked_at_by_any_query_of_any_head():
    mask = padding_mask(IDS)
    assert mask.shape == (2, 1, 1, 3)
    assert mask.dtype == bool
    np.testing.assert_array_equal(mask[:, 0, 0], [[True, False, True], [True, True, False]])


def test_any_id_can_stand_for_padding():
    np.testing.assert_array_equal(
        padding_mask(IDS, pad_id=5)[:, 0, 0], [[True, True, True], [False, False, True]]
    )


def test_a_position_may_look_at_itself_and_back_but_not_ahead():
    mask = causal_mask(IDS)
    assert mask.shape == (1, 1, 3, 3)
    assert mask.dtype == bool
    np.testing.assert_array_equal(
        mask[0, 0], [[True, False, False], [True, True, False], [True, True, True]]
    )
