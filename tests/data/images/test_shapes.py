"""Shapes are what their names say, the same on every machine, and no task for a line of weights."""

import hashlib
import math
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from minitransformer.data.images import shapes
from minitransformer.data.images.shapes import (
    COSINE,
    GRID,
    KINDS,
    ONE,
    SINE,
    SIZE,
    SIZES,
    SUBPIXELS,
    TURNS,
    __main__,
    shapes_corpus,
)

FOLDER = Path(__file__).parents[3] / "datasets" / "shapes"
SHA256 = "560b5ea4c777f8ba12f63342a5ba39153655166ab70a6a5a2702900efff25c9e"


@pytest.fixture(scope="module")
def corpus():
    return shapes_corpus()


def test_the_bytes_are_the_same_everywhere(corpus):
    digest = hashlib.sha256()
    for pictures in corpus.values():
        digest.update(pictures.pictures.tobytes())
        digest.update(pictures.labels.astype("<i8").tobytes())
    assert digest.hexdigest() == SHA256


def test_no_number_of_its_tables_is_near_where_rounding_decides():
    turns = 2 * np.pi * np.arange(TURNS) / TURNS
    for table, exact in ((COSINE, ONE * np.cos(turns)), (SINE, ONE * np.sin(turns))):
        assert np.abs(table - exact).max() < 0.4999
        assert table.dtype == np.int32


def test_the_splits_have_their_sizes_and_as_many_of_each_kind_and_share_no_picture(corpus):
    assert {split: len(pictures) for split, pictures in corpus.items()} == SIZES
    for pictures in corpus.values():
        assert pictures.pictures.shape[1:] == (SIZE, SIZE, 1)
        assert pictures.classes == tuple(KINDS)
        assert set(np.bincount(pictures.labels)) == {len(pictures) // len(KINDS)}
    every = np.concatenate([pictures.pictures for pictures in corpus.values()])
    assert len({picture.tobytes() for picture in every}) == len(every)


def test_another_seed_draws_other_pictures(monkeypatch):
    monkeypatch.setattr(shapes, "SIZES", {"train": 20, "test": 10})
    drawn = shapes_corpus.__wrapped__  # what is kept stays
    first, other = drawn(), drawn(seed=1)
    assert (first["train"].pictures != other["train"].pictures).any(axis=(1, 2, 3)).all()


def test_who_asks_for_it_cannot_change_it_for_others(corpus):
    with pytest.raises(ValueError, match="read-only"):
        corpus["train"].pictures[0] = 0
    assert shapes_corpus() is shapes_corpus()


def lens(r, R, d):
    """The area that two circles of radius r and R have in common, d between their middles."""
    first = r * r * math.acos((d * d + r * r - R * R) / (2 * d * r))
    second = R * R * math.acos((d * d + R * R - r * r) / (2 * d * R))
    return first + second - 0.5 * math.sqrt((r + R - d) * (d + r - R) * (d - r + R) * (d + r + R))


FIFTH = math.pi / 5
AREAS = {  # of a shape of radius 1
    "disc": 0.75 * math.pi,
    "ring": (7 / 8 - 1 / 4) * math.pi,
    "half disc": math.pi / 2,
    "crescent": 7 / 8 * math.pi - lens(math.sqrt(7 / 8), math.sqrt(5 / 8), 0.5),
    "square": 1.5**2,
    "frame": 1.5**2 - 0.8**2,
    "triangle": 3 * math.sqrt(3) / 4,
    "cross": 2 * 1.75 * 0.5 - 0.5**2,
    "bar": 2 * 2 / 3,
    # ten triangles, each with its corners at the middle, at a point and between two points
    "star": 10 * 0.5 * math.sin(FIFTH) * math.cos(2 * FIFTH) / math.cos(FIFTH),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("turn", [4, 7, 22])  # at 0, points would lie along the sides
@pytest.mark.parametrize("pixels", [7, 11])
def test_a_shape_has_its_area_however_it_is_turned_and_wherever_it_is(kind, turn, pixels):
    r = np.full((1, 1, 1), pixels * SUBPIXELS, np.int32)
    for places in ((0, 0), (ONE, 0), (ONE // 2, ONE // 3)):  # corners of where it may be, too
        drawn = iter([turn, *places])
        frame = shapes._frame_of(lambda least, most: np.int32(next(drawn)), r)  # noqa: B023
        share = shapes._share(KINDS[kind], frame, r)
        area = int(share.sum()) / GRID**2
        assert area == pytest.approx(AREAS[kind] * pixels**2, rel=0.04), places


@pytest.mark.parametrize(("kind", "times"), [
    ("disc", TURNS), ("ring", TURNS), ("square", 4), ("frame", 4), ("cross", 4), ("triangle", 3),
    ("bar", 2), ("star", 5), ("half disc", 1), ("crescent", 1),
])  # fmt: skip
def test_a_shape_looks_the_same_only_after_the_turns_that_its_name_says(kind, times):
    r = np.full((1, 1, 1), 10 * SUBPIXELS, np.int32)
    middle = SIZE * SUBPIXELS // 2

    def drawn(turn):
        frame = COSINE[turn % TURNS], SINE[turn % TURNS], middle, middle
        return shapes._share(KINDS[kind], frame, r).astype(float)

    differences = [np.abs(drawn(turn) - drawn(0)).sum() / GRID**2 for turn in range(1, TURNS)]
    same = {turn for turn, difference in enumerate(differences, start=1) if difference < 8}
    assert same == set(range(TURNS // times, TURNS, TURNS // times))


def test_what_a_pixel_looks_like_alone_tells_little(corpus):
    """The nearest mean picture of a kind is right hardly more often than a guess, one in ten."""
    train, test = corpus["train"], corpus["test"]
    means = [train.pictures[train.labels == label].mean(axis=0) for label in range(len(KINDS))]
    x = test.pictures.reshape(len(test), -1).astype(float)
    distances = [((x - mean.ravel()) ** 2).sum(axis=1) for mean in means]
    assert (np.argmin(distances, axis=0) == test.labels).mean() < 0.2


def test_the_pictures_in_the_repository_are_those_that_are_drawn(tmp_path):
    __main__.main([str(tmp_path)])
    drawn = sorted(path.name for path in tmp_path.iterdir())
    assert drawn == sorted(path.name for path in FOLDER.glob("*.png"))
    for name in drawn:
        there, anew = (np.asarray(Image.open(folder / name)) for folder in (FOLDER, tmp_path))
        np.testing.assert_array_equal(there, anew)


def test_the_picture_of_a_kind_is_of_the_test_split(corpus):
    for label, kind in enumerate(KINDS):
        picture = np.asarray(Image.open(FOLDER / f"{kind.replace(' ', '-')}.png"))
        np.testing.assert_array_equal(picture, corpus["test"].pictures[label, :, :, 0])
        assert corpus["test"].labels[label] == label
