"""CIFAR-10 (Krizhevsky 2009): 50,000 photographs of 32 × 32 to train on and 10,000 to test with.

It is read in its binary version. A file has 10,000 records, each a byte for the class and then all
of red, of green and of blue, row by row. The archive must have the checksum known for it, which is
that of TensorFlow Datasets; of the files that are in it none is known.
"""

import hashlib
import tarfile
import warnings

import numpy as np

from minitransformer.core.errors import require_one_of
from minitransformer.core.regular_file import open_regular
from minitransformer.data.errors import CorpusError
from minitransformer.data.files import KnownFiles, unpacked
from minitransformer.data.images.pictures import Pictures

ARCHIVE, INNER = "cifar-10-binary.tar.gz", "cifar-10-batches-bin"
FILES = KnownFiles(
    "CIFAR-10",
    "cifar10",
    "https://www.cs.toronto.edu/~kriz/",
    {ARCHIVE: "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"},
)
SPLITS = {  # split -> its files
    "train": tuple(f"data_batch_{number}.bin" for number in range(1, 6)),
    "test": ("test_batch.bin",),
}
COUNT, SIDE, CHANNELS = 10_000, 32, 3
RECORD = 1 + SIDE * SIDE * CHANNELS  # bytes
CLASSES = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)


def load_cifar10(split, data_dir=None):
    """The Pictures of a split, (N, 32, 32, 3).

    Args:
        split: a key of SPLITS.
        data_dir: a folder with the archive, or with the files that are in it, themselves or in its
            subfolder; see :meth:`KnownFiles.find`.

    Raises:
        ValueError: there is no such split.
        CorpusError: a file is missing, cannot be downloaded, or is not the one known; says what
            to put where.
        MissingLibraryError: there is no pooch to download it with.
    """
    require_one_of(SPLITS, "split", split)
    names = SPLITS[split]
    pictures = np.empty((len(names) * COUNT, SIDE, SIDE, CHANNELS), np.uint8)
    labels = np.empty(len(pictures), np.int64)
    for i, (name, content) in enumerate(_contents(names, data_dir)):
        some = slice(i * COUNT, (i + 1) * COUNT)
        pictures[some], labels[some] = parse_records(content, name)
    return Pictures(pictures, labels, CLASSES)


def parse_records(content, name):
    """The pictures (COUNT, 32, 32, 3) and labels of a file's bytes.

    Args:
        name: of the file, for messages.

    Raises:
        CorpusError: they are not that of a whole file; says why.
    """
    if len(content) != COUNT * RECORD:
        raise CorpusError(
            f"{name} has {len(content):,} bytes, and {COUNT:,} records of CIFAR-10 have "
            f"{COUNT * RECORD:,}; download {ARCHIVE} again from {FILES.url}"
        )
    records = np.frombuffer(content, np.uint8).reshape(COUNT, RECORD)
    labels, pictures = records[:, 0], records[:, 1:].reshape(COUNT, CHANNELS, SIDE, SIDE)
    if labels.max() >= len(CLASSES):
        raise CorpusError(
            f"{name} has a record of class {labels.max()}, and CIFAR-10 has classes 0 to "
            f"{len(CLASSES) - 1}; download {ARCHIVE} again from {FILES.url}"
        )
    return pictures.transpose(0, 2, 3, 1), labels  # (COUNT, 32, 32, 3), (COUNT,)


def _contents(names, data_dir):
    """Yield the name of each file, as messages have it, and its bytes."""
    place = FILES.place(data_dir)
    folder = place and _unpacked_in(place, names)
    if not folder:
        yield from _members(*FILES.find([ARCHIVE], data_dir), names)
        return
    warnings.warn(
        f"of the files in {folder} no checksum is known, only that of {ARCHIVE}; each must have "
        f"{COUNT:,} records",
        stacklevel=3,
    )
    for name in names:
        yield folder / name, unpacked(folder / name, COUNT * RECORD)


def _unpacked_in(place, names):
    """Where files stand that were in the archive, if it is not there itself; or None."""
    if (place / ARCHIVE).is_file():
        return None
    folders = place / INNER, place
    return next((f for f in folders if all((f / name).is_file() for name in names)), None)


def _members(path, names):
    with open_regular(path) as file:
        found, known = hashlib.file_digest(file, "sha256").hexdigest(), FILES.sha256[ARCHIVE]
        if found != known:
            raise CorpusError(
                f"{path} is not the archive of CIFAR-10: its SHA-256 is {found}, expected {known}; "
                f"download it again from {FILES.url}{ARCHIVE}"
            )
        file.seek(0)
        with tarfile.open(fileobj=file, mode="r:gz") as archive:
            for name in names:
                yield f"{path}: {name}", archive.extractfile(f"{INNER}/{name}").read()
