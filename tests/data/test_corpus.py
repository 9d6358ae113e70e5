"""Parallel text: every line comes out as it stands, and what is wrong is refused or counted."""

import gzip

import pytest

from minitransformer.data.text.corpus import CorpusError, clean_for_training, read_parallel


@pytest.fixture
def read(tmp_path):
    """Reads two files with these bytes."""

    def read(source, target, suffix=""):
        paths = tmp_path / f"text.de{suffix}", tmp_path / f"text.en{suffix}"
        for path, data in zip(paths, (source, target), strict=True):
            path.write_bytes(data)
        return read_parallel(*paths)

    return read


def test_line_n_of_one_file_goes_with_line_n_of_the_other(read):
    assert read(b"eins\nzwei\n", b"one\ntwo\n") == [("eins", "one"), ("zwei", "two")]


@pytest.mark.parametrize("line", [
    "no\u00a0break", "line\u2028separator", "paragraph\u2029separator", "next\u0085line",
    "vertical\vtab", "form\ffeed", "file\x1cseparator", "carriage\rreturn", "a\ttab",
    "  blanks at both edges ", "@@", "a mark \ufeff inside", "",
], ids=ascii)  # fmt: skip
def test_a_line_comes_out_as_it_stands(read, line):
    text = f"before\n{line}\nafter\n".encode()
    assert read(text, text) == [("before", "before"), (line, line), ("after", "after")]


@pytest.mark.parametrize(("data", "lines"), [
    (b"", []),
    (b"\n", [""]),
    (b"a\nb", ["a", "b"]),
    (b"a\nb\n", ["a", "b"]),
    (b"a\nb\n\n", ["a", "b", ""]),
    (b"a\r\nb\r\n", ["a", "b"]),
    (b"a\r\r\n", ["a\r"]),
    (b"\xef\xbb\xbfa\nb\n", ["a", "b"]),
], ids=ascii)  # fmt: skip
def test_lines_end_where_editors_end_them(read, data, lines):
    assert read(data, data) == [(line, line) for line in lines]


def test_files_compressed_by_gzip_are_read(read):
    source, target = gzip.compress("süß\n".encode()), gzip.compress(b"sweet\n")
    assert read(source, target, ".gz") == [("süß", "sweet")]


def test_unequal_line_counts_are_refused_with_both_counts(read):
    with pytest.raises(CorpusError, match=r"text\.de has 3 lines and .*text\.en has 2"):
        read(b"a\nb\nc\n", b"a\nb\n")


@pytest.mark.parametrize(("data", "place"), [
    ("gut\nschön\n".encode("latin1"), r"text\.de, line 2: byte 0xf6 is not UTF-8.*-f latin1 -t"),
    ("gut\n".encode("utf-16"), r"text\.de, line 1: byte 0xff is not UTF-8.*iconv -f utf-16 -t"),
    (b"gut\n\ngut\n\xc3", r"text\.de, line 4: byte 0xc3 is not UTF-8"),
    (b"gut\n\xed\xa0\x80\n", r"text\.de, line 2: byte 0xed is not UTF-8"),
], ids=["latin1", "utf-16", "cut off", "half a surrogate pair"])  # fmt: skip
def test_text_that_is_not_utf_8_is_refused_with_file_and_line(read, data, place):
    with pytest.raises(CorpusError, match=place):
        read(data, b"good\n")


def test_where_it_is_asked_for_a_slip_costs_training_one_pair_which_is_counted(tmp_path):
    source, target = [b"gut\n"] * 400, [b"good\n"] * 400
    source[16] = "schön\n".encode("latin1")
    target[16] = target[399] = b"\xff\n"
    for name, lines in (("text.de", source), ("text.en", target)):
        (tmp_path / name).write_bytes(b"".join(lines))
    pairs = read_parallel(tmp_path / "text.de", tmp_path / "text.en", strict=False)
    assert len(pairs) == 400
    kept, report = clean_for_training(pairs)
    assert kept == [("gut", "good")] * 398
    assert (report.read, report.not_utf8, report.empty, report.kept) == (400, [17, 400], 0, 398)
    slips = "400 pairs read, 2 dropped for bytes that are not UTF-8 (line 17, 400), 0 dropped"
    assert str(report).startswith(slips)


@pytest.mark.parametrize(("encoding", "place"), [("latin1", "98: byte 0xf6"), ("utf-16", "1: by")])
def test_a_file_in_another_encoding_is_refused_also_where_a_slip_is_not(tmp_path, encoding, place):
    """Without its lines with umlauts it would be a corpus of a language without any."""
    text = "gut\n" * 97 + "schön\n" * 2 + "gut\n" * 51
    for name in ("text.de", "text.en"):
        (tmp_path / name).write_bytes(text.encode(encoding))
    with pytest.raises(CorpusError, match=rf"text\.de, line {place}.* is not UTF-8"):
        read_parallel(tmp_path / "text.de", tmp_path / "text.en", strict=False)


@pytest.mark.parametrize("data", [
    b"plain text\n",
    gzip.compress(b"text\n" * 99)[:-9],
    gzip.compress(b"text\n" * 99)[:-20] + b"x" * 20,
], ids=["not compressed", "cut off", "corrupt"])  # fmt: skip
def test_a_file_that_is_not_whole_gzip_is_refused_by_name(read, data):
    with pytest.raises(CorpusError, match=r"text\.de\.gz is no whole gzip file"):
        read(data, gzip.compress(b"text\n"), ".gz")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"absent\.de"):
        read_parallel(tmp_path / "absent.de", tmp_path / "absent.en")


def test_training_drops_pairs_with_an_empty_side_and_keeps_repeated_ones():
    empty = [("", "b"), ("a", " \u00a0\t"), ("", "")]
    pairs = [("a", "b"), *empty, ("a", "b"), (" a", "b"), ("a", "b")]
    kept, report = clean_for_training(pairs)
    assert kept == [("a", "b"), ("a", "b"), (" a", "b"), ("a", "b")]
    assert (report.read, report.empty, report.kept, report.repeated) == (7, 3, 4, 2)


def test_the_report_is_a_sentence():
    _, report = clean_for_training([("a", "b")] * 1500 + [("", "b")])
    assert str(report) == (
        "1,501 pairs read, 1 dropped for an empty side, 1,500 kept "
        "(1,499 of them repeat an earlier pair)"
    )


@pytest.mark.parametrize("pairs", [[], [("a", ""), ("", "b")]], ids=["none", "all empty"])
def test_a_corpus_with_nothing_to_learn_is_refused(pairs):
    with pytest.raises(CorpusError, match="nothing to train on: "):
        clean_for_training(pairs)
