"""Parallel text: two files, where line n of one translates line n of the other.

What is wrong with a corpus is refused or counted, never passed over: files that do not match are a
CorpusError, and pairs left out of training are in a CleaningReport.
"""

import re
from dataclasses import dataclass

from minitransformer.data.errors import CorpusError
from minitransformer.data.files import unpacked

# Bytes that are not UTF-8 where they are let in: Python's surrogateescape, which no text has.
ESCAPED = re.compile("[\udc80-\udcff]")
UTF_16 = ("\udcff\udcfe", "\udcfe\udcff")  # how such a file begins
# A bad line or one in so many is a slip; with more of them the whole file is in another encoding,
# and leaving them out would leave out every umlaut.
LINES_PER_SLIP = 100


def read_parallel(source_path, target_path, *, strict=True):
    """All pairs of two text files, plain or compressed by gzip (named ``.gz``).

    The text is UTF-8 and comes out as it stands in the files, but for line ends. Only a line feed,
    perhaps after a carriage return, ends a line: ``str.splitlines`` would also break lines at form
    feeds and other separators, on one side only, and shift all pairs that follow.

    Args:
        strict: whether a single line that is not UTF-8 is refused. If not, one such line, or
            one in LINES_PER_SLIP, comes out with ESCAPED characters for its bad bytes, and
            :func:`clean_for_training` drops it.

    Returns:
        A list of (source line, target line).

    Raises:
        CorpusError: a file is no UTF-8 or no whole gzip file, or the files differ in length.
        OSError: a file is missing, cannot be read, or is none, as the pipe of ``<(...)``: a
            training that goes on reads its text again.
    """
    source, target = _lines(source_path, strict), _lines(target_path, strict)
    if len(source) != len(target):
        raise CorpusError(
            f"{source_path} has {len(source):,} lines and {target_path} has {len(target):,}; "
            "line n of one must translate line n of the other"
        )
    return list(zip(source, target, strict=True))


def read_text(path):
    """The whole text of a file, plain or compressed by gzip (named ``.gz``), in UTF-8.

    Line ends come out as line feeds.

    Raises:
        CorpusError: the file is no UTF-8, or no whole gzip file.
        OSError: as for :func:`read_parallel`.
    """
    return "".join(f"{line}\n" for line in _lines(path, strict=True))


def _lines(path, strict):
    # Without the byte order mark that some editors write.
    lines = unpacked(path).decode("utf-8-sig", "surrogateescape").split("\n")
    if lines[-1] == "":  # what follows the last line feed is no line
        del lines[-1]
    bad = [number for number, line in enumerate(lines, start=1) if ESCAPED.search(line)]
    utf_16 = "".join(lines[:1]).startswith(UTF_16)
    slips = 0 if strict or utf_16 else 1
    if len(bad) > slips * max(1, len(lines) // LINES_PER_SLIP):
        _refuse(path, bad[0], lines[bad[0] - 1], "utf-16" if utf_16 else "latin1")
    return [line.removesuffix("\r") for line in lines]


def _refuse(path, number, line, encoding):
    try:
        line.encode(errors="surrogateescape").decode()
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"{path}, line {number}: byte 0x{error.object[error.start]:02x} is not UTF-8 "
            f"({error.reason}); convert the file, for example with iconv -f {encoding} -t utf-8"
        ) from error


@dataclass(frozen=True)
class CleaningReport:
    """What :func:`clean_for_training` did.

    Attributes:
        read: pairs before.
        not_utf8: the numbers, from 1, of the pairs dropped because a side is not UTF-8.
        empty: pairs dropped because a side holds nothing but blanks.
        kept: pairs after.
        repeated: pairs kept that equal an earlier one.
    """

    read: int
    not_utf8: list[int]
    empty: int
    kept: int
    repeated: int

    def __str__(self):
        lines = ", ".join(map(str, self.not_utf8[:3])) + (", ..." if len(self.not_utf8) > 3 else "")
        slips = f"{len(self.not_utf8):,} dropped for bytes that are not UTF-8 (line {lines}), "
        return (
            f"{self.read:,} pairs read, {slips if self.not_utf8 else ''}"
            f"{self.empty:,} dropped for an empty side, "
            f"{self.kept:,} kept ({self.repeated:,} of them repeat an earlier pair)"
        )


def clean_for_training(pairs):
    """The pairs one can learn from: those with text, all of it UTF-8, on both sides.

    Repeated pairs are kept: how often people say a thing is part of what there is to learn. This is
    for training data only. In an evaluation split every line counts, an empty one too.

    Returns:
        (pairs, CleaningReport)

    Raises:
        CorpusError: no pair is left.
    """
    not_utf8 = [n for n, pair in enumerate(pairs, start=1) if any(map(ESCAPED.search, pair))]
    utf8 = [pair for pair in pairs if not any(map(ESCAPED.search, pair))]
    kept = [(source, target) for source, target in utf8 if source.strip() and target.strip()]
    report = CleaningReport(
        read=len(pairs),
        not_utf8=not_utf8,
        empty=len(utf8) - len(kept),
        kept=len(kept),
        repeated=len(kept) - len(set(kept)),
    )
    if not kept:
        raise CorpusError(f"nothing to train on: {report}")
    return kept, report
