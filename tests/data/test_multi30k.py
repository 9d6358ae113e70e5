"""Multi30k: read where the user says, downloaded otherwise, and always the files that are known."""

import gzip
import hashlib
import sys
from pathlib import Path

import pooch
import pytest
from elsewhere import in_a_process

from minitransformer.data.files import DATA_VARIABLE
from minitransformer.data.text import multi30k
from minitransformer.data.text.corpus import CorpusError
from minitransformer.data.text.multi30k import FILES, SHA256, SPLITS, URL, load_multi30k

PLACE = FILES.place()
REAL_FOLDER = PLACE if PLACE and any(PLACE.glob("train.de*")) else None
TEXTS = {
    "de": ["Ein Hund .", "Zwei Hunde ."],
    "en": ["A dog .", "Two dogs ."],
    "fr": ["Un chien .", "Deux chiens ."],
    "cs": ["Pes .", "Dva psi ."],
}
PAIRS = list(zip(TEXTS["de"], TEXTS["en"], strict=True))
KNOWN = dict(SHA256)
DATA = {
    f"{stem}.{language}.gz": gzip.compress("".join(f"{x}\n" for x in lines).encode(), mtime=0)
    for stem in ("train", "test_2016_flickr")
    for language, lines in TEXTS.items()
}
TRAIN = ("train.de.gz", "train.en.gz")


@pytest.fixture(autouse=True)
def pretend(monkeypatch, network):
    """The files of DATA are those of Multi30k, and the network has them."""
    for name, data in DATA.items():
        monkeypatch.setitem(SHA256, name, hashlib.sha256(data).hexdigest())
    monkeypatch.setitem(SHA256, "train.de", hashlib.sha256(plain("train.de.gz")).hexdigest())
    monkeypatch.setitem(SPLITS, "train", ("train", len(PAIRS)))
    network.files |= DATA


@pytest.fixture
def folder(tmp_path):
    """A folder of the user's with both files of the training split."""
    folder = tmp_path / "mine"
    folder.mkdir()
    write(folder, TRAIN)
    return folder


def write(folder, names):
    for name in names:
        (folder / name).write_bytes(DATA[name])


def plain(name):
    return gzip.decompress(DATA[name])


def test_every_split_has_a_known_checksum_in_each_of_the_languages_it_was_translated_into():
    stems = [stem for stem, _ in SPLITS.values()]
    every = {f"{stem}.{language}.gz" for stem in stems for language in TEXTS}
    never = {"test_2017_flickr.cs.gz", "test_2017_mscoco.cs.gz"}
    assert {name for name in SHA256 if name.endswith(".gz")} == every - never


def test_the_provenance_names_the_same_files_and_checksums():
    text = (Path(__file__).parents[2] / "datasets" / "multi30k" / "README.md").read_text()
    assert f"{URL}FILE" in text
    for name, checksum in KNOWN.items():
        assert f"{checksum}  {name}\n" in text


@pytest.mark.parametrize(
    ("given", "named", "place"),
    [("mine", None, "."), (None, "mine", "."), ("mine", "absent", "."), ("mine", None, "multi30k")],
    ids=["argument", "environment", "argument before environment", "subfolder"],
)
@pytest.mark.parametrize("packed", [True, False])
def test_a_folder_is_read_wherever_it_is_named_and_nothing_downloaded(
    given, named, place, packed, network, tmp_path, monkeypatch
):
    folder = tmp_path / "mine" / place
    folder.mkdir(parents=True)
    write(folder, TRAIN)
    if not packed:
        (folder / "train.de.gz").unlink()
        (folder / "train.de").write_bytes(plain("train.de.gz"))
    if named:
        monkeypatch.setenv(DATA_VARIABLE, str(tmp_path / named))
    assert load_multi30k("train", given and tmp_path / given) == PAIRS
    assert network.asked == []


@pytest.mark.parametrize("languages", ["en-de", "fr-en", "cs-fr", "de-cs"])
def test_any_language_is_translated_into_any_other(network, languages):
    source, target = languages.split("-")
    pairs = list(zip(TEXTS[source], TEXTS[target], strict=True))
    assert load_multi30k("train", languages=languages) == pairs


@pytest.mark.parametrize("languages", ["de-de", "en", "de-en-fr", "de-es", "", "en-"])
def test_languages_that_are_not_two_of_the_four_are_refused(network, languages):
    with pytest.raises(ValueError, match="choose a source and another target out of de, en, fr,"):
        load_multi30k("train", languages=languages)
    assert network.asked == []


def test_a_split_that_a_language_does_not_have_is_refused(network):
    with pytest.raises(ValueError, match=r"no test_2017_flickr\.cs\.gz"):
        load_multi30k("test_2017_flickr", languages="cs-en")
    assert network.asked == []


def test_an_unpacked_file_with_another_checksum_is_refused(folder):
    (folder / "train.de.gz").unlink()
    (folder / "train.de").write_bytes(plain("train.de.gz").replace(b"Zwei", b"Drei"))
    with pytest.raises(CorpusError, match=r"train\.de is not the file of Multi30k.*train\.de\.gz"):
        load_multi30k("train", folder)


def test_where_no_checksum_of_an_unpacked_file_is_known_its_lines_are_counted(folder):
    (folder / "train.cs").write_bytes(plain("train.cs.gz"))
    with pytest.warns(UserWarning, match=r"train\.cs has the 2 lines it should have, but no check"):
        assert load_multi30k("train", folder, "de-cs")[1] == ("Zwei Hunde .", "Dva psi .")
    (folder / "train.cs").write_bytes(plain("train.cs.gz") + b"Kocka .\n")
    with pytest.raises(CorpusError, match=r"train\.cs is not the file of .*it should have 2 lines"):
        load_multi30k("train", folder, "de-cs")


def test_what_a_named_folder_lacks_is_an_error_and_not_downloaded(folder, network):
    (folder / "train.en.gz").unlink()
    with pytest.raises(CorpusError) as error:
        load_multi30k("train", folder)
    for part in (f"{folder} lacks train.en.gz;", URL, "--data-dir", DATA_VARIABLE):
        assert part in str(error.value)
    assert network.asked == []


def test_a_changed_file_is_refused_with_both_checksums(folder):
    changed = gzip.compress(b"Eine Katze .\nZwei Katzen .\n")
    (folder / "train.de.gz").write_bytes(changed)
    with pytest.raises(CorpusError, match=r"train\.de\.gz is not the file of Multi30k") as error:
        load_multi30k("train", folder)
    assert hashlib.sha256(changed).hexdigest() in str(error.value)
    assert SHA256["train.de.gz"] in str(error.value)


def test_without_a_folder_the_pinned_files_are_downloaded_once(network):
    assert load_multi30k("test_2016_flickr") == PAIRS
    assert load_multi30k("test_2016_flickr") == PAIRS
    assert network.asked == [f"{URL}test_2016_flickr.{language}.gz" for language in ("de", "en")]
    assert multi30k.COMMIT in URL


def test_a_damaged_copy_in_the_cache_is_downloaded_again(network, tmp_path):
    load_multi30k("train")
    (copy,) = (tmp_path / "cache").rglob("train.de.gz")
    copy.write_bytes(b"damaged")
    assert load_multi30k("train") == PAIRS


def test_offline_without_a_copy_says_which_files_to_put_where(network):
    network.files.clear()
    with pytest.raises(CorpusError) as error:
        load_multi30k("train")
    for part in ("train.de.gz and train.en.gz", URL, "--data-dir", DATA_VARIABLE, "unreachable"):
        assert part in str(error.value)


def test_a_download_with_another_checksum_is_refused_and_not_kept(network, tmp_path):
    network.files["train.de.gz"] = gzip.compress(b"Eine Katze .\nZwei Katzen .\n")
    with pytest.raises(CorpusError, match=SHA256["train.de.gz"]):
        load_multi30k("train")
    assert list((tmp_path / "cache").rglob("*.gz")) == []


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_sees_a_progress_bar(network, monkeypatch, terminal):
    bars = []
    create = pooch.HTTPDownloader.__init__

    def spy(self, progressbar=False, **options):
        bars.append(progressbar)
        create(self, progressbar=progressbar, **options)

    monkeypatch.setattr(pooch.HTTPDownloader, "__init__", spy)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    load_multi30k("train")
    assert bars == [terminal, terminal]


def test_an_unknown_split_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="split='val'; choose 'train', 'validation', 'test_2016"):
        load_multi30k("val")


def test_reading_a_local_folder_does_not_wait_for_the_downloader():
    code = "import sys, minitransformer.data.text.multi30k; print('pooch' in sys.modules)"
    assert in_a_process(code) == "False\n"


@pytest.mark.skipif(not REAL_FOLDER, reason=f"{DATA_VARIABLE} names no folder with Multi30k")
@pytest.mark.parametrize(
    ("split", "count"), [("train", 29_000), ("validation", 1014), ("test_2016_flickr", 1000)]
)
def test_the_real_splits_have_the_published_sizes(monkeypatch, split, count):
    monkeypatch.undo()
    assert SPLITS[split][1] == len(load_multi30k(split, REAL_FOLDER)) == count


@pytest.mark.skipif(not REAL_FOLDER, reason=f"{DATA_VARIABLE} names no folder with Multi30k")
@pytest.mark.parametrize("language", ["de", "en", "fr"])
def test_the_checksums_of_the_real_files_unpacked_are_those_known(monkeypatch, language):
    monkeypatch.undo()
    for stem in ("train", "val", "test_2016_flickr"):
        content = gzip.decompress((REAL_FOLDER / f"{stem}.{language}.gz").read_bytes())
        assert hashlib.sha256(content).hexdigest() == SHA256[f"{stem}.{language}"]
