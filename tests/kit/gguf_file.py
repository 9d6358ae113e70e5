"""Files of GGUF as its own package writes them, of small models that are made up here."""

import gguf
import llama2c_file
import numpy as np
from tokenizers.pre_tokenizers import ByteLevel

from minitransformer.commands.cli import main
from minitransformer.data.text.tokenizer import TokenizerVocabulary
from minitransformer.models.language_model import LanguageModel
from minitransformer.models.language_model_config import LanguageModelConfig
from minitransformer.runs.weights.names import GGUF_GPT_2, GGUF_LLAMA

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
LETTERS = sorted(ByteLevel.alphabet())  # of the 256 bytes
MERGES = ["Ġ a", "Ġa b", "a b", "ab c", "1 2"]
PIECES = [*SPECIAL, *LETTERS, *(merge.replace(" ", "") for merge in MERGES)]
VOCABULARY = TokenizerVocabulary.of_bytes(PIECES, MERGES, range(3), begins=[0], ends=[0, 2])


def small_model(**changes):
    """A LanguageModel of the kind that such a file has, with a piece for each of PIECES."""
    wide = dict(d_model=64, d_ff=96, max_length=64, rotary_base=5000.0, pad_id=-1)
    return llama2c_file.small_model(**wide | dict(vocabulary_size=len(PIECES)) | changes)


def small_gpt_2(**changes):
    """Another, of the kind that GPT-2 is, away from its first weights."""
    sizes = dict(num_heads=4, d_ff=48, num_layers=2, max_length=32, dropout=0.0, pad_id=-1)
    blocks = dict(activation="gelu-by-tanh", bias="all", scaled_embedding=False)
    model = LanguageModel(LanguageModelConfig(len(PIECES), 32, **sizes | blocks | changes), seed=7)
    model.flat.data += 0.1 * np.random.default_rng(7).standard_normal(model.flat.data.size)
    return model


def imported(folder):
    """The run folder that the command makes of such a model, with room for a conversation."""
    file, run = written(folder / "made-up.gguf", small_model(max_length=512)), folder / "a run"
    assert main(["import", str(file), "--run-folder", str(run)]) == 0
    return run


def written(path, model, kinds=(), leave_out=(), **fields):
    """Write the file of a model; returns its path.

    Args:
        kinds: types of tensors by the end of their names; the others are F32.
        leave_out: names of fields and tensors.
        fields: in place of what the model says.
    """
    config, kind, names = model.config, "llama", GGUF_LLAMA
    if config.normalisation == "layer-norm":
        kind, names = "gpt2", GGUF_GPT_2
    writer = gguf.GGUFWriter(path, fields.get("architecture", kind))
    said = {
        "block_count": config.num_layers,
        "context_length": config.max_length,
        "embedding_length": config.d_model,
        "feed_forward_length": config.d_ff,
        "attention.head_count": config.num_heads,
    }
    if kind == "llama":
        said["attention.head_count_kv"] = config.num_key_groups
        said["rope.freq_base"] = config.rotary_base
        said["attention.layer_norm_rms_epsilon"] = config.epsilon
    else:
        said["attention.layer_norm_epsilon"] = config.epsilon
    for name, value in said.items():
        kinds_of = {float: "FLOAT32", int: "UINT32", str: "STRING"}
        value = fields.get(name, value)
        if name not in leave_out:
            of_value = gguf.GGUFValueType[kinds_of[type(value)]]
            writer.add_key_value(f"{kind}.{name}", value, of_value)
    if "alignment" in fields:
        writer.add_float32("general.alignment", fields["alignment"])
    writer.add_tokenizer_model(fields.get("tokenizer", "gpt2"))
    writer.add_tokenizer_pre(fields.get("pre", "smollm"))
    writer.add_token_list(fields.get("tokens", PIECES))
    writer.add_token_types(fields.get("types", [3] * 3 + [1] * (len(PIECES) - 3)))
    writer.add_token_merges(MERGES)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(fields.get("eos", 2))
    if "add_bos" in fields:
        writer.add_add_bos_token(fields["add_bos"])
    parameters = {name: parameter.data for name, parameter in model.named_parameters()}
    for name, array in names.arrays(config, parameters).items():
        if name in leave_out:
            continue
        array = np.ascontiguousarray(array)
        of_array = next((of for end, of in dict(kinds).items() if name.endswith(end)), "F32")
        of_array = gguf.GGMLQuantizationType[of_array]
        writer.add_tensor(name, gguf.quantize(array, of_array), raw_dtype=of_array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
