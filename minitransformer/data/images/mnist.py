"""MNIST (LeCun, Cortes and Burges 1998) and Fashion-MNIST (Xiao, Rasul and Vollgraf 2017).

Both have 60,000 grey pictures of 28 × 28 to train on and 10,000 to test with, of ten classes, in
four files of the same names: digits that people wrote, and things to wear. Some copies of the files
are packed in another way, so what must have the checksum known for it is their content.

They are in the IDX format: the entries of an array, bytes, the last axis running fastest, behind a
header that says so, of four bytes and four more for the length of each axis.
"""

import hashlib

import numpy as np

from minitransformer.core.errors import require_one_of
from minitransformer.data.errors import CorpusError
from minitransformer.data.files import KnownFiles, unpacked
from minitransformer.data.images.pictures import Pictures

SPLITS = {"train": ("train", 60_000), "test": ("t10k", 10_000)}  # name of its files, pictures
SIDE = 28

FASHION_MNIST = KnownFiles(
    "Fashion-MNIST",
    "fashion_mnist",
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    {
        "train-images-idx3-ubyte.gz": (
            "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"
        ),
        "train-labels-idx1-ubyte.gz": (
            "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"
        ),
        "t10k-images-idx3-ubyte.gz": (
            "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"
        ),
        "t10k-labels-idx1-ubyte.gz": (
            "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"
        ),
    },
)
# The copy of the Common Visual Data Foundation, with the checksums that TensorFlow Datasets has.
MNIST = KnownFiles(
    "MNIST",
    "mnist",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    {
        "train-images-idx3-ubyte.gz": (
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"
        ),
        "train-labels-idx1-ubyte.gz": (
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"
        ),
        "t10k-images-idx3-ubyte.gz": (
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"
        ),
        "t10k-labels-idx1-ubyte.gz": (
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"
        ),
    },
)
CONTENTS = {  # SHA-256 of what is in the files of each
    "Fashion-MNIST": {
        "train-images-idx3-ubyte": (
            "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"
        ),
        "train-labels-idx1-ubyte": (
            "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"
        ),
        "t10k-images-idx3-ubyte": (
            "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"
        ),
        "t10k-labels-idx1-ubyte": (
            "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"
        ),
    },
    "MNIST": {
        "train-images-idx3-ubyte": (
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"
        ),
        "train-labels-idx1-ubyte": (
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"
        ),
        "t10k-images-idx3-ubyte": (
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"
        ),
        "t10k-labels-idx1-ubyte": (
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"
        ),
    },
}
CLASSES = {
    "Fashion-MNIST": (
        *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
        *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
    ),
    "MNIST": tuple("0123456789"),
}


def load_fashion_mnist(split, data_dir=None):
    """The Pictures of a split of Fashion-MNIST, (N, 28, 28, 1), which cannot be written to.

    Args:
        split: a key of SPLITS.
        data_dir: a folder with its files, compressed or not; see :meth:`KnownFiles.find`.

    Raises:
        ValueError: there is no such split.
        CorpusError: a file is missing, cannot be downloaded, or is not the one known; says what
            to put where.
        MissingLibraryError: there is no pooch to download them with.
    """
    return _load(FASHION_MNIST, split, data_dir)


def load_mnist(split, data_dir=None):
    """The Pictures of a split of MNIST; as :func:`load_fashion_mnist`."""
    return _load(MNIST, split, data_dir)


def _load(files, split, data_dir):
    require_one_of(SPLITS, "split", split)
    stem, count = SPLITS[split]
    shapes = {
        f"{stem}-images-idx3-ubyte": (count, SIDE, SIDE),
        f"{stem}-labels-idx1-ubyte": (count,),
    }
    paths = files.find([f"{name}.gz" for name in shapes], data_dir)
    pictures, labels = (
        _array(files, path, name, shape)
        for path, (name, shape) in zip(paths, shapes.items(), strict=True)
    )
    return Pictures(pictures[..., None], labels.astype(np.int64), CLASSES[files.name])


def _array(files, path, name, shape):
    header = 4 + 4 * len(shape)
    content = unpacked(path, header + int(np.prod(shape)))
    found, known = hashlib.sha256(content).hexdigest(), CONTENTS[files.name][name]
    if found != known:
        raise CorpusError(
            f"{path} is not the file of {files.name}: the SHA-256 of its content is {found}, "
            f"expected {known}; download {name}.gz again from {files.url}{name}.gz"
        )
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)
