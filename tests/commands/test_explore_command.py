import json
import os
import re
import webbrowser

import pytest
from run_files import edit_config

from minitransformer.commands.cli import main
from minitransformer.data.text.toy import toy_corpus


@pytest.fixture(autouse=True)
def opened(monkeypatch):
    """The addresses that a browser was asked for."""
    addresses = []
    monkeypatch.setattr(webbrowser, "open", lambda address: addresses.append(address) or True)
    return addresses


def examples(path):
    page = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'id="model">(.*?)</script>', page)[1])["examples"]


def test_the_page_is_written_into_the_run_folder_and_opened(run_copy, opened, capsys):
    assert main(["explore", str(run_copy)]) == 0
    page = run_copy / "explorer.html"
    assert capsys.readouterr().out == f"{page}\n"
    assert opened == [page.as_uri()]
    assert page.read_text(encoding="utf-8").endswith("</html>\n")


def test_of_a_run_on_own_functions_it_says_that_the_page_has_the_package_s(run_copy, capsys):
    (run_copy / "own.py").write_text("def relu(x):\n    return x, None\n")
    assert main(["explore", str(run_copy)]) == 0
    said = capsys.readouterr().err
    assert said.count("on functions of a learner's; the page computes with the package's") == 1


@pytest.mark.parametrize("browser", ["not found", "not starting"])
def test_without_a_browser_the_page_is_written(browser, run_copy, monkeypatch, capsys):
    def opening(address):
        if browser == "not starting":
            raise webbrowser.Error("could not locate runnable browser")
        return False

    monkeypatch.setattr(webbrowser, "open", opening)
    assert main(["explore", str(run_copy)]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"{run_copy / 'explorer.html'}\n"
    assert "no browser was found" in printed.err


def test_what_is_no_regular_file_is_not_replaced(run_copy, tmp_path, capsys):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(SystemExit, match="2"):
        main(["explore", str(run_copy), "--output", str(pipe)])
    assert "cannot be written: it is no regular file" in capsys.readouterr().err
    assert pipe.is_fifo()


def test_it_is_written_where_it_should_be_and_not_opened(run_copy, opened, tmp_path):
    page = tmp_path / "page.html"
    assert main(["explore", str(run_copy), "--output", str(page), "--no-open"]) == 0
    assert opened == []
    assert page.exists()
    assert not (run_copy / "explorer.html").exists()


def test_sentences_are_those_of_a_file(run_copy):
    sentences = run_copy.parent / "mine.txt"
    sentences.write_text("das Kind singt\n\n  \n</script>\n", encoding="utf-8")
    assert main(["explore", str(run_copy), "--sentences", str(sentences)]) == 0
    assert examples(run_copy / "explorer.html") == ["das Kind singt", "</script>"]


def test_no_text_but_that_of_the_toy_corpus_enters_a_page_unasked(run_copy):
    """The page may be given away, and the folder may be from elsewhere and name any file."""
    page = run_copy / "explorer.html"
    assert main(["explore", str(run_copy)]) == 0
    assert examples(page) == []
    edit_config(run_copy, lambda sections: sections["recipe"].update(data={"corpus": "toy"}))
    assert main(["explore", str(run_copy)]) == 0
    assert examples(page) == [german for german, _ in toy_corpus()["validation"][:12]]


@pytest.mark.parametrize(("change", "message"), [
    ({"kind": "restricted", "window": 3}, "this is a model of kind 'restricted'"),
    ({"d_model": 1024, "d_ff": 4096}, "and 12,000,000 are the most"),
])  # fmt: skip
def test_what_no_page_can_hold_is_refused_before_it_is_loaded(run_copy, capsys, change, message):
    edit_config(run_copy, lambda sections: sections["model"].update(change))
    assert main(["explore", str(run_copy)]) == 1
    assert message in capsys.readouterr().err
    assert not (run_copy / "explorer.html").exists()
