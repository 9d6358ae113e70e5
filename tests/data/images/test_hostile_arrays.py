"""Arrays in .npz files: read whole, or refused with a reason, whatever is in the file.

Each seed damages a file; ``--fuzz SECONDS`` tries seeds for so long.
"""

import io
import random
import zipfile

import numpy as np
import pytest
from memory import takes_at_most

from minitransformer.data.errors import CorpusError
from minitransformer.data.images.npz import read_npz

PICTURES = np.random.default_rng(0).integers(0, 256, (6, 4, 5, 3), np.uint8)
LABELS = np.array([0, 1, 2, 1, 0, 2])
CLASSES = ["ä", "a class", "c"]


def damaged(content, rng):
    """Some bytes changed, or the end cut off, or more there."""
    content = bytearray(content)
    for _ in range(rng.choice([1, 1, 3])):
        content[rng.randrange(len(content))] = rng.choice([0, 1, 127, 255, rng.randrange(256)])
    if rng.random() < 0.3:
        del content[rng.randrange(len(content)) :]
    if rng.random() < 0.1:
        content += rng.randbytes(rng.randrange(30))
    return bytes(content)


def npz(save=np.savez, **arrays):
    file = io.BytesIO()
    save(file, **arrays)
    return file.getvalue()


WHOLE = dict(pictures=PICTURES, labels=LABELS, classes=CLASSES)


def but(**changes):
    """The bytes of a file with other arrays; None leaves one out."""
    return npz(**{name: array for name, array in {**WHOLE, **changes}.items() if array is not None})


def with_header(shape, dtype="'|u1'"):
    """Pictures whose header says something else than what follows."""
    text = f"{{'descr': {dtype}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    header = b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text
    file = io.BytesIO(but(pictures=None))
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("pictures.npy", header + PICTURES.tobytes())
    return file.getvalue()


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("dtype", [np.int64, np.uint8, ">i4"])
def test_pictures_and_labels_come_out_as_they_were_put_in(save, dtype, tmp_path):
    path = tmp_path / "mine.npz"
    path.write_bytes(npz(save, **{**WHOLE, "labels": LABELS.astype(dtype)}))
    corpus = read_npz(path)
    np.testing.assert_array_equal(corpus.pictures, PICTURES)
    np.testing.assert_array_equal(corpus.labels, LABELS)
    assert corpus.classes == tuple(CLASSES)


def test_grey_pictures_need_no_axis_for_it_and_classes_no_names(tmp_path):
    path = tmp_path / "mine.npz"
    path.write_bytes(but(pictures=PICTURES[..., 1], classes=None))
    corpus = read_npz(path)
    np.testing.assert_array_equal(corpus.pictures, PICTURES[..., 1:2])
    assert corpus.classes == ("0", "1", "2")


def test_labels_without_names_may_be_of_ten_thousand_classes(tmp_path):
    np.savez(tmp_path / "many.npz", pictures=np.zeros((2, 4, 4), np.uint8), labels=[0, 9_999])
    assert len(read_npz(tmp_path / "many.npz").classes) == 10_000


@pytest.mark.parametrize(("content", "said"), [
    (b"text", ": File is not a zip file"),
    (but()[:-30], ": File is not a zip file"),
    (but(pictures=None), r": .*no item named 'pictures\.npy'"),
    (but(labels=None), r": .*no item named 'labels\.npy'"),
    (but(pictures=PICTURES.astype(object)), ": pictures of type object"),
    (but(classes=np.array(CLASSES, object)), ": classes of type object"),
    (but(pictures=np.asfortranarray(PICTURES)), ": pictures holds uint8 column by"),
    (but(pictures=PICTURES / 255), r": .* float64 .* uint8, 0 .*\(255 \* x\)\.round\(\)\.astype"),
    (but(pictures=PICTURES[0, 0]), r": pictures of type uint8 and shape \(5, 3\)"),
    (but(labels=LABELS.astype(float)), ": labels of type float64"),
    (but(labels=[LABELS]), r": labels of type int64 and shape \(1, 6\)"),
    (but(labels=LABELS[:5]), r": labels of type int64 and shape \(5,\) for 6 pictures"),
    (but(labels=LABELS.astype(str)), ": labels of type <U21 .*; they must be whole numbers"),
    (but(labels=LABELS + 1), ": picture 2 has the label 3, and there are 3 classes"),
    (but(labels=LABELS - 1, classes=None), ": picture 0 has the label -1"),
    (but(labels=LABELS * 10**5, classes=None), ": a label is 200000; name so many classes"),
    (but(labels=np.full(6, 2**64 - 1, np.uint64)), ": picture 0 has the label -1"),
    (but(classes=[CLASSES]), r": classes .* shape \(1, 3\); they must be a list of names"),
    (but(classes=["a", "a", "c"]), ": two classes have the name 'a'"),
    (but(classes=np.uint32([97, 98, 0x110000]).view("<U1")), ": the name of a class is no text"),
    (but(classes=["a", "b", "\ud800"]), r": the name '\\ud800' of a class is no text"),
    (with_header((10**6, 4, 5, 3)), ": "),
    (with_header((2**62, 2**62)), ": "),
    (with_header((6, 4, 5, 3, 0)), ": "),
    (with_header((6, 4, 5, 3), "[('a', '|u1')]"), ": pictures of type"),
    (with_header("(" * 2000), ": the header of pictures is not that of"),
    (with_header((6, 4, 5)), ": pictures should have 120 bytes after its header, and has 360"),
])  # fmt: skip
def test_what_cannot_be_used_is_refused_with_its_name(content, said, tmp_path):
    path = tmp_path / "mine.npz"
    path.write_bytes(content)
    with pytest.raises(CorpusError, match=f"mine.npz{said}"):
        read_npz(path)


def test_no_memory_is_taken_because_a_file_says_so(tmp_path):
    path = tmp_path / "mine.npz"
    path.write_bytes(with_header((2**31, 4, 5, 3)))
    with takes_at_most(10**6), pytest.raises(CorpusError):
        read_npz(path)


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("entries", [
    np.zeros(10**7), np.zeros((10**7, 1, 1, 1, 1), np.uint8), np.array(["a" * 10**7])
])  # fmt: skip
def test_of_a_bomb_no_more_than_the_header_is_unpacked(name, entries, tmp_path):
    path = tmp_path / "mine.npz"
    path.write_bytes(npz(np.savez_compressed, **{**WHOLE, name: entries}))
    assert path.stat().st_size < 10**6
    said = f": {name} of type .* and shape"
    with takes_at_most(10**6), pytest.raises(CorpusError, match=said):
        read_npz(path)


def test_a_bomb_is_refused_unopened(tmp_path, monkeypatch):
    monkeypatch.setattr("minitransformer.data.images.npz.MOST", 10**5)
    path = tmp_path / "mine.npz"
    path.write_bytes(npz(np.savez_compressed, **{**WHOLE, "pictures": np.zeros(10**6, np.uint8)}))
    with pytest.raises(CorpusError, match="it says that it holds more than 100,000 bytes"):
        read_npz(path)


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(CorpusError, match=r"is no \.npz file: this is no regular file"):
        read_npz(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_npz(tmp_path / "missing.npz")


def test_a_damaged_npz_file_is_read_as_it_was_or_refused(tmp_path, fuzz_cases):
    path = tmp_path / "mine.npz"
    whole = npz(np.savez_compressed, **WHOLE), but()
    refused = 0
    for seed in fuzz_cases(600):
        rng = random.Random(seed)
        path.write_bytes(damaged(rng.choice(whole), rng))
        try:
            corpus = read_npz(path)
        except CorpusError:
            refused += 1
            continue
        np.testing.assert_array_equal(corpus.pictures, PICTURES)
        np.testing.assert_array_equal(corpus.labels, LABELS)
        assert corpus.classes in (tuple(CLASSES), ("0", "1", "2")), seed
    assert refused > 100
