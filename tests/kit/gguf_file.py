"""Files of GGUF as its own package writes them, of small Llamas that are made up here."""

import gguf
import llama2c_file
import numpy as np
from tokenizers.pre_tokenizers import ByteLevel

from minitransformer.commands.cli import main
from minitransformer.runs.weights.names import GGUF_LLAMA

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
LETTERS = sorted(ByteLevel.alphabet())  # of the 256 bytes
MERGES = ["Ġ a", "Ġa b", "a b", "ab c", "1 2"]
PIECES = [*SPECIAL, *LETTERS, *(merge.replace(" ", "") for merge in MERGES)]


def small_model(**changes):
    """A LanguageModel of the kind that such a file has, with a piece for each of PIECES."""
    wide = dict(d_model=64, d_ff=96, max_length=64, rotary_base=5000.0, pad_id=-1)
    return llama2c_file.small_model(**wide | dict(vocabulary_size=len(PIECES)) | changes)


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
    config, writer = model.config, gguf.GGUFWriter(path, fields.get("architecture", "llama"))
    said = {
        "block_count": config.num_layers,
        "context_length": config.max_length,
        "embedding_length": config.d_model,
        "feed_forward_length": config.d_ff,
        "attention.head_count": config.num_heads,
        "attention.head_count_kv": config.num_key_groups,
        "rope.freq_base": config.rotary_base,
        "attention.layer_norm_rms_epsilon": config.epsilon,
    }
    for name, value in said.items():
        kinds_of = {float: "FLOAT32", int: "UINT32", str: "STRING"}
        value = fields.get(name, value)
        if name not in leave_out:
            kind = gguf.GGUFValueType[kinds_of[type(value)]]
            writer.add_key_value(f"llama.{name}", value, kind)
    if "alignment" in fields:
        writer.add_float32("general.alignment", fields["alignment"])
    writer.add_tokenizer_model(fields.get("tokenizer", "gpt2"))
    writer.add_tokenizer_pre(fields.get("pre", "smollm"))
    writer.add_token_list(fields.get("tokens", PIECES))
    writer.add_token_types(fields.get("types", [3] * 3 + [1] * (len(PIECES) - 3)))
    writer.add_token_merges(MERGES)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(fields.get("eos", 2))
    parameters = {name: parameter.data for name, parameter in model.named_parameters()}
    for name, array in GGUF_LLAMA.arrays(config, parameters).items():
        if name in leave_out:
            continue
        array = np.ascontiguousarray(array)
        kind = next((kind for end, kind in dict(kinds).items() if name.endswith(end)), "F32")
        kind = gguf.GGMLQuantizationType[kind]
        writer.add_tensor(name, gguf.quantize(array, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
