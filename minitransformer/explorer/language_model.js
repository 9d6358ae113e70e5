// The language model and the masked one (models/language_model.py, masked_language_model.py),
// forward and backward: half of the Transformer, without attention to a source.
//
//   const run = model.forward(ids, { off });
//   const gradient = model.gradient(run, position, piece);      as those of transformer.js
//
// A language model is the decoder's half, so its boxes are target.… and decoder.…; row t of its
// logits scores the piece that follows ids[0 … t]. A masked one is the encoder's half, source.… and
// encoder.…, in which each position sees all; row t scores what stands at t. Which blocks it has in
// place of the paper's its configuration says; those have boxes of their own:
//   with rotary positions .turned_query and .turned_key, and no target.positions
//   .gelu, .gelu_by_tanh or .silu in place of .relu; with SwiGLU .gate, .silu, .up and .gated

import { add } from "./arrays.js";
import { Run } from "./boxes.js";
import { alibi_slopes } from "./layers/alibi.js";
import { embedding, embedding_backward, unscaled_embedding } from "./layers/embedding.js";
import { gelu, gelu_backward, gelu_by_tanh, gelu_by_tanh_backward } from "./layers/gelu.js";
import { layer_norm, layer_norm_backward } from "./layers/layer_norm.js";
import { learned_positions, learned_positions_backward } from "./layers/learned_positions.js";
import { all_of, window_mask } from "./layers/masks.js";
import { relu, relu_backward } from "./layers/relu.js";
import {
  positional_encoding,
  positional_encoding_backward,
  sinusoidal_encoding,
} from "./layers/positional_encoding.js";
import { rms_norm, rms_norm_backward } from "./layers/rms_norm.js";
import { rotary_table } from "./layers/rotary.js";
import { silu, silu_backward } from "./layers/silu.js";
import { causal_mask } from "./layers/softmax.js";
import { swiglu, swiglu_backward } from "./layers/swiglu.js";
import {
  activated_feed_forward,
  activated_feed_forward_backward,
  self_attention,
  self_attention_backward,
} from "./sublayers.js";
import { Transformer } from "./transformer.js";

const NORMALISATIONS = {
  "layer-norm": [layer_norm, layer_norm_backward],
  "rms-norm": [rms_norm, rms_norm_backward],
};
const ACTIVATIONS = {
  relu: [relu, relu_backward],
  gelu: [gelu, gelu_backward],
  "gelu-by-tanh": [gelu_by_tanh, gelu_by_tanh_backward],
  silu: [silu, silu_backward],
};

export class LanguageModel extends Transformer {
  constructor(config, parameters) {
    super(config, parameters);
    const { num_layers, num_heads, num_groups, positions, bias, activation } = config;
    const output = config.tying === "none" ? "output_projection.weight" : "embedding.weight";
    this.embeddings = { source: "embedding.weight", target: "embedding.weight", output };
    this.side = "decoder";
    this.stacks = { decoder: half("target", num_layers) };
    this.num_groups = num_groups || num_heads;
    const relative = positions === "rotary" || positions === "alibi";
    this.paper_attention = !(relative || this.num_groups < num_heads || bias === "all");
    this.paper_feed_forward = activation === "relu" && bias !== "none";
    this.slopes = positions === "alibi" ? alibi_slopes(num_heads) : null;
    this.added_positions = positions === "learned" || positions === "sinusoidal";
    this.kinds = this.kinds_of_boxes();
  }

  forward(ids, { off = new Set() } = {}) {
    const run = new Run(off, this.kinds);
    return this.project(this.features(ids, run), run);
  }

  // The kinds of boxes that are not the Transformer's, by the last part of their names.
  kinds_of_boxes() {
    const { scaled_embedding, positions, normalisation, activation } = this.config;
    const gated = activation === "swiglu";
    return {
      ...(!scaled_embedding && { embedding: "unscaled_embedding" }),
      ...(positions === "learned" && { positions: "learned_positions" }),
      ...(normalisation === "rms-norm" && { norm: "rms_norm" }),
      ...(positions === "alibi" && { scores: "alibi_attention", heads: "alibi_attention" }),
      ...(!this.paper_attention && { self: "self_attention" }),
      ...(!this.paper_feed_forward && {
        feed_forward: gated ? "swiglu" : "activated_feed_forward",
      }),
    };
  }

  // The output of the stack (T, D) for ids, which begin at position `first`.
  features(ids, run, first = 0) {
    const mask = this.mask(ids.length);
    run.first = first;
    let x = this.embed(this.stacks[this.side].input, ids, run, first); // (T, D)
    for (const name of this.blocks(this.side)) {
      x = this.block(name, x, run, null, mask);
    }
    return this.final_norm(this.side, x, run);
  }

  features_backward(dy, run, gradient) {
    let dx = this.final_norm_backward(this.side, dy, run, gradient);
    for (const name of this.blocks(this.side).reverse()) {
      [dx] = this.block_backward(name, dx, run, gradient);
    }
    this.embed_backward(this.stacks[this.side].input, dx, run, gradient);
  }

  // What positions may look at, (T, T), or null: all.
  mask(length) {
    return all_of(causal_mask(length), this.near(length));
  }

  near(length) {
    return this.config.window > 0 ? window_mask(length, this.config.window) : null;
  }

  embed(input, ids, run, first) {
    const look_up = this.config.scaled_embedding ? embedding : unscaled_embedding;
    const [words, cache] = look_up(ids, this.parameters["embedding.weight"]); // (T, D)
    run.show(`${input}.embedding`, words);
    const [x, position_cache] = this.add_positions(words, first);
    if (this.added_positions) {
      run.show(`${input}.positions`, x);
    }
    run.caches[input] = [cache, position_cache];
    return x;
  }

  embed_backward(input, dx, run, gradient) {
    const [cache, position_cache] = run.caches[input];
    let dwords = dx;
    if (this.config.positions === "learned") {
      const [dx_learned, dtable] = learned_positions_backward(dx, position_cache);
      dwords = dx_learned;
      gradient.add("positions.table", dtable);
    } else if (this.added_positions) {
      dwords = positional_encoding_backward(dx, position_cache);
    }
    if (this.added_positions) {
      gradient.add(`${input}.positions`, dx);
    }
    gradient.add(`${input}.embedding`, dwords);
    gradient.add("embedding.weight", embedding_backward(dwords, cache));
  }

  // x (T, D), which begins at position `first`, with positions if the configuration adds any.
  add_positions(x, first) {
    const { positions, max_length, d_model } = this.config;
    const end = first + x.shape[0];
    if (end > max_length) {
      throw new RangeError(`${end} pieces need as many positions, and the model has ${max_length}`);
    }
    if (positions === "learned") {
      return learned_positions(x, this.parameters["positions.table"], first);
    }
    return this.added_positions
      ? positional_encoding(x, sinusoidal_encoding(first, end, d_model))
      : [x, null];
  }

  sublayer(name, x, run, memory, mask) {
    const show = (part, value) => run.show(`${name}.${part}`, value);
    if (!name.endsWith("feed_forward")) {
      return this.paper_attention
        ? super.sublayer(name, x, run, memory, mask)
        : self_attention(x, this.maps(name), this.how(run, x), mask, run.off_in(name), show);
    }
    if (this.config.activation === "swiglu") {
      return swiglu(x, ...this.weights(name), show);
    }
    return this.paper_feed_forward
      ? super.sublayer(name, x, run, memory, mask)
      : activated_feed_forward(x, ...this.maps(name), ACTIVATIONS[this.config.activation], show);
  }

  sublayer_backward(name, dh, cache, gradient) {
    const show = (part, value) => gradient.add(`${name}.${part}`, value);
    const keep = (dmaps) =>
      this.map_paths(name).forEach((paths, i) =>
        paths.forEach((path, j) => path && gradient.add(path, dmaps[i][j])),
      );
    if (!name.endsWith("feed_forward")) {
      if (this.paper_attention) {
        return super.sublayer_backward(name, dh, cache, gradient);
      }
      const [[dquery, dkey, dvalue], dmaps] = self_attention_backward(dh, cache, show);
      keep(dmaps);
      return [add(dquery, add(dkey, dvalue))];
    }
    if (this.config.activation === "swiglu") {
      const [dx, ...dweights] = swiglu_backward(dh, cache, show);
      this.paths(name).forEach((path, i) => gradient.add(path, dweights[i]));
      return [dx];
    }
    if (this.paper_feed_forward) {
      return super.sublayer_backward(name, dh, cache, gradient);
    }
    const [dx, dmaps] = activated_feed_forward_backward(dh, cache, show);
    keep(dmaps);
    return [dx];
  }

  // How self_attention is to attend, for x (T, D) from position `run.first` on.
  how(run, x) {
    const { num_heads, d_model, positions, rotary_base, rotary_pairs: pairs } = this.config;
    const { num_groups, slopes } = this;
    const span = [run.first, run.first + x.shape[0]];
    const turns = positions === "rotary";
    const table = turns ? rotary_table(...span, d_model / num_heads, rotary_base) : null;
    return { num_heads, num_groups, table, pairs, slopes };
  }

  norm(name, x, run) {
    const [normalise] = NORMALISATIONS[this.config.normalisation];
    const weights = this.norm_paths(name).map((path) => this.parameters[path]);
    const [y, cache] = normalise(x, ...weights, this.config.epsilon);
    run.show(`${name}.norm`, y);
    return [y, cache];
  }

  norm_backward(name, dy, cache, gradient) {
    const [, normalise_backward] = NORMALISATIONS[this.config.normalisation];
    const [dx, ...dweights] = normalise_backward(dy, cache);
    this.norm_paths(name).forEach((path, i) => gradient.add(path, dweights[i]));
    gradient.add(`${name}.norm`, dy);
    return dx;
  }

  // [weight, bias] of each linear map of a sublayer, a bias null where there is none.
  maps(name) {
    const given = (path) => (path ? this.parameters[path] : null);
    return this.map_paths(name).map((paths) => paths.map(given));
  }

  map_paths(name) {
    const { bias } = this.config;
    if (this.paper_attention && !name.endsWith("feed_forward")) {
      return this.paths(name).map((path) => [path, null]);
    }
    const feeds = name.endsWith("feed_forward");
    const biased = feeds ? bias !== "none" : bias === "all";
    const maps = feeds ? ["inner", "outer"] : ["query", "key", "value", "output"];
    return maps.map((map) => {
      const path = `${this.module_path(name)}.${map}`;
      return [`${path}.weight`, biased ? `${path}.bias` : null];
    });
  }

  paths(name) {
    const gated = name.endsWith("feed_forward") && this.config.activation === "swiglu";
    return gated
      ? ["w_gate", "w_up", "w_down"].map((weight) => `${this.module_path(name)}.${weight}`)
      : super.paths(name);
  }

  norm_paths(name) {
    const paths = super.norm_paths(name);
    return this.config.normalisation === "rms-norm" ? paths.slice(0, 1) : paths;
  }

  // "decoder.0.self" is stack.layers.0.self_attention.
  module_path(name) {
    return super.module_path(name).replace(this.side, "stack");
  }
}

export class MaskedLanguageModel extends LanguageModel {
  constructor(config, parameters) {
    super(config, parameters);
    this.side = "encoder";
    this.stacks = { encoder: half("source", config.num_layers) };
  }

  mask(length) {
    return this.near(length);
  }
}

function half(input, layers) {
  return { input, layers, sublayers: ["self", "feed_forward"] };
}
