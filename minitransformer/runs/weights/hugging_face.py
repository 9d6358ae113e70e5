"""A GPT-2 or a Llama in a folder as the library transformers keeps it, read and written.

    config.json            what the model is
    model.safetensors      its arrays by name; or several such files
    tokenizer.json         its vocabulary

In a Llama of these the columns of W_q and W_k are in the order of rotary pairs that are halves.
"""

import json
import math
from pathlib import Path

import numpy as np

from minitransformer.core.backend import to_host
from minitransformer.core.errors import InputError, require_one_of
from minitransformer.core.libraries import library
from minitransformer.core.regular_file import read_regular, written_whole
from minitransformer.data.text.tokenizer import TokenizerVocabulary
from minitransformer.layers.rotary import to_halves
from minitransformer.models.language_model_config import LanguageModelConfig
from minitransformer.runs.weights.names import GPT_2, LAYER, LLAMA

CONFIG, TOKENIZER, ARRAYS = "config.json", "tokenizer.json", "model.safetensors"
MOST_JSON, MOST_TOKENIZER = 10**6, 10**8  # bytes
BASE = "transformer."  # what names of a GPT-2 begin with, unless only its stack was stored
GPT_2_ACTIVATIONS = {"gelu_new": "gelu-by-tanh", "gelu": "gelu", "silu": "silu"}
DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}  # as NumPy has them
ALIKE = dict(norm="pre", window=0, scaled_embedding=False)
OF_GPT_2 = ALIKE | dict(normalisation="layer-norm", positions="learned", bias="all")
OF_LLAMA = ALIKE | dict(normalisation="rms-norm", positions="rotary", bias="none")
OF_LLAMA |= dict(activation="swiglu")


def read(folder):
    """The LanguageModel in a folder, and its TokenizerVocabulary.

    Raises:
        InputError: it is of another model, or not all of it is there.
        OSError: a file is missing, or none to be read.
        MissingLibraryError: a package is missing, safetensors or tokenizers.
    """
    folder = Path(folder)
    said = _json(folder / CONFIG)
    try:
        config, names = _config(said)
    except (ValueError, ArithmeticError, KeyError, TypeError, AttributeError) as error:
        what = f"it has no {error}" if isinstance(error, KeyError) else error
        raise InputError(f"{folder / CONFIG} is of no model that is read here: {what}") from error
    vocabulary = _vocabulary(folder, said, config.vocabulary_size)
    arrays = _arrays(folder)
    if names is GPT_2 and not any(name.startswith(BASE) for name in arrays):
        arrays = {BASE + name: array for name, array in arrays.items()}
    shapes = {name: array["shape"] for name, array in arrays.items()}
    model = names.model(config, shapes, lambda name: _decoded(arrays.pop(name), folder), folder)
    return model, vocabulary


def write(folder, model, vocabulary):
    """Write a LanguageModel into a folder that there is.

    Args:
        vocabulary: one that is no TokenizerVocabulary is left out.

    Raises:
        InputError: no model of theirs has such layers.
        OSError: a file cannot be written.
        MissingLibraryError: there is no package safetensors.
    """
    config = model.config
    said, names = _said_of(config, vocabulary)
    parameters = {name: to_host(p.data) for name, p in model.named_parameters()}
    if names is LLAMA and config.rotary_pairs == "neighbours":
        for i in range(config.num_layers):
            for which, heads in (("query", config.num_heads), ("key", config.num_key_groups)):
                name = f"{LAYER.format(i)}self_attention.{which}.weight"
                parameters[name] = to_halves(parameters[name], heads)
    arrays = {n: np.ascontiguousarray(x) for n, x in names.arrays(config, parameters).items()}
    save = library("safetensors.numpy", "an export").save
    files = {ARRAYS: save(arrays, {"format": "pt"}), CONFIG: json.dumps(said, indent=1).encode()}
    if isinstance(vocabulary, TokenizerVocabulary):
        files[TOKENIZER] = json.dumps(vocabulary.tokenizer).encode()
    for name, content in files.items():
        with written_whole(Path(folder) / name) as file:
            file.write(content)


def _config(said):
    """(LanguageModelConfig, Format) of what a config.json says."""
    kind = said["model_type"]
    if kind not in ("gpt2", "llama"):
        raise InputError(f"its model_type is {kind!r}, not 'gpt2' or 'llama'")
    return _gpt_2(said) if kind == "gpt2" else _llama(said)


def _gpt_2(said):
    width = said["n_embd"]
    _require(said, scale_attn_weights=True, scale_attn_by_inverse_layer_idx=False)
    activation = said.get("activation_function", "gelu_new")
    require_one_of(GPT_2_ACTIVATIONS, "activation_function", activation)
    config = LanguageModelConfig(
        said["vocab_size"],
        width,
        num_heads=said["n_head"],
        d_ff=said.get("n_inner") or 4 * width,
        num_layers=said["n_layer"],
        max_length=said["n_positions"],
        epsilon=said.get("layer_norm_epsilon", 1e-5),
        activation=GPT_2_ACTIVATIONS[activation],
        **OF_GPT_2,
        **_in_common(said, tied=True),
    )
    return config, GPT_2


def _llama(said):
    width, heads = said["hidden_size"], said["num_attention_heads"]
    _require(said, hidden_act="silu", attention_bias=False, mlp_bias=False)
    _require(said, head_dim=width // heads)
    rotary = said.get("rope_parameters") or said.get("rope_scaling") or {}
    if rotary.get("rope_type", rotary.get("type", "default")) != "default":
        raise InputError(f"its rotary positions are scaled: {rotary}")
    config = LanguageModelConfig(
        said["vocab_size"],
        width,
        num_heads=heads,
        num_groups=said.get("num_key_value_heads") or heads,
        d_ff=said["intermediate_size"],
        num_layers=said["num_hidden_layers"],
        max_length=said["max_position_embeddings"],
        epsilon=said.get("rms_norm_eps", 1e-6),
        rotary_base=float(rotary.get("rope_theta", said.get("rope_theta", 10000.0))),
        rotary_pairs="halves",
        **OF_LLAMA,
        **_in_common(said, tied=False),
    )
    return config, LLAMA


def _in_common(said, tied):
    tied = said.get("tie_word_embeddings", tied)
    return dict(dropout=0.0, pad_id=-1, tying="two-way" if tied else "none")


def _require(said, **only):
    """Refuse what is not as in the only models that are read; None and nothing mean the same."""
    for name, value in only.items():
        if said.get(name) not in (None, value):
            raise InputError(f"its {name} is {said[name]!r}, not {value!r}")


def _said_of(config, vocabulary):
    """What a config.json says of a model, and its Format."""
    kinds = {"gpt2": (OF_GPT_2, _said_of_gpt_2, GPT_2), "llama": (OF_LLAMA, _said_of_llama, LLAMA)}
    kind = "llama" if config.normalisation == "rms-norm" else "gpt2"
    fixed, said_of, names = kinds[kind]
    other = {n: getattr(config, n) for n, value in fixed.items() if getattr(config, n) != value}
    if kind == "gpt2" and config.num_key_groups != config.num_heads:
        other["num_groups"] = config.num_groups
    if kind == "gpt2" and config.activation not in GPT_2_ACTIVATIONS.values():
        other["activation"] = config.activation
    if other:
        listed = ", ".join(f"{name}={value!r}" for name, value in other.items())
        raise InputError(f"no {kind} of theirs has {listed}, so this model cannot be exported")
    of_both = {
        "model_type": kind,
        "vocab_size": config.vocabulary_size,
        "tie_word_embeddings": config.tying == "two-way",
        "bos_token_id": vocabulary.begins[0] if vocabulary.begins else None,
        "eos_token_id": list(vocabulary.ends),
    }
    return of_both | said_of(config), names


def _said_of_gpt_2(config):
    named = {ours: theirs for theirs, ours in GPT_2_ACTIVATIONS.items()}
    return {
        "architectures": ["GPT2LMHeadModel"],
        "n_embd": config.d_model,
        "n_head": config.num_heads,
        "n_inner": config.d_ff,
        "n_layer": config.num_layers,
        "n_positions": config.max_length,
        "layer_norm_epsilon": config.epsilon,
        "activation_function": named[config.activation],
        **dict.fromkeys(("embd_pdrop", "attn_pdrop", "resid_pdrop"), config.dropout),
    }


def _said_of_llama(config):
    return {
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": config.d_model,
        "num_attention_heads": config.num_heads,
        "num_key_value_heads": config.num_key_groups,
        "head_dim": config.d_model // config.num_heads,
        "intermediate_size": config.d_ff,
        "num_hidden_layers": config.num_layers,
        "max_position_embeddings": config.max_length,
        "rms_norm_eps": config.epsilon,
        "rope_theta": config.rotary_base,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
    }


def _vocabulary(folder, said, size):
    """The TokenizerVocabulary, which has so many pieces."""
    ends = said.get("eos_token_id")
    ends = ends if isinstance(ends, list) else [ends]
    first = said.get("bos_token_id")
    fields = _json(folder / TOKENIZER, MOST_TOKENIZER)
    begins = [i for i in [first] if i is not None]
    ends = [i for i in ends if i is not None]
    ends += [i for i in begins if i not in ends]  # where another text begins, one has ended
    vocabulary = TokenizerVocabulary(fields, begins, ends)
    if len(vocabulary) != size:
        raise InputError(f"{folder / TOKENIZER} has {len(vocabulary)} pieces, and the model {size}")
    return vocabulary


def _arrays(folder):
    """By name what the files of a folder hold: a dict each, as the package has it."""
    deserialize = library("safetensors", "weights in safetensors").deserialize
    found = {}
    for path in sorted(folder.glob("*.safetensors")):
        try:
            found.update(deserialize(read_regular(path, math.inf)))
        except library("safetensors", "weights").SafetensorError as error:
            raise InputError(f"{path} is no file of safetensors, or damaged: {error}") from error
    if not found:
        raise InputError(f"{folder} has no file that ends in .safetensors")
    return found


def _decoded(array, folder):
    """The array whose bytes these are."""
    kind, content = array["dtype"], array["data"]
    if kind not in DTYPES:
        raise InputError(f"{folder} has an array of the type {kind}; {', '.join(DTYPES)} are read")
    numbers = np.frombuffer(content, DTYPES[kind])
    if kind == "BF16":  # the first half of a float32
        numbers = (numbers.astype("<u4") << 16).view("<f4")
    return numbers.reshape(array["shape"])


def _json(path, most=MOST_JSON):
    try:
        found = json.loads(read_regular(path, most))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise InputError(f"{path} holds no fields")
    return found
