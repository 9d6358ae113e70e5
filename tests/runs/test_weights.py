"""Weights of others: what is read says the same here, and what is no such file is refused."""

import os
import re
import struct
from contextlib import suppress
from pathlib import Path

import llama2c_file
import numpy as np
import pytest

from minitransformer.commands.cli import main
from minitransformer.core.errors import InputError
from minitransformer.data.text.scored import ScoredVocabulary
from minitransformer.inference import generator
from minitransformer.runs.weights.llama2c import read_model, read_vocabulary

SIZE = len(llama2c_file.SPECIAL) + len(llama2c_file.PIECES)
MODEL = llama2c_file.small_model()
HEADER = struct.unpack("<7i", llama2c_file.model_file(MODEL)[:28])


def written(folder, content, name="model.bin"):
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("changes", [{}, dict(tying="none"), dict(num_groups=4)])
def test_a_model_of_llama2c_says_what_it_said(changes, tmp_path):
    model = llama2c_file.small_model(**changes)
    other = read_model(written(tmp_path, llama2c_file.model_file(model)))
    assert other.config == model.config
    np.testing.assert_array_equal(other.flat.data, model.flat.data)
    ids = np.random.default_rng(0).integers(1, SIZE, (2, 9))
    np.testing.assert_array_equal(other.forward(ids)[0], model.forward(ids)[0])


def header(**changes):
    names = "width", "inner", "layers", "heads", "groups", "vocabulary", "length"
    return struct.pack("<7i", *(dict(zip(names, HEADER, strict=True)) | changes).values())


WHOLE = llama2c_file.model_file(MODEL)
NO_MODEL = {
    "nothing": (b"", "ends within its header"),
    "half a header": (WHOLE[:20], "ends within its header"),
    "a byte less": (WHOLE[:-1], "not all of it: its header asks for"),
    "an entry more": (WHOLE + bytes(4), "not all of it: its header asks for"),
    "a text": (b"Once upon a time there was a model", "its header has the sizes"),
    "no layers": (header(layers=0) + WHOLE[28:], "has the sizes 8, 12, 0, 4, 2, "),
    "fewer than none": (header(inner=-12) + WHOLE[28:], "has the sizes 8, -12, "),
    "more than there is memory": (header(inner=2**20) + WHOLE[28:], "asks for"),
    "far more": (header(width=2**31 - 1) + WHOLE[28:], "has the sizes 2147483647"),
    "the least vocabulary": (header(vocabulary=-(2**31)) + WHOLE[28:], "2147483648"),
    "heads that do not divide": (header(heads=3) + WHOLE[28:], "not divisible by num_heads=3"),
    "groups that do not divide": (header(groups=3) + WHOLE[28:], "divisible by num_groups=3"),
    "heads of an odd width": (header(heads=8, groups=8) + WHOLE[28:], "makes heads 1 wide"),
    "more layers than there are": (header(layers=3) + WHOLE[28:], "asks for"),
    "layers without end": (header(layers=1001) + WHOLE[28:], "num_layers=1001 must be 1000 at"),
}


@pytest.mark.parametrize("case", NO_MODEL)
def test_what_is_no_model_is_refused_before_memory_is_taken(case, tmp_path):
    content, words = NO_MODEL[case]
    path = written(tmp_path, content)
    with pytest.raises(InputError, match=re.escape(words)) as refused:
        read_model(path)
    assert str(path) in str(refused.value)


VOCABULARY = llama2c_file.vocabulary_file()
NO_VOCABULARY = {
    "nothing": (b"", SIZE, "ends within piece 0"),
    "a byte less": (VOCABULARY[:-1], SIZE, f"ends within piece {SIZE - 1}"),
    "a piece more": (VOCABULARY, SIZE - 1, "more follows the last one"),
    "a piece less": (VOCABULARY, SIZE + 1, f"ends within piece {SIZE}"),
    "a length below 0": (VOCABULARY[:8] + struct.pack("<i", -5), SIZE, "ends within piece 0"),
    "bytes alone": (llama2c_file.vocabulary_file(llama2c_file.SPECIAL, [0.0] * 259), 259,
                    "more than 259 pieces"),
    "a score that is none": (llama2c_file.vocabulary_file(scores=[np.nan] * SIZE), SIZE,
                             "a number for each"),
}  # fmt: skip


@pytest.mark.parametrize("case", NO_VOCABULARY)
def test_what_is_no_vocabulary_is_refused(case, tmp_path):
    content, size, words = NO_VOCABULARY[case]
    with pytest.raises(InputError, match=re.escape(words)):
        read_vocabulary(written(tmp_path, content), size)


def test_whatever_happens_to_the_files_they_are_read_or_refused(fuzz_cases, tmp_path):
    for seed in fuzz_cases(200):
        rng = np.random.default_rng(seed)
        for content, read in ((WHOLE, read_model), (VOCABULARY, read_pieces)):
            harmed = bytearray(content)
            for at in rng.integers(0, rng.choice([40, len(content)]), rng.integers(1, 4)):
                harmed[at] = rng.integers(256)
            path = written(tmp_path, bytes(harmed[: rng.choice([len(content), 500])]))
            with suppress(InputError):
                read(path)


def read_pieces(path):
    return read_vocabulary(path, SIZE)


def imported(folder):
    model = written(folder, WHOLE)
    vocabulary = written(folder, VOCABULARY, "vocabulary.bin")
    return [
        "import",
        str(model),
        "--vocabulary",
        str(vocabulary),
        "--run-folder",
        str(folder / "run"),
    ]


def test_an_imported_model_goes_on_with_texts_and_says_where_it_is_from(tmp_path, capsys):
    assert main(imported(tmp_path)) == 0
    assert f"generate {tmp_path / 'run'}" in capsys.readouterr().err
    how = ["--temperature", "0", "--length", "5"]
    assert main(["generate", str(tmp_path / "run"), "ab c", *how]) == 0
    vocabulary = read_vocabulary(tmp_path / "vocabulary.bin", SIZE)
    ids = [1, *vocabulary.encode("ab c")]
    for _ in range(5):
        logits, _ = MODEL.forward(np.array([ids]))
        logits[:, :, 0] = -np.inf  # what no text has
        ids.append(int(logits[0, -1].argmax()))
    said = vocabulary.decode(ids[1:]) if not {1, 2} & {*ids[1:]} else None
    assert said is not None
    assert capsys.readouterr().out == f"{said}\n"
    assert main(["info", str(tmp_path / "run")]) == 0
    assert "imported, trained elsewhere" in capsys.readouterr().out
    assert main(imported(tmp_path)) == 1
    assert "holds a run already" in capsys.readouterr().err


def test_a_character_of_several_bytes_is_shown_when_it_is_whole(monkeypatch):
    """Of a model that says "é日" byte by byte, and then a byte that no character begins with."""
    said = [3 + b for b in "é日".encode()] + [3 + 0xFF, 1]

    class Decoder:
        def step(self, ids):
            return np.eye(SIZE)[said.pop(0)]

    monkeypatch.setattr(generator, "text_decoder_for", lambda model: Decoder())
    vocabulary = ScoredVocabulary(llama2c_file.ALL, llama2c_file.ALL_SCORES)
    bits = generator.TextGenerator(MODEL, vocabulary).stream("a", temperature=0)
    assert list(bits) == ["é", "日"]


def test_stories260k_tells_its_story(tmp_path, capsys):
    folder = Path(os.environ.get("MINITRANSFORMER_DATA", "."), "stories260K")
    if not folder.is_dir():
        pytest.skip("stories260K is not in the folder that MINITRANSFORMER_DATA names")
    files = str(folder / "stories260K.bin"), "--vocabulary", str(folder / "tok512.bin")
    assert main(["import", *files, "--run-folder", str(tmp_path / "run")]) == 0
    how = ["--temperature", "0", "--length", "57"]
    assert main(["generate", str(tmp_path / "run"), "Zoo", *how]) == 0
    assert capsys.readouterr().out == (
        "Zoo was a little girl named Lily. She loved to play outside in the park. One day, she saw "
        "a big, red ball. She wanted to play with it, but she didn't want to play with\n"
    )
