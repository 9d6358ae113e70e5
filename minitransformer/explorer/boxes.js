// What is kept of a forward and of a backward, to be looked at: a box for all that is computed.

import { add } from "./arrays.js";
import { alibi_attention, alibi_attention_backward } from "./layers/alibi.js";
import {
  multi_head_attention,
  multi_head_attention_backward,
  scaled_dot_product_attention,
  scaled_dot_product_attention_backward,
} from "./layers/attention.js";
import { embedding, embedding_backward, unscaled_embedding } from "./layers/embedding.js";
import { feed_forward, feed_forward_backward } from "./layers/feed_forward.js";
import { gelu, gelu_backward, gelu_by_tanh, gelu_by_tanh_backward } from "./layers/gelu.js";
import { layer_norm, layer_norm_backward } from "./layers/layer_norm.js";
import { learned_positions, learned_positions_backward } from "./layers/learned_positions.js";
import { linear, linear_backward } from "./layers/linear.js";
import {
  positional_encoding,
  positional_encoding_backward,
} from "./layers/positional_encoding.js";
import { relu, relu_backward } from "./layers/relu.js";
import { residual, residual_backward } from "./layers/residual.js";
import { rms_norm, rms_norm_backward } from "./layers/rms_norm.js";
import { rotary, rotary_backward } from "./layers/rotary.js";
import { silu, silu_backward } from "./layers/silu.js";
import { softmax, softmax_backward } from "./layers/softmax.js";
import { swiglu, swiglu_backward } from "./layers/swiglu.js";
import {
  activated_feed_forward,
  activated_feed_forward_backward,
  self_attention,
  self_attention_backward,
} from "./sublayers.js";

// What computes a kind of box, and the lesson about it; `of_class` is what the package has in place
// of the two functions.
export const PAIRS = {
  embedding: { pair: [embedding, embedding_backward], lesson: "05" },
  positional_encoding: { pair: [positional_encoding, positional_encoding_backward], lesson: "06" },
  layer_norm: { pair: [layer_norm, layer_norm_backward], lesson: "07" },
  linear: { pair: [linear, linear_backward], lesson: "02" },
  softmax: { pair: [softmax, softmax_backward], lesson: "04" },
  scaled_dot_product_attention: {
    pair: [scaled_dot_product_attention, scaled_dot_product_attention_backward],
    lesson: "08",
  },
  multi_head_attention: {
    pair: [multi_head_attention, multi_head_attention_backward],
    lesson: "09",
  },
  relu: { pair: [relu, relu_backward], lesson: "02" },
  feed_forward: { pair: [feed_forward, feed_forward_backward], lesson: "02" },
  residual: { pair: [residual, residual_backward], lesson: "10" },
  // those of language models
  learned_positions: { pair: [learned_positions, learned_positions_backward], lesson: "06" },
  unscaled_embedding: { pair: [unscaled_embedding, embedding_backward], lesson: "05" },
  rms_norm: { pair: [rms_norm, rms_norm_backward], lesson: "27" },
  rotary: { pair: [rotary, rotary_backward], lesson: "27" },
  gelu: { pair: [gelu, gelu_backward], lesson: "27" },
  gelu_by_tanh: { pair: [gelu_by_tanh, gelu_by_tanh_backward], lesson: "27" },
  silu: { pair: [silu, silu_backward], lesson: "27" },
  swiglu: { pair: [swiglu, swiglu_backward], lesson: "27" },
  activated_feed_forward: {
    pair: [activated_feed_forward, activated_feed_forward_backward],
    of_class: "ActivatedFeedForward",
    lesson: "27",
  },
  alibi_attention: { pair: [alibi_attention, alibi_attention_backward], lesson: "27" },
  self_attention: {
    pair: [self_attention, self_attention_backward],
    of_class: "SelfAttention",
    lesson: "27",
  },
};

// The kind of a box by the last part of its name.
const KINDS = {
  embedding: "embedding",
  positions: "positional_encoding",
  norm: "layer_norm",
  query: "linear",
  key: "linear",
  value: "linear",
  scores: "scaled_dot_product_attention",
  weights: "softmax",
  heads: "scaled_dot_product_attention",
  self: "multi_head_attention",
  cross: "multi_head_attention",
  inner: "linear",
  relu: "relu",
  turned_query: "rotary",
  turned_key: "rotary",
  gelu: "gelu",
  gelu_by_tanh: "gelu_by_tanh",
  gate: "linear",
  silu: "silu",
  up: "linear",
  gated: "swiglu",
  feed_forward: "feed_forward",
  residual: "residual",
  logits: "linear",
  probabilities: "softmax",
};

// What one forward has computed, and the caches that its backward needs. `kinds` has those of boxes
// that this model computes otherwise, by the last part of their names.
export class Run {
  constructor(off = new Set(), kinds = {}) {
    this.off = off;
    this.kinds = kinds;
    this.states = [];
    this.caches = {};
  }

  show(name, value) {
    const part = name.split(".").at(-1);
    const kind = this.kinds[part] ?? KINDS[part];
    const { pair, of_class, lesson } = PAIRS[kind];
    const functions = of_class ?? pair.map((f) => f.name).join(" / ");
    this.states.push({ name, kind, shape: value.shape, value, functions, lesson });
  }

  state(name) {
    const found = this.states.find((state) => state.name === name);
    if (!found) {
      throw new RangeError(`there is no box ${name}`);
    }
    return found;
  }

  attention(name) {
    return this.state(`${name}.weights`).value;
  }

  // The numbers of the heads of an attention that are off.
  off_in(name) {
    const heads = [...this.off].filter((head) => head.startsWith(`${name}.`));
    return new Set(heads.map((head) => Number(head.slice(name.length + 1))));
  }
}

// The gradient of one number with respect to boxes and parameters; what is used twice adds up.
export class Gradient {
  constructor() {
    this.gradients = {};
    this.flow = [];
  }

  add(name, value) {
    const before = this.gradients[name];
    this.gradients[name] = before ? add(before, value) : value;
  }

  of(name) {
    if (!(name in this.gradients)) {
      throw new RangeError(`there is no gradient of ${name}`);
    }
    return this.gradients[name];
  }
}
