"""Files of pictures: read right in whichever form they come, or refused with a reason."""

import os
import random
import re
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from minitransformer.core.libraries import MissingLibraryError
from minitransformer.data.errors import CorpusError, PictureError
from minitransformer.data.images import files
from minitransformer.data.images.files import read_picture
from minitransformer.data.images.folders import read_folder, read_others
from minitransformer.data.images.pictures import Pictures
from minitransformer.data.images.statistics import PictureStatistics

Y, X = 24, 36
STEEP = np.add.outer(4 * np.arange(Y), 3 * np.arange(X)).astype(np.uint8)  # grey, 0 to 197
GREY = np.stack([STEEP] * 3, axis=-1)
COLOURS = np.stack([STEEP, STEEP[::-1], 255 - STEEP], axis=-1)
SEEN = np.where(np.arange(X) < X // 2, 255, np.zeros((Y, 1))).astype(np.uint8)  # the left half
QUARTERS = np.repeat(np.arange(4, dtype=np.uint8), X // 4)[None].repeat(Y, axis=0)
FOUR = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255], [9, 8, 7]], np.uint8)
JPEG = dict(format="JPEG", quality=100, subsampling=0)


def turned(orientation):
    """The EXIF note of a camera that was held in another way."""
    note = Image.Exif()
    note[0x0112] = orientation
    return note


def from_palette(**options):
    image = Image.frombytes("P", (X, Y), QUARTERS.tobytes())
    image.putpalette(FOUR.tobytes())
    return image, options


def of(array, mode=None, **options):
    image = Image.fromarray(np.ascontiguousarray(array))
    return image.convert(mode) if mode else image, options


def on_white(array):
    return np.where(SEEN[..., None] > 0, array, 255)


FORMS = {  # the image and how it is saved; what is to be read; by how much a JPEG may be off
    "colour": (of(COLOURS), COLOURS, 0),
    "grey": (of(STEEP), GREY, 0),
    "JPEG": (of(COLOURS, **JPEG), COLOURS, 4),
    "grey JPEG": (of(STEEP, **JPEG), GREY, 2),
    "16 bits": (of(STEEP.astype(np.uint16) * 257 + 100), GREY, 0),
    "16 bits, nearer to the next": (of(STEEP.astype(np.uint16) * 257 + 200), GREY + 1, 0),
    "black and white": (of(STEEP > 99), np.where(GREY > 99, 255, 0), 0),
    "palette": (from_palette(), FOUR[QUARTERS], 0),
    "transparent": (of(np.dstack([COLOURS, SEEN])), on_white(COLOURS), 0),
    "transparent grey": (of(np.dstack([STEEP, SEEN])), on_white(GREY), 0),
    "a transparent shade": (of(SEEN, transparency=0), on_white(SEEN[..., None] * [1, 1, 1]), 0),
    "a transparent colour of a palette": (
        from_palette(transparency=2),
        np.where(QUARTERS[..., None] == 2, 255, FOUR[QUARTERS]),
        0,
    ),
    "CMYK": (of(COLOURS, "CMYK", **JPEG), COLOURS, 6),
    "turned by the camera": (
        of(np.rot90(COLOURS), exif=turned(6), **JPEG),
        COLOURS,
        4,
    ),
    "mirrored by the camera": (of(COLOURS[:, ::-1], exif=turned(2)), COLOURS, 0),
}


@pytest.fixture(params=FORMS)
def form(request, tmp_path):
    """The path of a file, what is to be read of it, and the tolerance."""
    (image, options), expected, tolerance = FORMS[request.param]
    path = tmp_path / "picture"  # no name has to tell what a file is
    image.save(path, **{"format": "PNG", **options})
    return path, expected, tolerance


def test_each_form_of_a_picture_is_read_as_it_looks(form):
    path, expected, tolerance = form
    found = read_picture(path, (Y, X, 3))
    assert (found.dtype, found.shape) == (np.uint8, (Y, X, 3))
    assert np.abs(found.astype(int) - expected).max() <= tolerance


def test_grey_is_the_brightness_of_the_colours(form):
    path, expected, tolerance = form
    found = read_picture(path, (Y, X, 1)).astype(int)
    grey = expected @ [0.299, 0.587, 0.114]  # ITU-R 601
    assert np.abs(found[..., 0] - grey).max() <= tolerance + 1


@pytest.mark.parametrize("shape", [(Y, Y), (X, X), (7, 7), (40, 10), (10, 40)])
def test_what_the_size_does_not_hold_is_cut_off_evenly_on_both_sides(shape, tmp_path):
    """Of three stripes the one in the middle stays there."""
    stripes = np.zeros((30, 90), np.uint8)
    stripes[:, 40:50] = 200
    Image.fromarray(stripes).save(tmp_path / "wide.png")
    Image.fromarray(stripes.T.copy()).save(tmp_path / "high.png")
    for name, axis in (("wide", 0), ("high", 1)):
        found = read_picture(tmp_path / f"{name}.png", (*shape, 1))[..., 0].astype(float)
        assert found.shape == shape
        profile = found.mean(axis=axis)
        np.testing.assert_allclose(profile, profile[::-1], atol=1)
        given = (30, 90) if name == "wide" else (90, 30)
        factor = max(np.divide(shape, given))  # by which the side that fits was scaled
        assert profile.sum() == pytest.approx(200 * min(10 * factor, len(profile)), rel=0.03)


def test_a_small_picture_of_a_large_one_is_the_mean_of_its_pixels(tmp_path):
    """And not every so many of them, which would be noise."""
    noise = np.random.default_rng(0).integers(0, 2, (400, 400), np.uint8) * 255
    Image.fromarray(noise).save(tmp_path / "noise.png")
    found = read_picture(tmp_path / "noise.png", (10, 10, 1)).astype(float)
    assert np.abs(found - 127.5).max() < 20


# What is refused


def chunk(kind, content):
    checked = kind + content
    return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))


def bomb(side):
    """A PNG of some bytes that says it has side² pixels."""
    header = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    data = zlib.compress(bytes(1000))
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")
    )


def written(content):
    return lambda path: path.write_bytes(content)


def saved(harm, **options):
    def save(path):
        Image.fromarray(COLOURS).save(path, **{"format": "PNG", **options})
        path.write_bytes(harm(path.read_bytes()))

    return save


def with_bytes_changed(content):
    at = content.index(b"IDAT") + 20
    return content[:at] + bytes(4) + content[at + 4 :]


REFUSED = {
    "text": (written(b"This is no picture.\n"), "is no PNG or JPEG; save the picture as one"),
    "empty": (written(b""), "is no PNG or JPEG"),
    "GIF": (lambda path: Image.fromarray(STEEP).save(path, format="GIF"), "is no PNG or JPEG"),
    "half a PNG": (saved(lambda c: c[: len(c) // 2]), "is damaged, or not whole: .*; save the pic"),
    "half a JPEG": (saved(lambda c: c[: len(c) // 2], **JPEG), "is damaged, or not whole"),
    "its first bytes": (saved(lambda c: c[:20]), "is no PNG or JPEG|is damaged"),
    "changed bytes": (saved(with_bytes_changed), "is damaged, or not whole"),
    "a bomb": (written(bomb(10_000)), "has more than 89,478,485 pixels; make it smaller"),
    "a large bomb": (written(bomb(2**30)), "has more than 89,478,485 pixels; make it smaller"),
    "as large as allowed": (written(bomb(9_000)), "is damaged, or not whole"),
    "a folder": (lambda path: path.mkdir(), "cannot be read: this is no regular file"),
    "a pipe": (os.mkfifo, "cannot be read: this is no regular file"),
    "a broken link": (lambda path: path.symlink_to("nowhere"), "cannot be read: No such file"),
    "not there": (lambda path: None, "cannot be read: No such file"),
}


@pytest.mark.parametrize(("make", "said"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_picture_is_refused_in_one_line_with_its_name(make, said, tmp_path):
    path = tmp_path / "picture.png"
    make(path)
    with pytest.raises(PictureError, match=f"^{re.escape(str(path))} ({said})") as refused:
        read_picture(path, (8, 8, 3))
    assert "\n" not in str(refused.value)


def test_a_file_too_large_for_a_picture_is_refused_unread(tmp_path, monkeypatch):
    path = tmp_path / "large.png"
    Image.fromarray(COLOURS).save(path)
    monkeypatch.setattr(files, "MOST_BYTES", path.stat().st_size - 1)
    with pytest.raises(PictureError, match=r"large\.png cannot be read: such a file has"):
        read_picture(path, (8, 8, 3))


def test_without_pillow_its_name_is_said(without, tmp_path):
    without("PIL")
    with pytest.raises(MissingLibraryError, match=r"needs pillow.*python -m pip install pillow"):
        read_picture(tmp_path / "picture.png", (8, 8, 3))


def test_damaged_files_are_read_or_refused_and_nothing_else(tmp_path, fuzz_cases):
    path = tmp_path / "picture"
    contents = []
    for (image, options), _, _ in FORMS.values():
        image.save(path, **{"format": "PNG", **options})
        contents.append(path.read_bytes())
    refused = 0
    for seed in fuzz_cases(300):
        rng = random.Random(seed)
        content = bytearray(rng.choice(contents))
        for _ in range(rng.choice([1, 1, 3, 20])):
            content[rng.randrange(len(content))] = rng.randrange(256)
        if rng.random() < 0.3:
            del content[rng.randrange(len(content)) :]
        path.write_bytes(content)
        try:
            assert read_picture(path, (9, 8, 1)).shape == (9, 8, 1), seed
        except PictureError:
            refused += 1
    assert refused


# Folders


@pytest.fixture
def flowers(tmp_path):
    """Two classes of three pictures, one of them damaged."""
    root = tmp_path / "flowers"
    for name, shade in (("rose", 200), ("daisy", 50)):
        (root / name).mkdir(parents=True)
        for number in range(3):
            grey = np.full((30, 20 + number), shade + number, np.uint8)
            Image.fromarray(grey).save(root / name / f"{number}.png")
    (root / "rose" / "1.png").write_bytes(b"")
    return root


def test_classes_and_pictures_come_in_the_order_of_their_names(flowers):
    corpus, skipped = read_folder(flowers, (8, 8))
    assert corpus.classes == ("daisy", "rose")
    assert corpus.pictures.shape == (5, 8, 8, 1)
    assert corpus.labels.tolist() == [0, 0, 0, 1, 1]
    assert corpus.pictures[:, 3, 3, 0].tolist() == [50, 51, 52, 200, 202]
    assert skipped == [
        f"{flowers / 'rose' / '1.png'} is no PNG or JPEG; save the picture as one of them"
    ]


def test_all_are_of_colour_if_one_is(flowers):
    Image.fromarray(COLOURS).save(flowers / "daisy" / "9.jpg")
    corpus, _ = read_folder(flowers, (8, 8))
    assert corpus.pictures.shape == (6, 8, 8, 3)
    assert (corpus.pictures[0] == 50).all()


def test_others_are_brought_to_the_form_and_the_classes_of_those_that_are_known(flowers):
    Image.fromarray(COLOURS).save(flowers / "daisy" / "9.png")
    for channels in (1, 3):
        known = Pictures(np.zeros((1, 6, 8, channels), np.uint8), np.array([0]), ("rose", "daisy"))
        found, skipped = read_others(flowers, PictureStatistics.of(known))
        assert found.pictures.shape == (6, 6, 8, channels)
        of_colour = read_picture(flowers / "daisy" / "9.png", (6, 8, channels))
        np.testing.assert_array_equal(found.pictures[3], of_colour)
        assert found.classes == ("rose", "daisy")
        assert found.labels.tolist() == [1, 1, 1, 1, 0, 0]
        assert len(skipped) == 1
    (flowers / "rose").rename(flowers / "tulip")
    with pytest.raises(CorpusError, match="tulip is no class of the model; choose 'rose' or 'd"):
        read_others(flowers, PictureStatistics.of(known))


def test_what_is_no_picture_of_a_class_is_left_out_with_a_line(flowers):
    (flowers / "notes.txt").write_text("roses are red")
    (flowers / "tulip").mkdir()
    (flowers / "rose" / "more").mkdir()
    (flowers / ".hidden").mkdir()
    (flowers / "rose" / ".DS_Store").write_bytes(b"?")
    corpus, skipped = read_folder(flowers, (8, 8))
    assert corpus.classes == ("daisy", "rose")
    assert [line.removeprefix(f"{flowers}{os.sep}") for line in skipped] == [
        "notes.txt is in no folder of a class",
        f"rose{os.sep}1.png is no PNG or JPEG; save the picture as one of them",
        f"rose{os.sep}more cannot be read: this is no regular file",
        "tulip has no picture, and is no class",
    ]


@pytest.mark.parametrize(("make", "said"), [
    (lambda root: None, "cannot be read as a folder: No such file"),
    (lambda root: root.write_text("text"), "cannot be read as a folder: Not a directory"),
    (lambda root: root.mkdir(), "has no pictures; put those of each class"),
    (lambda root: (root / "a").mkdir(parents=True), r"has no pictures.*a has no picture"),
])  # fmt: skip
def test_a_folder_without_pictures_is_refused(make, said, tmp_path):
    make(tmp_path / "root")
    with pytest.raises(CorpusError, match=f"root {said}"):
        read_folder(tmp_path / "root", (8, 8))
