"""Multi30k, task 1: captions of photographs in German and English (Elliott et al. 2016).

The text comes from a folder the user names or else from the official repository, at one pinned
commit, and every file must have the checksum known for it: a score means the same everywhere. See
datasets/multi30k/README.md for its origin and terms of use.
"""

import hashlib
import os
import sys
from pathlib import Path

from minitransformer.data.corpus import CorpusError, read_parallel

COMMIT = "a3d2e0d26b56f3846f66a952536ffed4e401d05a"
URL = f"https://raw.githubusercontent.com/multi30k/dataset/{COMMIT}/data/task1/raw/"
DATA_VARIABLE = "MINITRANSFORMER_DATA"

FILES = {  # split -> (German file, English file)
    "train": ("train.de.gz", "train.en.gz"),
    "validation": ("val.de.gz", "val.en.gz"),
    "test_2016_flickr": ("test_2016_flickr.de.gz", "test_2016_flickr.en.gz"),
    "test_2017_flickr": ("test_2017_flickr.de.gz", "test_2017_flickr.en.gz"),
    "test_2017_mscoco": ("test_2017_mscoco.de.gz", "test_2017_mscoco.en.gz"),
    "test_2018_flickr": ("test_2018_flickr.de.gz", "test_2018_flickr.en.gz"),
}
SHA256 = {
    "train.de.gz": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
    "train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
    "val.de.gz": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
    "val.en.gz": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
    "test_2016_flickr.de.gz": "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
    "test_2016_flickr.en.gz": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
    "test_2017_flickr.de.gz": "a2c89666db00c495cd8513b9d708d5a3acc205d7de312ef2bf5fb7ebc1540aee",
    "test_2017_flickr.en.gz": "76a444ee25172e72695cddb13ae4a3bda59430617be88e0bb46b60504f054074",
    "test_2017_mscoco.de.gz": "799e4854c25d601cb6cb6be29eabe5667734c61ace2f495e03e429031a0bc338",
    "test_2017_mscoco.en.gz": "aab300bfb4427697987e02cd0aacd44bfe8aa50456231b6474c08038bbed2b58",
    "test_2018_flickr.de.gz": "ddd0130c7d97482dc5197a02141dae8dd79f20f03586c480d675c09a32daf608",
    "test_2018_flickr.en.gz": "ef4f4844037d4c5dea75c9a8ed5fd78905967a26f67c255e230cc9780032654d",
}


def load_multi30k(split, data_dir=None):
    """All pairs of a split, as (German, English).

    The files are looked for in ``data_dir``, or else in the folder that the environment variable
    MINITRANSFORMER_DATA names; either may hold them itself or in a subfolder multi30k. A folder
    that is named is never passed over. With neither, they are downloaded once and kept in the
    user's cache folder.

    Args:
        split: a key of FILES.

    Raises:
        ValueError: there is no such split.
        CorpusError: a file is missing, cannot be downloaded, or is not the one known; says what to
            put where.
    """
    if split not in FILES:
        raise ValueError(f"Multi30k has no split {split!r}; choose one of {', '.join(FILES)}")
    names = FILES[split]
    folder = data_dir or os.environ.get(DATA_VARIABLE)
    german, english = _local_files(names, Path(folder)) if folder else _downloaded_files(names)
    return read_parallel(german, english)


def _local_files(names, folder):
    inner = folder / "multi30k"
    place = inner if inner.is_dir() else folder
    missing = [name for name in names if not (place / name).is_file()]
    if missing:
        raise CorpusError(
            f"{place} lacks {' and '.join(missing)}; download from {URL} into that folder, or name "
            f"no folder, neither with --data-dir nor in {DATA_VARIABLE}, to have it downloaded"
        )
    for name in names:
        found = hashlib.sha256((place / name).read_bytes()).hexdigest()
        if found != SHA256[name]:
            raise CorpusError(
                f"{place / name} is not the file of Multi30k: its SHA-256 is {found}, expected "
                f"{SHA256[name]}; download it again from {URL}{name}"
            )
    return [place / name for name in names]


def _downloaded_files(names):
    import pooch  # here, because no other command should wait for it

    store = pooch.create(
        path=pooch.os_cache("minitransformer") / "multi30k" / COMMIT,
        base_url=URL,
        registry={name: f"sha256:{checksum}" for name, checksum in SHA256.items()},
        retry_if_failed=2,
    )
    try:
        return [store.fetch(name, progressbar=sys.stderr.isatty()) for name in names]
    except (OSError, ValueError) as error:  # no network, no such file, no disk; a wrong checksum
        raise CorpusError(
            f"cannot download {' and '.join(names)} from {URL}; fetch them on a machine that can, "
            f"put them into any folder here and name it with --data-dir or {DATA_VARIABLE} "
            f"({error})"
        ) from error
