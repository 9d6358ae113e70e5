"""What is written as others keep it is read as it was; and transformers says the same of it."""

import json
import re
import struct
from dataclasses import replace

import numpy as np
import pytest
import safetensors.numpy
from gguf_file import PIECES, VOCABULARY, small_model

from minitransformer.commands.cli import main
from minitransformer.core.errors import InputError
from minitransformer.data.text.characters import CharacterVocabulary
from minitransformer.runs.weights.hugging_face import read, write

LLAMA = {}
GPT_2 = dict(normalisation="layer-norm", positions="learned", bias="all", num_groups=0)
GPT_2 |= dict(activation="gelu-by-tanh")
MODELS = {
    "a Llama": LLAMA,
    "of halves": dict(rotary_pairs="halves"),
    "of as many groups": dict(num_groups=4, rotary_base=1e5, epsilon=1e-6),
    "of one": dict(num_groups=1, tying="none"),
    "a GPT-2": GPT_2,
    "with another GELU": GPT_2 | dict(activation="gelu", tying="none", num_groups=4),
    "with a SiLU": GPT_2 | dict(activation="silu", epsilon=1e-4),
}
each_model = pytest.mark.parametrize("changes", MODELS.values(), ids=MODELS)
IDS = np.random.default_rng(3).integers(0, len(PIECES), (2, 19))


def written(folder, changes, dtype=np.float32, vocabulary=VOCABULARY):
    model = small_model(**changes).to(dtype=dtype)
    folder.mkdir()
    write(folder, model, vocabulary)
    return model


@each_model
def test_what_is_written_is_read_as_it_was(changes, tmp_path):
    model = written(tmp_path / "a", changes)
    other, vocabulary = read(tmp_path / "a")
    pairs = "halves" if model.config.positions == "rotary" else "neighbours"
    groups = model.config.num_key_groups if pairs == "halves" else 0
    assert other.config == replace(model.config, rotary_pairs=pairs, num_groups=groups,
                                   rotary_base=other.config.rotary_base)  # fmt: skip
    said, expected = (m.to(dtype=np.float64).forward(IDS)[0] for m in (other, model))
    np.testing.assert_allclose(said, expected, rtol=1e-10)
    other.to(dtype=np.float32)
    assert (vocabulary.model, vocabulary.begins) == (VOCABULARY.model, (0,))
    (tmp_path / "b").mkdir()
    write(tmp_path / "b", other, vocabulary)
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        assert (tmp_path / "b" / name).read_bytes() == (tmp_path / "a" / name).read_bytes()


def test_where_another_text_begins_one_may_end(tmp_path):
    """Else a model that was trained on several texts could not say that one has ended."""
    written(tmp_path / "a", LLAMA)
    config = tmp_path / "a" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"eos_token_id": 2}))
    _, vocabulary = read(tmp_path / "a")
    assert (vocabulary.begins, set(vocabulary.ends), vocabulary.never) == ((0,), {0, 2}, (1,))


@pytest.mark.parametrize("kind", ["F16", "BF16", "F64"])
def test_numbers_of_other_types_are_read(kind, tmp_path):
    model = written(tmp_path / "a", LLAMA)
    path = tmp_path / "a" / "model.safetensors"
    arrays = safetensors.numpy.load_file(path)
    if kind == "BF16":
        halves = {n: (x.view("<u4") >> 16).astype("<u2") for n, x in arrays.items()}
        arrays = {n: (x.astype("<u4") << 16).view("<f4") for n, x in halves.items()}
        path.write_bytes(safetensors.numpy.save(halves).replace(b'"U16"', b'"BF16"'))
        length = struct.unpack("<Q", path.read_bytes()[:8])[0]
        path.write_bytes(struct.pack("<Q", length + len(arrays)) + path.read_bytes()[8:])
    else:
        dtype = {"F16": np.float16, "F64": np.float64}[kind]
        arrays = {n: x.astype(dtype) for n, x in arrays.items()}
        safetensors.numpy.save_file(arrays, path)
    embedding = read(tmp_path / "a")[0].embedding.weight.data
    np.testing.assert_array_equal(embedding, arrays["model.embed_tokens.weight"].astype("<f4"))
    np.testing.assert_allclose(embedding, model.embedding.weight.data, rtol=1e-2)


def test_several_files_are_one_model(tmp_path):
    model = written(tmp_path / "a", LLAMA)
    path = tmp_path / "a" / "model.safetensors"
    arrays = list(safetensors.numpy.load_file(path).items())
    path.unlink()
    for i, part in enumerate((arrays[:5], arrays[5:])):
        safetensors.numpy.save_file(dict(part), tmp_path / "a" / f"model-{i}-of-2.safetensors")
    weight = read(tmp_path / "a")[0].embedding.weight.data
    np.testing.assert_array_equal(weight, model.embedding.weight.data)


def test_a_gpt_2_whose_stack_alone_was_stored_is_read(tmp_path):
    model = written(tmp_path / "a", GPT_2)
    path = tmp_path / "a" / "model.safetensors"
    arrays = safetensors.numpy.load_file(path)
    arrays = {name.removeprefix("transformer."): x for name, x in arrays.items()}
    arrays["h.0.attn.bias"] = np.tril(np.ones((1, 1, 64, 64), np.float32))  # the mask
    safetensors.numpy.save_file(arrays, path)
    np.testing.assert_array_equal(read(tmp_path / "a")[0].flat.data, model.flat.data)


def test_a_gpt_2_whose_inner_width_is_null_is_four_times_as_wide_within(tmp_path):
    model = written(tmp_path / "a", GPT_2 | dict(d_ff=256))
    harmed(tmp_path / "a", CONFIG, said(n_inner=None))
    np.testing.assert_array_equal(read(tmp_path / "a")[0].flat.data, model.flat.data)


def harmed(folder, name, change):
    path = folder / name
    content = path.read_bytes()
    path.write_bytes(change(content))
    assert path.read_bytes() != content


def said(**fields):
    return lambda content: json.dumps(json.loads(content) | fields).encode()


CONFIG, ARRAYS = "config.json", "model.safetensors"
HARM = {
    "another model": (CONFIG, said(model_type="bert"), "its model_type is 'bert'"),
    "no model": (CONFIG, lambda c: b"[]", "holds no fields"),
    "no JSON": (CONFIG, lambda c: c[:-5], "is no JSON"),
    "a bias": (CONFIG, said(attention_bias=True), "its attention_bias is True, not False"),
    "wider heads": (CONFIG, said(head_dim=32), "its head_dim is 32, not 16"),
    "turned otherwise": (CONFIG, said(rope_scaling={"rope_type": "yarn"}), "are scaled"),
    "another activation": (CONFIG, said(hidden_act="gelu"), "its hidden_act is 'gelu'"),
    "a text for a number": (CONFIG, said(hidden_size="64"), "is of no model that is read here"),
    "no heads": (CONFIG, said(num_attention_heads=0), "is of no model that is read here"),
    "an end that is none": (CONFIG, said(eos_token_id=[[2]]), "cannot begin or end with"),
    "no layers": (CONFIG, said(num_hidden_layers=0), "num_layers=0 must be"),
    "layers without end": (CONFIG, said(num_hidden_layers=10**9), "num_layers=1000000000 must"),
    "one more": (CONFIG, said(num_hidden_layers=3), "has no model.layers.2."),
    "another width": (CONFIG, said(intermediate_size=97), "numbers, and describes a model of"),
    "more pieces": (CONFIG, said(vocab_size=len(PIECES) + 1), "pieces, and the model"),
    "no projection": (CONFIG, said(tie_word_embeddings=False), "has no lm_head.weight"),
    "half the arrays": (ARRAYS, lambda c: c[: len(c) // 2], "safetensors, or damaged: "),
    "a header without end": (ARRAYS, lambda c: b"\xff" * 8 + c[8:], "is no file of safetensors"),
    "arrays that overlap": (ARRAYS, lambda c: c.replace(b"_offsets\":[0,", b"_offsets\":[4,", 1),
                            "is no file of safetensors"),
    "another type": (ARRAYS, lambda c: c.replace(b'"F32"', b'"I32"', 1), "of the type I32"),
    "another name": (ARRAYS, lambda c: c.replace(b"norm.weight", b"norm.height", 1), "has no "),
    "three other names": (ARRAYS, lambda c: c.replace(b"layers.0.mlp.", b"layers.0.mpl."),
                          "has no model.layers.0.mlp.down_proj.weight, "
                          "model.layers.0.mlp.gate_proj.weight, model.layers.0.mlp.up_proj.weight"),
    "no tokenizer": ("tokenizer.json", lambda c: b"{}", "this is no tokenizer"),
}  # fmt: skip


@pytest.mark.parametrize("case", HARM)
def test_what_is_no_such_folder_is_refused(case, tmp_path):
    written(tmp_path / "a", LLAMA)
    name, change, words = HARM[case]
    harmed(tmp_path / "a", name, change)
    with pytest.raises(InputError, match=re.escape(words)):
        read(tmp_path / "a")


@pytest.mark.parametrize(("changes", "words"), [
    (dict(positions="alibi"), "no llama of theirs has positions='alibi'"),
    (dict(scaled_embedding=True, window=4), "has window=4, scaled_embedding=True"),
    (dict(activation="silu"), "has activation='silu'"),
    (GPT_2 | dict(activation="relu"), "no gpt2 of theirs has activation='relu'"),
    (GPT_2 | dict(num_groups=2), "no gpt2 of theirs has num_groups=2"),
    (GPT_2 | dict(activation="swiglu"), "no gpt2 of theirs has activation='swiglu'"),
    (GPT_2 | dict(norm="post"), "no gpt2 of theirs has norm='post'"),
])  # fmt: skip
def test_a_model_that_others_do_not_have_is_refused_and_nothing_is_written(
    changes, words, tmp_path
):
    with pytest.raises(InputError, match=re.escape(words)):
        written(tmp_path / "a", changes)
    assert not any((tmp_path / "a").iterdir())


def test_the_commands_bring_a_model_in_and_out_again(tmp_path, capsys):
    written(tmp_path / "a", LLAMA)
    run, out = str(tmp_path / "run"), str(tmp_path / "not" / "yet")
    assert main(["import", str(tmp_path / "a"), "--run-folder", run]) == 0
    assert main(["export", run, out]) == 0
    assert f'from_pretrained("{out}")' in capsys.readouterr().err
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        assert (tmp_path / "not/yet" / name).read_bytes() == (tmp_path / "a" / name).read_bytes()
    assert main(["export", run, out]) == 1
    assert "is there already" in capsys.readouterr().err
    assert main(["chat", run, "ab", "--length", "3"]) == 0


def test_a_vocabulary_that_is_ours_is_left_out(tmp_path):
    written(tmp_path / "a", GPT_2, vocabulary=CharacterVocabulary("ab"))
    assert not (tmp_path / "a" / "tokenizer.json").exists()


@pytest.fixture
def theirs(monkeypatch):
    """A function: what transformers makes of a folder, logits of IDS in a type of PyTorch."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    library = pytest.importorskip("transformers", reason="transformers is not installed")

    def logits(folder, dtype):
        model = library.AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype))
        with torch.no_grad():
            return model.eval()(torch.tensor(IDS)).logits.numpy()

    return logits


@pytest.fixture
def without_their_float32(monkeypatch):
    """Their Llama works out norms and angles in float32, whatever the type of the model is."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    pytest.importorskip("transformers", reason="transformers is not installed")
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")

    def norm(self, x):
        return torch.nn.functional.rms_norm(x, x.shape[-1:], self.weight, self.variance_epsilon)

    def angles(self, x, position_ids):
        width, base = 2 * len(self.inv_freq), self.config.rope_parameters["rope_theta"]
        frequencies = base ** (-torch.arange(0, width, 2, dtype=x.dtype) / width)
        turned = (position_ids[..., None] * frequencies).repeat(1, 1, 2)
        return turned.cos(), turned.sin()

    monkeypatch.setattr(llama.LlamaRMSNorm, "forward", norm)
    monkeypatch.setattr(llama.LlamaRotaryEmbedding, "forward", angles)


@each_model
def test_transformers_says_the_same_in_float32(changes, theirs, tmp_path):
    model = written(tmp_path / "a", changes)
    expected, _ = model.forward(IDS)
    assert abs(expected).max() > 1
    np.testing.assert_allclose(theirs(tmp_path / "a", "float32"), expected, rtol=0, atol=1e-4)


@each_model
def test_and_in_float64(changes, theirs, without_their_float32, tmp_path):
    model = written(tmp_path / "a", changes, np.float64)
    expected, _ = model.forward(IDS)
    np.testing.assert_allclose(theirs(tmp_path / "a", "float64"), expected, rtol=0, atol=1e-9)
