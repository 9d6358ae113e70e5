"""Parallel text: two files, where line n of one translates line n of the other.

What is wrong with a corpus is refused or counted, never passed over: files that do not match are a
CorpusError, and pairs left out of training are in a CleaningReport.
"""

import gzip
import zlib
from dataclasses import dataclass
from pathlib import Path


class CorpusError(ValueError):
    """A corpus cannot be used; says what is wrong with it, where, and what to do."""


def read_parallel(source_path, target_path):
    """All pairs of two text files, plain or compressed by gzip (named ``.gz``).

    The text is UTF-8 and comes out as it stands in the files, but for line ends. Only a line feed,
    perhaps after a carriage return, ends a line: ``str.splitlines`` would also break lines at form
    feeds and other separators, on one side only, and shift all pairs that follow.

    Returns:
        A list of (source line, target line).

    Raises:
        CorpusError: a file is no UTF-8 or no whole gzip file, or the files differ in length.
        OSError: a file is missing or cannot be read.
    """
    source, target = _lines(source_path), _lines(target_path)
    if len(source) != len(target):
        raise CorpusError(
            f"{source_path} has {len(source):,} lines and {target_path} has {len(target):,}; "
            "line n of one must translate line n of the other"
        )
    return list(zip(source, target, strict=True))


def _lines(path):
    data = _bytes(path)
    try:
        text = data.decode("utf-8-sig")  # without the byte order mark that some editors write
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise CorpusError(
            f"{path}, line {line}: byte 0x{error.object[error.start]:02x} is not UTF-8 "
            f"({error.reason}); convert the file, for example with iconv -f latin1 -t utf-8"
        ) from error
    lines = text.split("\n")
    if lines[-1] == "":  # what follows the last line feed is no line
        del lines[-1]
    return [line.removesuffix("\r") for line in lines]


def _bytes(path):
    data = Path(path).read_bytes()
    if Path(path).suffix != ".gz":
        return data
    try:
        return gzip.decompress(data)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise CorpusError(
            f"{path} is no whole gzip file ({error}); fetch it again, or drop .gz from its name if "
            "it is plain text"
        ) from error


@dataclass(frozen=True)
class CleaningReport:
    """What :func:`clean_for_training` did.

    Attributes:
        read: pairs before.
        empty: pairs dropped because a side holds nothing but blanks.
        kept: pairs after.
        repeated: pairs kept that equal an earlier one.
    """

    read: int
    empty: int
    kept: int
    repeated: int

    def __str__(self):
        return (
            f"{self.read:,} pairs read, {self.empty:,} dropped for an empty side, "
            f"{self.kept:,} kept ({self.repeated:,} of them repeat an earlier pair)"
        )


def clean_for_training(pairs):
    """The pairs one can learn from: those with text on both sides.

    Repeated pairs are kept: how often people say a thing is part of what there is to learn. This is
    for training data only. In an evaluation split every line counts, an empty one too.

    Returns:
        (pairs, CleaningReport)

    Raises:
        CorpusError: no pair is left.
    """
    kept = [(source, target) for source, target in pairs if source.strip() and target.strip()]
    report = CleaningReport(
        read=len(pairs),
        empty=len(pairs) - len(kept),
        kept=len(kept),
        repeated=len(kept) - len(set(kept)),
    )
    if not kept:
        raise CorpusError(f"nothing to train on: {report}")
    return kept, report
