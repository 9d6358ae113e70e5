"""A model in a file of GGUF says what it said, and what is no such file is refused."""

import re
import struct
from contextlib import suppress

import gguf
import gguf_file
import numpy as np
import pytest
from gguf.constants import MODEL_ARCH, MODEL_TENSORS, TENSOR_NAMES

from minitransformer.core.errors import InputError
from minitransformer.runs.weights.gguf import GGUF
from minitransformer.runs.weights.gguf_models import read
from minitransformer.runs.weights.names import GGUF_GPT_2, GGUF_LLAMA

MODEL = gguf_file.small_model()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The bytes of a file."""
    path = tmp_path_factory.mktemp("whole") / "model.gguf"
    return gguf_file.written(path, MODEL).read_bytes()


@pytest.fixture
def refused(tmp_path):
    """What is said of a file with these bytes."""

    def said(content):
        path = tmp_path / "harmed.gguf"
        path.write_bytes(content)
        with pytest.raises(InputError) as caught:
            read(path)
        assert str(path) in str(caught.value)
        return str(caught.value)

    return said


LLAMA, GPT_2 = gguf_file.small_model, gguf_file.small_gpt_2


@pytest.mark.parametrize(
    ("made", "changes"),
    [
        *((LLAMA, c) for c in ({}, dict(tying="none"), dict(num_groups=4), dict(epsilon=1e-6))),
        *((GPT_2, c) for c in ({}, dict(tying="none"), dict(epsilon=1e-6))),
    ],
)
def test_a_model_says_what_it_said(made, changes, tmp_path):
    model = made(**changes)
    other, vocabulary = read(gguf_file.written(tmp_path / "model.gguf", model))
    assert other.config == model.config
    np.testing.assert_array_equal(other.flat.data, model.flat.data)
    assert vocabulary.pieces(range(len(vocabulary))) == gguf_file.PIECES
    assert (vocabulary.begins, vocabulary.ends, vocabulary.never) == ((0,), (0, 2), (1,))


def test_tensors_begin_at_a_multiple_of_the_alignment_wherever_the_fields_end(tmp_path):
    model = gguf_file.small_model(vocabulary_size=len(gguf_file.PIECES) + 1)
    types = [3] * 3 + [1] * (len(gguf_file.PIECES) - 2)
    for length in range(1, 33):
        tokens = [*gguf_file.PIECES, "x" * length + "y"]
        path = gguf_file.written(tmp_path / "model.gguf", model, tokens=tokens, types=types)
        np.testing.assert_array_equal(read(path)[0].flat.data, model.flat.data)


@pytest.mark.parametrize(("added", "begins"), [(True, (1,)), (False, (0,))])
def test_a_text_begins_after_what_the_tokenizer_adds(added, begins, tmp_path):
    path = gguf_file.written(tmp_path / "model.gguf", gguf_file.small_model(), add_bos=added)
    assert read(path)[1].begins == begins


@pytest.mark.parametrize(("kind", "names"), [("LLAMA", GGUF_LLAMA), ("GPT2", GGUF_GPT_2)])
def test_names_are_those_of_its_package(kind, names):
    known = {TENSOR_NAMES[t].replace("{bid}", "{}") for t in MODEL_TENSORS[MODEL_ARCH[kind]]}
    assert {name.rpartition(".")[0] for name in names.table} <= known


@pytest.mark.parametrize("kind", ["F16", "BF16", "Q8_0", "Q4_1", "Q4_0", "Q5_1", "Q5_0"])
def test_blocks_of_few_bits_are_what_its_package_says(kind, tmp_path):
    path = gguf_file.written(tmp_path / "model.gguf", MODEL, {"ffn_down.weight": kind})
    other, _ = read(path)
    parameters = dict(MODEL.named_parameters())
    for name, parameter in other.named_parameters():
        before = parameters[name].data
        if name.endswith("w_down"):
            packed = gguf.quantize(before.T.copy(), gguf.GGMLQuantizationType[kind])
            before = gguf.dequantize(packed, gguf.GGMLQuantizationType[kind]).T
            assert not np.array_equal(before, parameters[name].data)
        np.testing.assert_array_equal(parameter.data, before)


def put(content, at, code, *values):
    harmed = bytearray(content)
    struct.pack_into(f"<{code}", harmed, at, *values)
    return bytes(harmed)


def after(content, words):
    """Where what follows these words begins."""
    return content.index(words) + len(words)


QUERY = b"blk.0.attn_q.weight"  # behind it: axes (4 bytes), two sizes, a type (4), its place
LIES = {
    "nothing": (lambda c: b"", "it is empty"),
    "a text": (lambda c: b"Once upon a time", "it begins with other bytes"),
    "half a header": (lambda c: c[:20], "it ends before its tensors begin"),
    "another version": (lambda c: put(c, 4, "I", 1), "its version is 1"),
    "the other byte order": (lambda c: put(c, 4, "I", 3 << 24), "its version is 50331648"),
    "fields without end": (lambda c: put(c, 16, "Q", 2**60), "it ends before its tensors begin"),
    "tensors without end": (lambda c: put(c, 8, "Q", 2**60), "it ends before its tensors begin"),
    "strings without end": (lambda c: put(c, after(c, b"tokenizer.ggml.tokens") + 8, "Q", 2**60),
                            "it ends before its tensors begin"),
    "numbers without end": (lambda c: put(c, after(c, b"ggml.token_type") + 8, "Q", 2**62),
                            "it ends before its tensors begin"),
    "a string that is longer": (lambda c: put(c, after(c, b"general.architecture") + 4, "Q", 2**63),
                                "it ends before its tensors begin"),
    "an array of arrays": (lambda c: put(c, after(c, b"ggml.token_type") + 4, "I", 9),
                           "it has an array of the type 9"),
    "an unknown value": (lambda c: put(c, after(c, b"llama.block_count"), "I", 77),
                         "it has a value of the type 77"),
    "no text": (lambda c: c.replace(b"llama.block_count", b"llama.block_coun\xff"), "codec"),
    "a field twice": (lambda c: c.replace(b"llama.context_length", b"llama.rope.freq_base"),
                      "'llama.rope.freq_base' twice"),
    "a tensor twice": (lambda c: c.replace(b"blk.1.attn_q", b"blk.0.attn_q"),
                       "'blk.0.attn_q.weight' twice"),
    "a tensor without axes": (lambda c: put(c, after(c, QUERY), "I", 0), "has 0 axes"),
    "a tensor of many": (lambda c: put(c, after(c, QUERY), "I", 2**31), "axes"),
    "a tensor beyond the end": (lambda c: put(c, after(c, QUERY) + 24, "Q", 2**40),
                                "a tensor at 1,099,"),
    "one that overflows": (lambda c: put(c, after(c, QUERY) + 4, "Q", 2**63), "and a tensor at"),
    "an unknown type": (lambda c: put(c, after(c, QUERY) + 20, "I", 999), "999"),
    "two that overlap": (lambda c: put(c, after(c, b"blk.1.attn_q.weight") + 24, "Q",
                                       *struct.unpack_from("<Q", c, after(c, QUERY) + 24)),
                         "two of its tensors overlap"),
    "a byte less": (lambda c: c[: len(c) - 40], "it ends at"),
}  # fmt: skip


@pytest.mark.parametrize("case", LIES)
def test_a_file_that_lies_is_refused(case, whole, refused):
    harm, words = LIES[case]
    content = harm(whole)
    assert content != whole
    said = refused(content)
    assert "is no file of GGUF" in said
    assert re.search(words, said), said


ANOTHER = {
    "another architecture": (dict(architecture="qwen2"), "is 'qwen2', not 'llama' or 'gpt2'"),
    "another tokenizer": (dict(tokenizer="llama"), "its tokenizer is 'llama'"),
    "of another kind": (dict(pre="qwen2"), "of the kind 'qwen2'"),
    "no layers": (dict(leave_out=["block_count"]), "has no field 'block_count'"),
    "more layers": (dict(block_count=3), "has no blk.2.attn_k.weight, blk.2.attn_norm.weight"),
    "fewer layers": (dict(block_count=1), "has, beside what such a model is made of, blk.1.attn"),
    "far more layers": (dict(block_count=2**31), "num_layers=2147483648 must be 1000 at most"),
    "wider": (dict(embedding_length=128), "numbers, and describes a model of"),
    "heads that do not divide": ({"attention.head_count": 7}, "not divisible by num_heads=7"),
    "no heads": ({"attention.head_count": 0}, "num_heads=0 must be"),
    "a text for a number": ({"embedding_length": "64"}, "is of no model that is read here"),
    "no base": ({"rope.freq_base": 0.0}, "rotary_base=0.0 must be"),
    "a piece twice": (dict(tokens=[*gguf_file.PIECES[:-1], "ab"]), "each once"),
    "too few pieces": (dict(tokens=gguf_file.PIECES[:-1]), "a type for each"),
    "an end that is none": (dict(eos=10**6), "cannot begin or end with"),
    "an alignment that is no whole number": (dict(alignment=32.0), "its alignment is 32.0"),
    "no last norm": (dict(leave_out=["output_norm.weight"]), "has no output_norm.weight"),
}


@pytest.mark.parametrize("case", ANOTHER)
def test_what_is_another_model_is_refused(case, tmp_path):
    fields, words = ANOTHER[case]
    path = gguf_file.written(tmp_path / "model.gguf", MODEL, **fields)
    with pytest.raises(InputError, match=re.escape(words)):
        read(path)


def test_names_and_shapes_are_those_of_the_model(whole, refused):
    renamed = whole.replace(b"blk.1.attn_q.weight", b"blk.1.attn_q.sesame")
    assert "has no blk.1.attn_q.weight" in refused(renamed)
    at = after(whole, b"blk.1.ffn_up.weight") + 4
    assert struct.unpack_from("<QQ", whole, at) == (64, 96)
    assert "blk.1.ffn_up.weight is (96, 64), not (64, 96)" in refused(put(whole, at, "QQ", 96, 64))


def test_whatever_happens_to_a_file_it_is_read_or_refused(whole, fuzz_cases, tmp_path):
    path = tmp_path / "harmed.gguf"
    header = whole.index(b"blk.0.attn_norm.weight") + 3000
    for seed in fuzz_cases(100):
        rng = np.random.default_rng(seed)
        harmed = bytearray(whole)
        for at in rng.integers(0, rng.choice([40, header, len(whole)]), rng.integers(1, 4)):
            harmed[at] = rng.integers(256)
        path.write_bytes(harmed[: rng.choice([len(whole), header])])
        with suppress(InputError):
            read(path)


def test_fields_are_read_as_its_package_reads_them(whole, tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(whole)
    theirs = gguf.GGUFReader(path).fields
    with GGUF(path) as file:
        for name, value in file.fields.items():
            assert list(np.ravel(value)) == list(np.ravel(theirs[name].contents())), name
        assert len(file.fields) == len(theirs) - 3  # which counts the header's
