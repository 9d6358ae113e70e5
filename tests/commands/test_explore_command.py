import hashlib
import json
import os
import re
import shutil
import webbrowser

import llama2c_file
import pytest
from run_files import edit_config

from minitransformer.commands.cli import main
from minitransformer.data.text.toy import toy_corpus
from minitransformer.explorer import stored
from minitransformer.runs.run_folder import RunFolder


@pytest.fixture(autouse=True)
def opened(monkeypatch):
    """The addresses that a browser was asked for."""
    addresses = []
    monkeypatch.setattr(webbrowser, "open", lambda address: addresses.append(address) or True)
    return addresses


def contents(path):
    page = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'id="model">(.*?)</script>', page)[1])


@pytest.fixture
def explored(run_copy, said):
    """A function: what is in the page of ``run_copy``, or of another run, written with options."""

    def explore(*options, run=run_copy):
        said("explore", run, *options)
        return contents(run / "explorer.html")

    return explore


def test_the_page_is_written_into_the_run_folder_and_opened(run_copy, opened, said):
    page = run_copy / "explorer.html"
    assert said("explore", run_copy).out == f"{page}\n"
    assert opened == [page.as_uri()]
    assert page.read_text(encoding="utf-8").endswith("</html>\n")


@pytest.mark.parametrize("browser", ["not found", "not starting"])
def test_without_a_browser_the_page_is_written(browser, run_copy, monkeypatch, said):
    def opening(address):
        if browser == "not starting":
            raise webbrowser.Error("could not locate runnable browser")
        return False

    monkeypatch.setattr(webbrowser, "open", opening)
    printed = said("explore", run_copy)
    assert printed.out == f"{run_copy / 'explorer.html'}\n"
    assert "no browser was found" in printed.err


def test_what_is_no_regular_file_is_not_replaced(run_copy, tmp_path, refused):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    error = refused("explore", run_copy, "--output", pipe, status=2)
    assert "cannot be written: it is no regular file" in error
    assert pipe.is_fifo()


def test_options_say_where_it_is_written_and_which_sentences_it_has(run_copy, opened, said):
    """And of a run on a learner's functions it says that the page has the package's."""
    (run_copy / "own.py").write_text("def relu(x):\n    return x, None\n")
    config = run_copy / "config.json"
    config.write_text(config.read_text().replace('"anyway": null', '"anyway": false'))
    page, sentences = run_copy.parent / "page.html", run_copy.parent / "mine.txt"
    sentences.write_text("das Kind\fsingt\n\n  \n</script>\n", encoding="utf-8")
    options = ["--output", page, "--no-open", "--sentences", sentences]
    error = said("explore", run_copy, *options).err
    assert contents(page)["examples"] == [
        "das Kind\fsingt",  # one, as in every other file
        "</script>",
    ]
    assert opened == []
    assert not (run_copy / "explorer.html").exists()
    assert error.count("on functions of a learner's; the page computes with the package's") == 1
    assert f"with --own FILE it shows those of a file, such as {run_copy / 'own.py'}\n" in error


def test_of_an_unfinished_training_it_is_said_whose_parameters_the_page_has(run_copy, said):
    (run_copy / "model.npz").unlink()
    told = "this training is not finished; the parameters are those of step-"
    assert told in said("explore", run_copy, "--no-open").err


def test_no_text_but_that_of_the_toy_corpus_enters_a_page_unasked(run_copy, explored):
    """The page may be given away, and the folder may be from elsewhere and name any file."""
    found = explored()
    assert (found["corpus"], found["label_smoothing"]) == ("files", 0.1)
    assert (found["examples"], found["words"]) == ([], None)
    changes = dict(data={"corpus": "toy"}, training={"label_smoothing": 0.2})
    edit_config(run_copy, lambda sections: sections["recipe"].update(changes))
    found = explored()
    assert (found["corpus"], found["label_smoothing"]) == ("toy", 0.2)
    assert found["examples"] == [german for german, _ in toy_corpus()["validation"][:12]]
    spoken = " ".join(german for german, _ in toy_corpus()["train"])
    assert found["words"] == sorted(set(re.findall(r"\w+", spoken)))


def test_of_a_model_of_others_no_corpus_is_named(tmp_path, explored):
    (tmp_path / "model.bin").write_bytes(llama2c_file.model_file(llama2c_file.small_model()))
    (tmp_path / "vocabulary.bin").write_bytes(llama2c_file.vocabulary_file())
    run = tmp_path / "run"
    files = [str(tmp_path / "model.bin"), "--vocabulary", str(tmp_path / "vocabulary.bin")]
    assert main(["import", *files, "--run-folder", str(run)]) == 0
    found = explored("--no-open", run=run)
    assert (found["corpus"], found["label_smoothing"]) == ("", 0.0)


OWN = """
def helper(x):
    return x

def softmax(x, mask=None):
    raise NotImplementedError

def relu(x):
    # </script> of a learner's
    return {y}, x > 0

def relu_backward(dy, cache):
    return dy * cache
"""


@pytest.fixture
def with_own(run_copy, tmp_path):
    """A function: a command line that makes a page of the run with these functions."""
    (tmp_path / "sentences").write_text("bao gi ku\ndu\nbao\nku du gi\n", encoding="utf-8")

    def line(source):
        own = tmp_path / "mine.py"
        own.write_text(source)
        return "explore", run_copy, "--own", own, "--sentences", tmp_path / "sentences"

    return line


@pytest.fixture
def own_of(run_copy, with_own, said):
    """A function: what is said of these functions, and what of them is in the page."""

    def explore(source):
        return said(*with_own(source)).err, contents(run_copy / "explorer.html")["own"]

    return explore


def test_a_learner_s_functions_are_shown_and_compared(own_of):
    right, shown = own_of(OWN.format(y="x * (x > 0)"))
    assert "0 of 4 sentences are translated otherwise by " in right
    assert shown["sources"].keys() == {"relu", "relu_backward"}
    assert shown["sources"]["relu"].startswith("def relu(x):\n    # </script>")
    assert shown["sources"]["relu"].endswith("return x * (x > 0), x > 0")
    assert (shown["file"], shown["compared"], shown["differ"]) == ("mine.py", 4, 0)
    wrong, shown = own_of(OWN.format(y="-x"))
    assert f"{shown['differ']} of 4 sentences are translated otherwise by " in wrong
    assert shown["differ"] > 0


def test_a_certificate_is_shown_with_the_functions_that_it_is_of(own_of, run_copy):
    source = OWN.format(y="x * (x > 0)")
    fingerprint = hashlib.sha256(source.encode()).hexdigest()
    certificate = f"# Yours\n- SHA-256 of own.py: {fingerprint}\n"
    (run_copy / "certificate.md").write_text(certificate)
    assert own_of(source)[1]["certificate"] == certificate
    assert own_of(f"{source}\n")[1]["certificate"] is None


@pytest.mark.parametrize(("source", "says"), [
    ("def relu(x):\n    return 1 / 0, x\ndef relu_backward(dy, c): return dy\n", "relu"),
    ("nonsense", "nonsense"),
])  # fmt: skip
def test_functions_that_fail_write_no_page(run_copy, with_own, refused, source, says):
    assert says in refused(*with_own(source))
    assert not (run_copy / "explorer.html").exists()


@pytest.mark.parametrize(("name", "kind", "unit"), [
    ("generate", "language-model", "characters"),
    ("generate subwords", "language-model", "subwords"),
    ("fill", "masked-language-model", "subwords and a mask"),
])  # fmt: skip
def test_what_goes_on_with_texts_or_fills_them_has_a_page(name, kind, unit, runs, tmp_path, said):
    page = tmp_path / "page.html"
    said("explore", runs[name], "--output", page, "--no-open")
    found = contents(page)
    assert (found["config"]["kind"], found["vocabulary"]["unit"]) == (kind, unit)
    assert (found["examples"], found["languages"]) == ([], None)


@pytest.mark.parametrize(("name", "changed"), [
    ("generate", lambda words: words[: len(words) // 2]),
    ("fill", lambda words: [*words[: len(words) // 2], "___", *words[len(words) // 2 + 1 :]]),
])  # fmt: skip
def test_of_the_toy_corpus_it_begins_with_beginnings_or_with_gaps(
    name, changed, runs, tmp_path, explored
):
    run = shutil.copytree(runs[name], tmp_path / "run")
    edit_config(run, lambda sections: sections["recipe"].update(data={"corpus": "toy"}))
    found = explored("--no-open", run=run)
    sentences = [english for _, english in toy_corpus()["validation"][:12]]
    assert found["examples"] == [" ".join(changed(sentence.split())) for sentence in sentences]
    assert found["languages"] == ["en", "en"]


def test_the_epochs_that_a_run_has_kept_enter_a_page_if_asked(run_copy, explored, said, refused):
    assert explored()["epochs"] == []
    told = said("explore", run_copy, "--epochs").err
    kept = [int(path.stem.split("-")[1]) for path in RunFolder(run_copy).epoch_files()]
    epochs = contents(run_copy / "explorer.html")["epochs"]
    assert [entry["epoch"] for entry in epochs] == kept != []
    assert f"the slider has the {len(kept)} epochs that the run has kept" in told
    for path in RunFolder(run_copy).epoch_files():
        path.unlink()
    assert "has kept the parameters of no epoch" in refused("explore", run_copy, "--epochs")


def test_of_a_rounded_model_it_is_said_how_many_sentences_it_translates_otherwise(
    run_copy, tmp_path, said, monkeypatch
):
    sentences = tmp_path / "sentences"
    sentences.write_text("bao gi ku\ndu\n", encoding="utf-8")
    assert "8 bits" not in said("explore", run_copy, "--sentences", sentences).err
    monkeypatch.setattr(stored, "LARGEST_FLOAT32", 0)
    told = said("explore", run_copy, "--sentences", sentences).err
    assert "rounded to 8 bits; its model translates 0 of 2 sentences otherwise" in told
    in_8_bits = stored.in_8_bits
    monkeypatch.setattr(stored, "in_8_bits", lambda numbers: in_8_bits(-numbers))
    told = said("explore", run_copy, "--sentences", sentences).err
    assert re.search("translates [12] of 2 sentences otherwise", told)
    assert "if --sentences gives some" in said("explore", run_copy).err
