import io
import os
import subprocess
import sys
import time
from functools import partial
from types import SimpleNamespace

import pytest
from run_files import is_png
from tiny_translator import captions

from minitransformer.commands.cli import main
from minitransformer.inference.translator import Translator

GERMAN, ENGLISH = zip(*captions(), strict=True)


@pytest.fixture
def translate(used):
    return partial(used, "translate")


@pytest.mark.parametrize(("arguments", "texts"), [
    ("RUN -- -Hund --x --", ["-Hund", "--x", "--"]),
    ("RUN --beam-size 1 -- -Hund --x --", ["-Hund", "--x", "--"]),
    ("--beam-size 1 RUN -- -Hund --x --", ["-Hund", "--x", "--"]),
    ("--beam-size 1 -- RUN -Hund --x --", ["-Hund", "--x", "--"]),
    ("-- RUN -Hund --x --", ["-Hund", "--x", "--"]),
    ("RUN Frau --beam-size 1 -- --alpha --", ["Frau", "--alpha", "--"]),
    ("RUN Frau --beam-size 1 Kind --alpha 1 -- -1 Hund", ["Frau", "Kind", "-1", "Hund"]),
])  # fmt: skip
def test_after_two_dashes_everything_is_text(run_folder, arguments, texts, monkeypatch):
    said = []
    translate = "minitransformer.commands.translate.answer"
    monkeypatch.setattr(translate, lambda options, *_, **__: said.extend(options.text))
    arguments = [str(run_folder) if word == "RUN" else word for word in arguments.split()]
    main(["translate", *arguments])
    assert said == texts


@pytest.mark.skipif(os.name != "posix", reason="arguments are no bytes elsewhere")
def test_a_translation_is_the_same_in_any_locale(run_folder):
    command = [sys.executable, "-m", "minitransformer", "translate", run_folder, "--beam-size", "1"]
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [*map(os.fsencode, command), "heute läuft ein Hund im Park".encode()],
        env=os.environ | ascii_only,
        capture_output=True,
        check=True,
    )
    assert done.stdout.decode() == "a dog runs in the park today\n"


def test_there_is_one_line_of_output_for_one_of_input(translate):
    """A form feed ends no line."""
    stdin = f"\n{GERMAN[0]}\r\n \n\f\n\r\n{GERMAN[1]}".encode()
    assert translate(stdin=b"\n") == (0, "\n", "")
    assert translate(stdin=stdin) == (0, f"\n{ENGLISH[0]}\n\n\n\n{ENGLISH[1]}\n", "")


def arriving(chunks):
    """A standard input that is a pipe, with what its reader gets each time it looks."""
    chunks = iter(chunks)
    pipe = SimpleNamespace(read1=lambda size: next(chunks, b""))
    return SimpleNamespace(isatty=lambda: False, buffer=pipe)


def test_whoever_waits_for_an_answer_before_the_next_line_gets_it(run_folder, monkeypatch):
    stdout = io.TextIOWrapper(io.BytesIO())
    sent = "ein Hund läuft im Park\nwir".encode()
    amid_a_letter = sent.index("ä".encode()) + 1

    def chunks():
        yield sent[:amid_a_letter]
        yield sent[amid_a_letter:]
        assert stdout.buffer.getvalue() == b"a dog runs in the park\n"
        yield b" singt zu Hause\n"
        assert stdout.buffer.getvalue() == b"a dog runs in the park\nwe sings at home\n"

    monkeypatch.setattr("sys.stdin", arriving(chunks()))
    monkeypatch.setattr("sys.stdout", stdout)
    assert main(["translate", str(run_folder)]) == 0


def test_lines_are_counted_on_however_they_arrive(run_folder, monkeypatch, capsys):
    chunks = [b"Hund\nHund\nHu", b"nd\n", b"Hund " * 2000 + b"\nHund\n", b"\xe4\n"]
    monkeypatch.setattr("sys.stdin", arriving(chunks))
    assert main(["translate", str(run_folder)]) == 1
    captured = capsys.readouterr()
    assert captured.out.count("\n") == 6
    assert captured.err.startswith("minitransformer: text 4 is too long")
    assert "\nminitransformer: text 6: byte 0xe4" in captured.err


def test_what_is_piped_through_is_utf8_whatever_the_locale(translate, monkeypatch):
    stdout = io.TextIOWrapper(io.BytesIO(), "ascii")
    monkeypatch.setattr("sys.stdout", stdout)
    translate(stdin=GERMAN[0].encode())
    assert (stdout.encoding, stdout.buffer.getvalue()) == ("utf-8", f"{ENGLISH[0]}\n".encode())


def test_a_line_of_megabytes_arrives_whole(run_folder, monkeypatch, capsys):
    """However small the parts: put together one by one, they would be copied again and again."""
    parts = [f"{GERMAN[0]} ".encode(), *[b" " * 2**16] * 1000, f"\n{GERMAN[1]}\n".encode()]
    monkeypatch.setattr("sys.stdin", arriving(parts))
    began = time.process_time()
    assert main(["translate", str(run_folder)]) == 0
    assert time.process_time() - began < 5
    assert capsys.readouterr().out == f"{ENGLISH[0]}\n{ENGLISH[1]}\n"


def test_the_n_best_come_with_their_text_and_score(translate):
    status, out, _ = translate("--n-best", 2, GERMAN[0], " ", GERMAN[1])
    assert status == 0
    rows = [line.split("\t") for line in out.splitlines()]
    assert [number for number, _, _ in rows] == ["1", "1", "2", "3", "3"]
    assert [rows[0][2], rows[2][2], rows[3][2]] == [ENGLISH[0], "", ENGLISH[1]]
    scores = [float(score) for _, score, _ in rows]
    assert scores[1] < scores[0] < 0
    assert scores[2] == 0
    assert translate(GERMAN[0], "--beam-size", 80, "--alpha", 100)[0] == 0  # the widest, highest


def test_alpha_and_beam_size_reach_the_search(translate, monkeypatch):
    calls = []
    translations = Translator.translations

    def noted(self, texts, **options):
        calls.append(options)
        return translations(self, texts, **options)

    monkeypatch.setattr(Translator, "translations", noted)
    translate(GERMAN[0])
    translate("--beam-size", 7, "--alpha", 1.5, "--n-best", 2, GERMAN[0])
    assert calls == [
        dict(beam_size=4, alpha=0.6, n_best=1, attention=False),
        dict(beam_size=7, alpha=1.5, n_best=2, attention=False),
    ]


def test_attention_of_one_text_is_drawn_into_the_file(translate, tmp_path):
    path = tmp_path / "out.png"
    status, out, error = translate("--attention", path, GERMAN[0])
    assert (status, out) == (0, f"{ENGLISH[0]}\n")
    assert error == f"minitransformer: attention drawn: {path}\n"
    assert is_png(path)
    assert [file.name for file in tmp_path.iterdir() if file.is_file()] == ["out.png"]


@pytest.mark.parametrize("how", ["arguments", "standard input"])
def test_attention_of_several_texts_is_drawn_into_numbered_files(translate, tmp_path, how):
    path = tmp_path / "out.svg"
    if how == "arguments":
        status, _, error = translate(GERMAN[0], "", GERMAN[1], "--attention", path)
    else:
        stdin = f"{GERMAN[0]}\n\n{GERMAN[1]}\n".encode()
        status, _, error = translate("--attention", path, stdin=stdin)
    assert status == 0
    assert {file.name for file in tmp_path.glob("out*")} == {"out-1.svg", "out-3.svg"}
    assert "text 2 is blank; there is nothing to draw" in error


@pytest.mark.parametrize(("flags", "awake"), [([], True), (["--no-accelerate"], False)])
def test_the_twins_can_be_turned_off(translate, monkeypatch, flags, awake):
    seen, kept = [], []
    load, texts = Translator.load, "minitransformer.commands.texts"
    monkeypatch.setattr(Translator, "load", lambda *a, **k: seen.append(k) or load(*a, **k))
    monkeypatch.setattr(f"{texts}.keep_freed_memory", lambda: kept.append(True))
    assert translate("--device", "cpu", GERMAN[0], *flags)[0] == 0
    assert seen == [{"accelerate": awake}]
    assert bool(kept) == awake  # an affair of the faster path, too
