"""A Llama or a GPT-2 in a file of GGUF: what its fields say of the model and of its vocabulary.

In a Llama there the columns of W_q and W_k are in the order of rotary pairs that are neighbours.
"""

from minitransformer.core.errors import InputError, listed
from minitransformer.data.text.tokenizer import TokenizerVocabulary
from minitransformer.models.language_model_config import LanguageModelConfig
from minitransformer.runs.weights.gguf import GGUF
from minitransformer.runs.weights.names import GGUF_GPT_2, GGUF_LLAMA

CONTROL = 3  # the type of a piece that stands for no text
DIGITS_ALONE = {"gpt-2": False, "smollm": True}  # of the kinds of tokenizers that are read
END_OF_TEXT = "<|endoftext|>"


def read(path):
    """The LanguageModel in a file, and its TokenizerVocabulary.

    Raises:
        InputError: it is no such file, or not all of it, or another model.
        OSError: it is no file to be read: see :func:`open_regular`.
        MissingLibraryError: a package is missing, gguf or tokenizers.
    """
    with GGUF(path) as file:
        try:
            vocabulary = _vocabulary(file.fields)
            config, names = _config(file.fields, len(vocabulary), "output.weight" in file.tensors)
        except (ValueError, ArithmeticError, KeyError, TypeError) as error:
            raise InputError(f"{path} is of no model that is read here: {_said(error)}") from error
        shapes = {name: tensor.shape for name, tensor in file.tensors.items()}
        return names.model(config, shapes, file.array, path), vocabulary


def _said(error):
    return f"it has no field {error}" if isinstance(error, KeyError) else error


def _config(fields, vocabulary_size, own_projection):
    """(LanguageModelConfig, Format) of the fields."""
    kind = fields["general.architecture"]
    if kind not in ARCHITECTURES:
        raise InputError(f"its architecture is {kind!r}, not {listed(ARCHITECTURES)}")
    choices, names = ARCHITECTURES[kind]
    of = {name.removeprefix(f"{kind}."): value for name, value in fields.items()}
    config = LanguageModelConfig(
        vocabulary_size,
        of["embedding_length"],
        num_heads=of["attention.head_count"],
        d_ff=of["feed_forward_length"],
        num_layers=of["block_count"],
        max_length=of["context_length"],
        dropout=0.0,
        pad_id=-1,
        tying="none" if own_projection else "two-way",
        scaled_embedding=False,
        **choices(of),
    )
    return config, names


def _of_llama(of):
    heads = of["attention.head_count"]
    if any(name.startswith("rope.scaling") for name in of):
        raise InputError("its rotary positions are scaled")
    if of.get("rope.dimension_count", 0) * heads not in (0, of["embedding_length"]):
        raise InputError("rotary positions turn a part of its heads")
    return dict(
        num_groups=of.get("attention.head_count_kv", heads),
        epsilon=_of_float32(of["attention.layer_norm_rms_epsilon"]),
        rotary_base=_of_float32(of.get("rope.freq_base", 10000.0)),
        normalisation="rms-norm",
        positions="rotary",
        activation="swiglu",
        bias="none",
    )


def _of_gpt_2(of):
    epsilon = _of_float32(of["attention.layer_norm_epsilon"])
    return dict(epsilon=epsilon, activation="gelu-by-tanh", bias="all")


ARCHITECTURES = {"llama": (_of_llama, GGUF_LLAMA), "gpt2": (_of_gpt_2, GGUF_GPT_2)}


def _of_float32(value):
    """The number with the fewest digits, as somebody will have written it."""
    return float(f"{value:.7g}")


def _vocabulary(fields):
    of = {name.removeprefix("tokenizer.ggml."): value for name, value in fields.items()}
    kind = of.get("pre", "gpt-2")
    if of["model"] != "gpt2" or kind not in DIGITS_ALONE:
        raise InputError(f"its tokenizer is {of['model']!r} of the kind {kind!r}")
    pieces, types = of["tokens"], list(of["token_type"])
    if len(types) != len(pieces) or len(set(pieces)) != len(pieces):
        raise InputError("its pieces are no vocabulary: a type for each, and each once")
    special = [i for i, of_piece in enumerate(types) if of_piece == CONTROL]
    named = {pieces[i]: i for i in special}
    first = int(of["bos_token_id"])
    begins = (first,) if of.get("add_bos_token") else (named.get(END_OF_TEXT, first),)
    ends = sorted({int(of["eos_token_id"]), *begins})
    return TokenizerVocabulary.of_bytes(
        pieces,
        of["merges"],
        special,
        digits_alone=DIGITS_ALONE[kind],
        begins=begins,
        ends=ends,
    )
