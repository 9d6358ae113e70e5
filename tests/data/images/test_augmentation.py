"""Augmentation: each picture is changed as it is said, by chance, alone, and is not written to."""

import numpy as np
import pytest

from minitransformer.core.errors import InputError
from minitransformer.data.images.augmentation import (
    colour,
    mirror,
    random_crop,
    scale,
    ten_crops,
)
from minitransformer.data.images.pictures import Pictures
from minitransformer.data.images.statistics import PictureStatistics

B, Y, X = 40, 7, 9
COMPONENTS = np.array([[0.5, -1.0, 2.0], [10.0, 10.0, -5.0], [60.0, 50.0, 40.0]])
BY_CHANCE = {
    "random_crop": lambda pictures, rng: random_crop(pictures, 2, rng),
    "mirror": mirror,
    "scale": lambda pictures, rng: scale(pictures, 1.5, rng),
    "colour": lambda pictures, rng: colour(pictures, COMPONENTS, 0.1, rng),
}


@pytest.fixture
def pictures(rng):
    pictures = rng.integers(0, 256, (B, Y, X, 3), np.uint8)
    pictures.flags.writeable = False  # whoever writes to them fails
    return pictures


@pytest.fixture
def rng():
    return np.random.default_rng(3)


@pytest.mark.parametrize("change", BY_CHANCE.values(), ids=BY_CHANCE)
def test_bytes_stay_bytes_and_what_is_drawn_is_drawn_again_by_its_seed(change, pictures):
    first, again, other = (change(pictures, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert first.dtype == np.uint8
    assert len(first) == B
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize("change", BY_CHANCE.values(), ids=BY_CHANCE)
def test_each_picture_of_a_batch_is_changed_in_its_own_way(change, pictures, rng):
    same = change(np.repeat(pictures[:1], 200, axis=0), rng)
    assert len({picture.tobytes() for picture in same}) >= 2


@pytest.mark.parametrize("padding", [2, 1, 0])
def test_a_random_crop_is_a_part_from_anywhere_of_the_picture_in_its_frame(padding, pictures, rng):
    framed = np.zeros((B, Y + 2 * padding, X + 2 * padding, 3), np.uint8)
    framed[:, padding : padding + Y, padding : padding + X] = pictures
    places = set()
    for _ in range(20):
        for picture, part in zip(framed, random_crop(pictures, padding, rng), strict=True):
            (place,) = (
                (i, j)
                for i in range(2 * padding + 1)
                for j in range(2 * padding + 1)
                if np.array_equal(picture[i : i + Y, j : j + X], part)
            )
            places.add(place)
    assert len(places) == (2 * padding + 1) ** 2


def test_half_of_the_pictures_are_mirrored_left_to_right(pictures, rng):
    mirrored = mirror(np.tile(pictures, (25, 1, 1, 1)), rng)
    turned = 0
    for picture, given in zip(mirrored, np.tile(pictures, (25, 1, 1, 1)), strict=True):
        if not np.array_equal(picture, given):
            np.testing.assert_array_equal(picture, given[:, ::-1])
            turned += 1
    assert 440 < turned < 560  # of 1,000: four standard deviations


class Always:
    """In place of a generator: what is drawn is known."""

    def __init__(self, value):
        self.value = value

    def uniform(self, least, most, size):
        assert least <= self.value <= most
        return np.full(size, self.value)

    def normal(self, mean, deviation, size):
        return np.full(size, mean + deviation * self.value)


def scaled(picture, factor):
    """The definition, pixel by pixel: what is at a place came from a place nearer to the middle."""
    rows, columns, _ = picture.shape
    result = np.zeros(picture.shape)
    for y in range(rows):
        for x in range(columns):
            i = (rows - 1) / 2 + (y - (rows - 1) / 2) / factor
            j = (columns - 1) / 2 + (x - (columns - 1) / 2) / factor
            for k in range(rows):
                for m in range(columns):
                    share = max(0, 1 - abs(i - k)) * max(0, 1 - abs(j - m))
                    result[y, x] += share * picture[k, m]
    return result


@pytest.mark.parametrize("factor", [0.5, 0.8, 1.0, 1.3, 2.0])
def test_a_scaled_picture_is_larger_by_the_factor_about_its_middle(factor, pictures):
    found = scale(pictures[:3], 2.0, Always(np.log(factor)))
    for picture, given in zip(found, pictures, strict=False):
        # Places are told to 1/256 of a pixel, so that of two neighbours 0 and 255 the value
        # between them is right to one half; so it is in both directions, and then it is rounded.
        assert np.abs(picture - scaled(given, factor)).max() <= 1.6
    if factor == 1:
        np.testing.assert_array_equal(found, pictures[:3])


def test_a_scaled_picture_is_neither_lighter_nor_darker_by_rounding():
    ramp = np.arange(200, dtype=np.uint8).reshape(1, 1, 200, 1)
    found = scale(ramp, 2.0, Always(np.log(1.7)))[0, 0, :, 0]
    exact = 99.5 + (np.arange(200) - 99.5) / 1.7
    assert abs((found - exact).mean()) < 0.1


def test_a_picture_is_made_larger_as_often_as_smaller_up_to_the_bounds(rng):
    bar = np.zeros((2000, 1, 41, 1), np.uint8)
    bar[:, :, 10:31] = 100  # 21 pixels, in rows of one that both directions keep
    wide = np.repeat(bar, 41, axis=1)
    sums = scale(wide, 1.25, rng)[:, 20].sum(axis=(1, 2)) / 100 / 21  # (2000,), the factors
    assert 1 / 1.27 < sums.min() < 1 / 1.2
    assert 1.2 < sums.max() < 1.27
    assert abs(np.log(sums).mean()) < 4 * np.log(1.25) / np.sqrt(3 * 2000) + 0.005


def test_colour_adds_the_same_to_all_pixels_along_the_components(pictures):
    grey = np.full((2, Y, X, 3), 128, np.uint8)
    changed = colour(grey, COMPONENTS, 0.1, Always(2.0))
    expected = 128 + np.rint(0.2 * COMPONENTS.sum(axis=0))
    np.testing.assert_array_equal(changed, np.broadcast_to(expected, changed.shape))
    np.testing.assert_array_equal(colour(pictures, COMPONENTS, 0.0, Always(2.0)), pictures)
    far = colour(pictures, COMPONENTS, 100.0, Always(1.0))
    assert far[..., :2].min() == 255  # and no overflow


def test_colours_differ_as_much_as_the_components_are_long_times_the_deviation(rng):
    grey = np.full((4000, 1, 1, 3), 128, np.uint8)
    changed = colour(grey, COMPONENTS, 0.1, rng)[:, 0, 0].astype(float)
    covariance = np.cov(changed.T)
    expected = 0.01 * COMPONENTS.T @ COMPONENTS + np.eye(3) / 12  # rounding, too
    np.testing.assert_allclose(covariance, expected, rtol=0.1, atol=0.2)


def test_along_the_components_of_pictures_their_own_colours_differ_by_one(rng):
    """What PictureStatistics calls components is what colour takes."""
    pixels = rng.normal(size=(500, 4, 4, 3)) @ [[30, 5, 0], [0, 20, 5], [5, 0, 10]] + 128
    pictures = np.clip(np.rint(pixels), 0, 255).astype(np.uint8)
    corpus = Pictures(pictures, np.zeros(500, np.int64), ("noise",))
    components = np.array(PictureStatistics.of(corpus).components)
    covariance = np.cov(pictures.reshape(-1, 3).T)
    np.testing.assert_allclose(components.T @ components, covariance, rtol=1e-3, atol=0.05)


def test_pictures_of_grey_in_three_channels_have_two_components_of_length_0():
    for seed in range(5):  # of which rounding makes some variances less than 0
        grey = np.random.default_rng(seed).integers(0, 256, (9, 4, 5, 1), np.uint8)
        corpus = Pictures(grey.repeat(3, axis=3), np.zeros(9, np.int64), ("noise",))
        lengths = sorted(np.sqrt((PictureStatistics.of(corpus).components ** 2).sum(axis=1)))
        assert lengths == pytest.approx([0, 0, np.sqrt(3) * grey.std()], abs=1e-4)


def test_the_ten_crops_are_corners_and_middle_and_their_mirror_images(pictures):
    crops = ten_crops(pictures, (4, 5))
    assert crops.shape == (B, 10, 4, 5, 3)
    parts = [
        pictures[:, :4, :5],
        pictures[:, :4, -5:],
        pictures[:, -4:, :5],
        pictures[:, -4:, -5:],
        pictures[:, 1:5, 2:7],
    ]
    for i, part in enumerate(parts):
        np.testing.assert_array_equal(crops[:, i], part)
        np.testing.assert_array_equal(crops[:, i + 5], part[:, :, ::-1])


def test_of_their_own_size_all_crops_are_the_picture_or_its_mirror_image(pictures):
    crops = ten_crops(pictures, (Y, X))
    for i in range(5):
        np.testing.assert_array_equal(crops[:, i], pictures)
        np.testing.assert_array_equal(crops[:, i + 5], pictures[:, :, ::-1])


@pytest.mark.parametrize("size", [(8, 5), (5, 10)])
def test_what_is_larger_than_a_picture_cannot_be_cut_out_of_it(size, pictures):
    with pytest.raises(InputError, match=r"no part of \d+ × \d+ can be cut out of pictures of"):
        ten_crops(pictures, size)
