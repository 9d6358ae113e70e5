"""Files of data: whole, unpacked, and where their checksums are known, the right ones.

The files of a data set are in a folder that the user names, or else they are downloaded, once.
"""

import gzip
import math
import os
import sys
import zlib
from contextlib import redirect_stderr
from dataclasses import dataclass
from pathlib import Path

from minitransformer.core.libraries import library
from minitransformer.core.regular_file import open_regular
from minitransformer.core.terminal import bare
from minitransformer.data.errors import CorpusError

DATA_VARIABLE = "MINITRANSFORMER_DATA"


@dataclass(frozen=True)
class KnownFiles:
    """The files of a data set.

    Attributes:
        name: of the data set, as people write it.
        folder: its name as a subfolder, of the user's folder and of the cache.
        url: where the files are, up to their names.
        sha256: of each, as it is downloaded, by name.
        version: a subfolder of the cache, for files that change under their names.
    """

    name: str
    folder: str
    url: str
    sha256: dict[str, str]
    version: str = ""

    def find(self, names, data_dir=None):
        """Paths of files, in the order of their names.

        Args:
            names: of compressed files, ``.gz``; a folder may have them unpacked.
            data_dir: a folder that has them itself or in a subfolder; by default the one that the
                environment variable MINITRANSFORMER_DATA names. A folder that is named is never
                passed over, nor are its files checked here. With neither they are downloaded, and
                kept in the user's cache folder.

        Raises:
            CorpusError: a file is missing, cannot be downloaded, or is not the one known; says
                what to put where.
            MissingLibraryError: there is no pooch to download them with.
        """
        place = self.place(data_dir)
        return self._downloaded(names) if place is None else self._local(names, place)

    def place(self, data_dir=None):
        """The folder that the user has named, or its subfolder; None where there is none."""
        named = data_dir or os.environ.get(DATA_VARIABLE)
        if not named:
            return None
        inner = Path(named) / self.folder
        return inner if inner.is_dir() else Path(named)

    def cache(self):
        """Where files are kept that were downloaded.

        Raises:
            MissingLibraryError: there is no pooch, which knows the place.
        """
        return self._pooch().os_cache("minitransformer") / self.folder / self.version

    def _local(self, names, place):
        paths = [place / name for name in names]
        paths = [path if path.is_file() else path.with_suffix("") for path in paths]
        missing = [name for name, path in zip(names, paths, strict=True) if not path.is_file()]
        if missing:
            raise CorpusError(
                f"{place} lacks {' and '.join(missing)}; download from {self.url} into that "
                f"folder, or name another one with --data-dir or in {DATA_VARIABLE}, or none, to "
                "have it downloaded"
            )
        return paths

    def _downloaded(self, names):
        store = self._pooch().create(
            path=self.cache(),
            base_url=self.url,
            registry={name: f"sha256:{checksum}" for name, checksum in self.sha256.items()},
            retry_if_failed=2,
        )
        try:
            with redirect_stderr(bare(sys.stderr)):  # where it draws bars
                return [Path(store.fetch(name, progressbar=sys.stderr.isatty())) for name in names]
        except (OSError, ValueError) as error:  # no network, file or disk; a wrong checksum
            raise CorpusError(
                f"cannot download {' and '.join(names)} from {self.url}; fetch them on a machine "
                f"that can, put them into any folder here and name it with --data-dir or "
                f"{DATA_VARIABLE} ({error})"
            ) from error

    def _pooch(self):
        return library("pooch", f"the download of {self.name}")


def unpacked(path, most=math.inf):
    """The bytes of a file, plain or compressed by gzip (named ``.gz``), ``most`` at most.

    Raises:
        CorpusError: it is no whole gzip file, or has more bytes.
        OSError: it is missing, cannot be read, or is no regular file.
    """
    size = None if most == math.inf else most + 1  # one more, to see that it is too many
    try:
        with open_regular(path) as file:
            if Path(path).suffix == ".gz":
                file = gzip.GzipFile(fileobj=file)
            content = file.read(size)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise CorpusError(
            f"{path} is no whole gzip file ({error}); fetch it again, or drop .gz from its name if "
            "it is not compressed"
        ) from error
    if len(content) > most:
        raise CorpusError(f"{path} has more than the {most:,} bytes it should have")
    return content
