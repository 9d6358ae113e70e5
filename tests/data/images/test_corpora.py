"""Fashion-MNIST, MNIST and CIFAR-10: the known files, read right, from a folder or the network."""

import gzip
import hashlib
import io
import re
import tarfile
from pathlib import Path

import numpy as np
import pytest

from minitransformer.data.errors import CorpusError
from minitransformer.data.files import DATA_VARIABLE
from minitransformer.data.images import cifar10, mnist
from minitransformer.data.images.cifar10 import ARCHIVE, INNER, RECORD, load_cifar10
from minitransformer.data.images.mnist import (
    CONTENTS,
    FASHION_MNIST,
    MNIST,
    load_fashion_mnist,
    load_mnist,
)

PLACE = FASHION_MNIST.place()
REAL_FOLDER = PLACE if PLACE and any(PLACE.glob("train-images-idx3-ubyte*")) else None
README = (Path(__file__).parents[3] / "datasets" / "pictures" / "README.md").read_text()
OF_IDX = {"Fashion-MNIST": load_fashion_mnist, "MNIST": load_mnist}
LOADERS = {**OF_IDX, "CIFAR-10": load_cifar10}
FILES = {"Fashion-MNIST": FASHION_MNIST, "MNIST": MNIST, "CIFAR-10": cifar10.FILES}
COUNT = 7  # pictures in a file
RECORDS = {  # of what the archive of CIFAR-10 holds
    name: np.random.default_rng(number).integers(0, 10, (COUNT, RECORD), np.uint8).tobytes()
    for number, name in enumerate([*cifar10.SPLITS["train"], *cifar10.SPLITS["test"]])
}


def idx(array):
    """The bytes of an IDX file."""
    header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    return header + array.astype(np.uint8).tobytes()


def arrays(split):
    """Pictures and labels of a pretended split."""
    rng = np.random.default_rng(len(split))
    return rng.integers(0, 256, (COUNT, 28, 28), np.uint8), np.arange(COUNT, dtype=np.uint8)


CONTENT = {
    f"{stem}-{kind}-ubyte": idx(array)
    for stem, split in (("train", "train"), ("t10k", "test"))
    for kind, array in zip(("images-idx3", "labels-idx1"), arrays(split), strict=True)
}


def archive(records=RECORDS):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as tar:
        for name, content in records.items():
            member = tarfile.TarInfo(f"{INNER}/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return file.getvalue()


PACKED = archive()


def sha256(content):
    return hashlib.sha256(content).hexdigest()


@pytest.fixture(autouse=True)
def pretend(monkeypatch, network):
    """What is made up here are the known files, and the network has them."""
    downloads = {f"{name}.gz": gzip.compress(content, mtime=0) for name, content in CONTENT.items()}
    for name in OF_IDX:
        for file, content in downloads.items():
            monkeypatch.setitem(FILES[name].sha256, file, sha256(content))
        for file, content in CONTENT.items():
            monkeypatch.setitem(CONTENTS[name], file, sha256(content))
    monkeypatch.setattr(mnist, "SPLITS", {"train": ("train", COUNT), "test": ("t10k", COUNT)})
    monkeypatch.setitem(cifar10.FILES.sha256, ARCHIVE, sha256(PACKED))
    monkeypatch.setattr(cifar10, "COUNT", COUNT)
    network.files |= {**downloads, ARCHIVE: PACKED}


@pytest.fixture
def folder(tmp_path):
    """A folder of the user's with both splits of both."""
    for name in OF_IDX:
        inner = tmp_path / FILES[name].folder
        inner.mkdir()
        for file, content in CONTENT.items():
            (inner / f"{file}.gz").write_bytes(gzip.compress(content))
    return tmp_path


# Fashion-MNIST and MNIST


@pytest.mark.parametrize("name", OF_IDX)
@pytest.mark.parametrize("split", ["train", "test"])
def test_pictures_and_labels_of_a_split_come_out_as_they_are_in_its_files(name, split, folder):
    corpus = LOADERS[name](split, folder)
    pictures, labels = arrays(split)
    np.testing.assert_array_equal(corpus.pictures[..., 0], pictures)
    assert corpus.pictures.dtype == np.uint8
    assert not corpus.pictures.flags.writeable
    np.testing.assert_array_equal(corpus.labels, labels)
    assert len(corpus.classes) == 10


def test_what_the_labels_are_called():
    assert mnist.CLASSES["Fashion-MNIST"][9] == "Ankle boot"
    assert mnist.CLASSES["MNIST"][9] == "9"
    assert cifar10.CLASSES[9] == "truck"


def test_files_that_are_packed_in_another_way_or_not_are_the_same(folder):
    inner = folder / "mnist"
    packed = gzip.compress(CONTENT["train-images-idx3-ubyte"], 1, mtime=99)
    (inner / "train-images-idx3-ubyte.gz").write_bytes(packed)
    (inner / "train-labels-idx1-ubyte.gz").unlink()
    (inner / "train-labels-idx1-ubyte").write_bytes(CONTENT["train-labels-idx1-ubyte"])
    np.testing.assert_array_equal(load_mnist("train", folder).pictures[..., 0], arrays("train")[0])


@pytest.mark.parametrize("name", LOADERS)
def test_without_a_folder_the_published_files_are_downloaded_once(name, network):
    load = LOADERS[name]
    for _ in range(2):
        load("test")
    of_idx = ["t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"]
    wanted = [ARCHIVE] if name == "CIFAR-10" else of_idx
    assert network.asked == [f"{FILES[name].url}{file}" for file in wanted]


@pytest.mark.parametrize("name", LOADERS)
def test_a_split_that_there_is_not_is_refused(name):
    load = LOADERS[name]
    with pytest.raises(ValueError, match="split='validation'; choose 'train' or 'test'"):
        load("validation")


def test_a_file_of_the_other_corpus_is_refused_with_both_checksums(folder, monkeypatch):
    content = CONTENT["t10k-images-idx3-ubyte"]
    monkeypatch.setitem(CONTENTS["MNIST"], "t10k-images-idx3-ubyte", "0123abcd")
    with pytest.raises(
        CorpusError, match=r"is not the file of MNIST: the SHA-256 .* 0123abcd"
    ) as e:
        load_mnist("test", folder)
    assert sha256(content) in str(e.value)
    assert f"{MNIST.url}t10k-images-idx3-ubyte.gz" in str(e.value)
    load_fashion_mnist("test", folder)


@pytest.mark.parametrize(("harm", "said"), [
    (lambda packed: packed[:-9], "is no whole gzip file"),
    (lambda packed: packed[:20], "is no whole gzip file"),
    (lambda packed: b"text", "is no whole gzip file"),
    (lambda packed: packed + packed, r"has more than the [\d,]+ bytes it should have"),
    (lambda packed: gzip.compress(bytes(10**7)), r"has more than the [\d,]+ bytes it should have"),
])  # fmt: skip
def test_a_damaged_file_is_refused_before_it_is_looked_at(harm, said, folder):
    path = folder / "mnist" / "train-images-idx3-ubyte.gz"
    path.write_bytes(harm(path.read_bytes()))
    with pytest.raises(CorpusError, match=f"{path.name} {said}"):
        load_mnist("train", folder)


def test_what_a_named_folder_lacks_is_said_and_nothing_downloaded(folder, network):
    (folder / "mnist" / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(CorpusError, match=r"lacks t10k-labels-idx1-ubyte\.gz; download from https"):
        load_mnist("test", folder)
    with pytest.raises(CorpusError, match=rf"lacks {ARCHIVE}; download from https"):
        load_cifar10("test", folder)
    assert network.asked == []


# CIFAR-10


@pytest.mark.parametrize("where", ["archive", INNER, ""])
def test_a_record_is_a_class_and_then_all_of_red_of_green_and_of_blue(where, tmp_path):
    if where == "archive":
        (tmp_path / ARCHIVE).write_bytes(PACKED)
    else:
        (tmp_path / where).mkdir(exist_ok=True)
        for name, content in RECORDS.items():
            (tmp_path / where / name).write_bytes(content)
    if where == "archive":
        train, test = (load_cifar10(split, tmp_path) for split in ("train", "test"))
    else:
        with pytest.warns(UserWarning, match=f"no checksum is known, only that of {ARCHIVE}"):
            train, test = (load_cifar10(split, tmp_path) for split in ("train", "test"))
    assert (len(train), len(test)) == (5 * COUNT, COUNT)
    record = RECORDS["data_batch_2.bin"][3 * RECORD : 4 * RECORD]
    picture = train.pictures[COUNT + 3]
    assert train.labels[COUNT + 3] == record[0]
    for y, x, channel in ((0, 0, 0), (0, 1, 1), (31, 30, 2), (17, 4, 1)):
        assert picture[y, x, channel] == record[1 + channel * 1024 + y * 32 + x]
    assert test.labels.tolist() == list(RECORDS["test_batch.bin"][::RECORD])


def test_another_archive_is_refused_unopened(tmp_path):
    other = archive({**RECORDS, "test_batch.bin": RECORDS["data_batch_1.bin"]})
    (tmp_path / ARCHIVE).write_bytes(other)
    with pytest.raises(CorpusError, match=f"its SHA-256 is {sha256(other)}, expected"):
        load_cifar10("test", tmp_path)


@pytest.mark.parametrize(("content", "said"), [
    (b"", "has 0 bytes, and 7 records of CIFAR-10 have 21,511"),
    (RECORDS["test_batch.bin"][:-1], "has 21,510 bytes"),
    (RECORDS["test_batch.bin"] + b"0", r"has more than the 21,511 bytes it should have"),
    (b"\x0a" + RECORDS["test_batch.bin"][1:], "has a record of class 10"),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore:of the files in")
def test_a_damaged_file_of_records_is_refused(content, said, tmp_path):
    (tmp_path / "test_batch.bin").write_bytes(content)
    with pytest.raises(CorpusError, match=rf"test_batch\.bin {said}"):
        load_cifar10("test", tmp_path)


# Where they are from


@pytest.mark.parametrize("name", FILES)
def test_the_provenance_names_the_same_files_and_checksums(name, monkeypatch):
    monkeypatch.undo()
    assert FILES[name].url in README
    for file, checksum in {**FILES[name].sha256, **CONTENTS.get(name, {})}.items():
        assert re.search(rf"^{checksum}  {re.escape(file)}$", README, re.MULTILINE)


def test_the_provenance_says_how_many_pictures_there_are(monkeypatch):
    monkeypatch.undo()
    of_idx = tuple(count for _, count in mnist.SPLITS.values())
    counts = dict.fromkeys(OF_IDX, of_idx)
    counts["CIFAR-10"] = [len(names) * cifar10.COUNT for names in cifar10.SPLITS.values()]
    for name, (train, test) in counts.items():
        assert f"| {name} | {train:,} | {test:,} |" in README


@pytest.mark.skipif(not REAL_FOLDER, reason=f"{DATA_VARIABLE} names no folder with Fashion-MNIST")
def test_the_real_fashion_mnist_is_the_known_one(monkeypatch):
    monkeypatch.undo()
    train, test = (load_fashion_mnist(split, REAL_FOLDER) for split in ("train", "test"))
    assert (len(train), len(test)) == (60_000, 10_000)
    for corpus in (train, test):
        assert len(set(np.bincount(corpus.labels))) == 1
