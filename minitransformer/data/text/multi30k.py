"""Multi30k, task 1: captions of photographs in four languages (Elliott et al. 2016).

The text comes from a folder the user names or else from the official repository, at one pinned
commit, and every file must have the checksum known for it: a score means the same everywhere. See
datasets/multi30k/README.md for its origin and terms of use.
"""

import hashlib
import warnings

from minitransformer.core.errors import InputError, require_one_of
from minitransformer.data.errors import CorpusError
from minitransformer.data.files import KnownFiles
from minitransformer.data.text.corpus import read_parallel

COMMIT = "a3d2e0d26b56f3846f66a952536ffed4e401d05a"
URL = f"https://raw.githubusercontent.com/multi30k/dataset/{COMMIT}/data/task1/raw/"

LANGUAGES = ("de", "en", "fr", "cs")  # German, English, French, Czech
SPLITS = {  # split -> (name of its files, pairs)
    "train": ("train", 29_000),
    "validation": ("val", 1014),
    "test_2016_flickr": ("test_2016_flickr", 1000),
    "test_2017_flickr": ("test_2017_flickr", 1000),
    "test_2017_mscoco": ("test_2017_mscoco", 461),
    "test_2018_flickr": ("test_2018_flickr", 1071),
}
SHA256 = {
    "train.de.gz": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
    "val.de.gz": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
    "test_2016_flickr.de.gz": "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
    "test_2017_flickr.de.gz": "a2c89666db00c495cd8513b9d708d5a3acc205d7de312ef2bf5fb7ebc1540aee",
    "test_2017_mscoco.de.gz": "799e4854c25d601cb6cb6be29eabe5667734c61ace2f495e03e429031a0bc338",
    "test_2018_flickr.de.gz": "ddd0130c7d97482dc5197a02141dae8dd79f20f03586c480d675c09a32daf608",
    "train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
    "val.en.gz": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
    "test_2016_flickr.en.gz": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
    "test_2017_flickr.en.gz": "76a444ee25172e72695cddb13ae4a3bda59430617be88e0bb46b60504f054074",
    "test_2017_mscoco.en.gz": "aab300bfb4427697987e02cd0aacd44bfe8aa50456231b6474c08038bbed2b58",
    "test_2018_flickr.en.gz": "ef4f4844037d4c5dea75c9a8ed5fd78905967a26f67c255e230cc9780032654d",
    "train.fr.gz": "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c",
    "val.fr.gz": "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9",
    "test_2016_flickr.fr.gz": "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90",
    "test_2017_flickr.fr.gz": "3ba671ceb2299f3304ffafefea7a833d08632fbaf0ba18546f8a2ec2391af496",
    "test_2017_mscoco.fr.gz": "754f3072ba9f124569ba5258b32730fc1d214bbf8e0c6dfb2b74401676220db0",
    "test_2018_flickr.fr.gz": "fb2b83fcceb937a4f7e3e93c1c51c22aba92f1e342391e6b5ba392b16a920501",
    "train.cs.gz": "a65adb8b32e3bc664f21ecba7a6e7f6950fd1f405e135f7c312faabdb6255077",
    "val.cs.gz": "b63226e05c4bd5dd6a42897d74b86a1b9d2c31498252c572b1ea7f7996927fcc",
    "test_2016_flickr.cs.gz": "200a4a74cc9560f051924abb9803be008d1908d77f747e9141aeb86dfd2797f1",
    "test_2018_flickr.cs.gz": "7d0a9db904f94c554a8c58049a9f3a5357c27f46cc3d710d70cb0b4a2585b8c2",
    # the same files unpacked, as far as they have been measured
    "train.de": "2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72",
    "val.de": "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660",
    "test_2016_flickr.de": "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16",
    "train.en": "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6",
    "val.en": "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227",
    "test_2016_flickr.en": "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182",
    "train.fr": "5925a3c18f1587b6b54b87743106e6e8ab93618edb6f65d19eac0621f853a10d",
    "val.fr": "5304e444d842e962b2dda4d816b70b22a1765b15401642b7ca37a67477e708dc",
    "test_2016_flickr.fr": "cb3160d69b002bb638e66cc7612fcd56cb0af82eadc9c142dedc438afb885ef6",
}
FILES = KnownFiles("Multi30k", "multi30k", URL, SHA256, version=COMMIT)


def load_multi30k(split, data_dir=None, languages="de-en"):
    """All pairs of a split, as (source line, target line).

    Args:
        split: a key of SPLITS.
        data_dir: a folder with the files, itself or in a subfolder multi30k, compressed or not;
            without one, where :meth:`KnownFiles.find` looks for them.
        languages: source and target, two of LANGUAGES with a hyphen between.

    Raises:
        ValueError: there is no such split or no such language, or not the one in the other.
        CorpusError: a file is missing, cannot be downloaded, or is not the one known; says what to
            put where.
        MissingLibraryError: there is no pooch to download them with.
    """
    paths = FILES.find(_file_names(split, languages), data_dir)
    for path in paths:
        _verify(path, SPLITS[split][1])
    return read_parallel(*paths)


def _file_names(split, languages):
    """The names of the compressed files of both sides."""
    require_one_of(SPLITS, "split", split)
    source, _, target = languages.partition("-")
    if source == target or not {source, target}.issubset(LANGUAGES):
        raise InputError(
            f"languages={languages!r}; choose a source and another target out of "
            f"{', '.join(LANGUAGES)}, such as 'en-de'"
        )
    names = [f"{SPLITS[split][0]}.{language}.gz" for language in (source, target)]
    for name in names:
        if name not in SHA256:
            raise InputError(f"Multi30k has no {name}: this split was never translated into it")
    return names


def _verify(path, num_lines):
    """Raise a CorpusError unless the file is the known one, or may be where nobody knows it."""
    content = path.read_bytes()
    found, known = hashlib.sha256(content).hexdigest(), SHA256.get(path.name)
    packed = path.name.removesuffix(".gz") + ".gz"
    again = f"download {packed} again from {URL}{packed}"
    if known is None and content.count(b"\n") == num_lines:
        warnings.warn(
            f"{path} has the {num_lines:,} lines it should have, but no checksum of it is known; "
            f"only that of {packed} is",
            stacklevel=3,
        )
    elif found != known:
        expected = f"expected {known}" if known else f"and it should have {num_lines:,} lines"
        raise CorpusError(
            f"{path} is not the file of Multi30k: its SHA-256 is {found}, {expected}; {again}"
        )
