"""What others call the arrays of a language model, and how they store them.

A format has a table of their names and ours; ``{}`` is the number of a layer, and ours stand within
that layer. What they keep as one array can be several of ours, side by side. Most of them keep a
matrix as (D_out, D_in), the transpose of ours.
"""

import math
from typing import NamedTuple

import numpy as np

from minitransformer.core.errors import InputError
from minitransformer.models.registry import new_model

LAYER = "stack.layers.{}."
TABLES = "embedding.weight", "positions.table", "output_projection.weight"  # rows, not a map


class Format(NamedTuple):
    """How some others keep a model.

    Attributes:
        table: their name of each array, and ours, or several.
        transposed: whether a matrix is (D_out, D_in).
        passed_over: how names end of what is worked out here.
    """

    table: dict[str, str | tuple[str, ...]]
    transposed: bool = True
    passed_over: tuple[str, ...] = ()

    def names(self, config):
        """Their names of the arrays of a model, and for each the tuple of ours that it holds."""
        found = {}
        for theirs, ours in self.table.items():
            several = (ours,) if isinstance(ours, str) else ours
            if "{}" in theirs:
                for i in range(config.num_layers):
                    found[theirs.format(i)] = tuple(LAYER.format(i) + name for name in several)
            elif config.tying == "none" or several != ("output_projection.weight",):
                found[theirs] = several
        return found

    def model(self, config, shapes, array_of, where):
        """The LanguageModel of their arrays.

        Args:
            config: a LanguageModelConfig.
            shapes: of what there is, by their names.
            array_of: gives an array by their name; it is asked for each once.
            where: they are from, for messages.

        Raises:
            InputError: a name is missing or too many, or an array has another shape.
        """
        names = self.names(config)
        there = {name: s for name, s in shapes.items() if not name.endswith(self.passed_over)}
        for what, wrong in (
            ("has no", names.keys() - there.keys()),
            ("has, beside what such a model is made of,", there.keys() - names.keys()),
        ):
            if wrong:
                more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
                raise InputError(f"{where} {what} {', '.join(sorted(wrong)[:3])}{more}")
        held = sum(map(math.prod, there.values()))
        if held != config.num_parameters():  # known before there is memory for them
            raise InputError(
                f"{where} holds {held:,} numbers, and describes a model of "
                f"{config.num_parameters():,}"
            )
        model = new_model(config, seed=None)
        parameters = dict(model.named_parameters())
        for theirs, ours in names.items():
            array = self._turned(array_of(theirs), ours)
            parts = [parameters[name].data for name in ours]
            shape = (*parts[0].shape[:-1], sum(part.shape[-1] for part in parts))
            if array.shape != shape:
                turned = " when it is transposed" * (array.ndim == 2 and self.transposed)
                raise InputError(f"{where}: {theirs} is {array.shape}, not {shape}{turned}")
            for part, columns in zip(parts, np.split(array, len(parts), axis=-1), strict=True):
                part[...] = columns
        return model

    def arrays(self, config, parameters):
        """What they keep of a model, by their names, of its parameters by ours."""
        return {
            theirs: self._turned(np.concatenate([parameters[n] for n in ours], axis=-1), ours)
            for theirs, ours in self.names(config).items()
        }

    def _turned(self, array, ours):
        turn = self.transposed and array.ndim == 2 and ours[0] not in TABLES
        return array.T if turn else array


GGUF_LLAMA = Format(
    {
        "token_embd.weight": "embedding.weight",
        "blk.{}.attn_norm.weight": "self_attention_residual.norm.gamma",
        "blk.{}.attn_q.weight": "self_attention.query.weight",
        "blk.{}.attn_k.weight": "self_attention.key.weight",
        "blk.{}.attn_v.weight": "self_attention.value.weight",
        "blk.{}.attn_output.weight": "self_attention.output.weight",
        "blk.{}.ffn_norm.weight": "feed_forward_residual.norm.gamma",
        "blk.{}.ffn_gate.weight": "feed_forward.w_gate",
        "blk.{}.ffn_up.weight": "feed_forward.w_up",
        "blk.{}.ffn_down.weight": "feed_forward.w_down",
        "output_norm.weight": "stack.norm.gamma",
        "output.weight": "output_projection.weight",
    }
)
_MAPS = "query", "key", "value"
GGUF_GPT_2 = Format(
    {
        "token_embd.weight": "embedding.weight",
        "position_embd.weight": "positions.table",
        "blk.{}.attn_norm.weight": "self_attention_residual.norm.gamma",
        "blk.{}.attn_norm.bias": "self_attention_residual.norm.beta",
        "blk.{}.attn_qkv.weight": tuple(f"self_attention.{m}.weight" for m in _MAPS),
        "blk.{}.attn_qkv.bias": tuple(f"self_attention.{m}.bias" for m in _MAPS),
        "blk.{}.attn_output.weight": "self_attention.output.weight",
        "blk.{}.attn_output.bias": "self_attention.output.bias",
        "blk.{}.ffn_norm.weight": "feed_forward_residual.norm.gamma",
        "blk.{}.ffn_norm.bias": "feed_forward_residual.norm.beta",
        "blk.{}.ffn_up.weight": "feed_forward.inner.weight",
        "blk.{}.ffn_up.bias": "feed_forward.inner.bias",
        "blk.{}.ffn_down.weight": "feed_forward.outer.weight",
        "blk.{}.ffn_down.bias": "feed_forward.outer.bias",
        "output_norm.weight": "stack.norm.gamma",
        "output_norm.bias": "stack.norm.beta",
        "output.weight": "output_projection.weight",
    }
)
LLAMA = Format(
    {
        "model.embed_tokens.weight": "embedding.weight",
        "model.layers.{}.input_layernorm.weight": "self_attention_residual.norm.gamma",
        "model.layers.{}.self_attn.q_proj.weight": "self_attention.query.weight",
        "model.layers.{}.self_attn.k_proj.weight": "self_attention.key.weight",
        "model.layers.{}.self_attn.v_proj.weight": "self_attention.value.weight",
        "model.layers.{}.self_attn.o_proj.weight": "self_attention.output.weight",
        "model.layers.{}.post_attention_layernorm.weight": "feed_forward_residual.norm.gamma",
        "model.layers.{}.mlp.gate_proj.weight": "feed_forward.w_gate",
        "model.layers.{}.mlp.up_proj.weight": "feed_forward.w_up",
        "model.layers.{}.mlp.down_proj.weight": "feed_forward.w_down",
        "model.norm.weight": "stack.norm.gamma",
        "lm_head.weight": "output_projection.weight",
    },
    passed_over=(".rotary_emb.inv_freq",),
)
GPT_2 = Format(
    {
        "transformer.wte.weight": "embedding.weight",
        "transformer.wpe.weight": "positions.table",
        "transformer.h.{}.ln_1.weight": "self_attention_residual.norm.gamma",
        "transformer.h.{}.ln_1.bias": "self_attention_residual.norm.beta",
        "transformer.h.{}.attn.c_attn.weight": tuple(f"self_attention.{m}.weight" for m in _MAPS),
        "transformer.h.{}.attn.c_attn.bias": tuple(f"self_attention.{m}.bias" for m in _MAPS),
        "transformer.h.{}.attn.c_proj.weight": "self_attention.output.weight",
        "transformer.h.{}.attn.c_proj.bias": "self_attention.output.bias",
        "transformer.h.{}.ln_2.weight": "feed_forward_residual.norm.gamma",
        "transformer.h.{}.ln_2.bias": "feed_forward_residual.norm.beta",
        "transformer.h.{}.mlp.c_fc.weight": "feed_forward.inner.weight",
        "transformer.h.{}.mlp.c_fc.bias": "feed_forward.inner.bias",
        "transformer.h.{}.mlp.c_proj.weight": "feed_forward.outer.weight",
        "transformer.h.{}.mlp.c_proj.bias": "feed_forward.outer.bias",
        "transformer.ln_f.weight": "stack.norm.gamma",
        "transformer.ln_f.bias": "stack.norm.beta",
        "lm_head.weight": "output_projection.weight",
    },
    transposed=False,
    passed_over=(".attn.bias", ".attn.masked_bias"),
)
