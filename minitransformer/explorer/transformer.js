// The Transformer (figure 1), forward and backward, for one sentence and without dropout.
//
//   const { config, vocabulary, model } = load_model(document);
//   const source = vocabulary.encode_source(text);         ids, the end symbol last; a text that
//                                                          is too long loses its end
//   const run = model.forward(source, target, { off });    target: ids, BOS first
//   const gradient = model.gradient(run, position, piece);
//   const gradient = model.backward(dlogits, run);         of any number, from its gradient of the
//                                                          logits (T, V)
//   for (const step of translate(model, source, { forced, off })) …          see translate.js
//   for (const { model, loss } of learn(model, lesson, options)) …           see learn.js
//
// `off` is a Set of heads that give zeros, by names such as "encoder.0.self.2" (its third head).
//
// A run has
//   logits               (T, V); row t scores the piece that follows target[0 … t]
//   states               all boxes in the order of computation, each
//                        { name, kind, shape, value, functions, lesson }, value an array
//   state(name)          one of them
//   attention(name)      the weights (H, T, S) of "encoder.0.self", "decoder.1.cross", …
//   source_ids, target_ids, off
//
// A gradient, of log p(piece | source, target[0 … position]) or of what dlogits are of, has
//   log_probability      that number itself, if it is one of those; with a mask `among` (1, V)
//                        p counts among those pieces
//   source, target       with respect to each embedded piece: (S, D) and (T, D)
//   of(name)             with respect to a box or a parameter, in its shape
//   flow                 a block an entry, from the last to the first, each { block, residual,
//                        sublayer, residual_norm, sublayer_norm }: the gradient of the block's
//                        input along the two ways into it, past the sublayer and through it, in
//                        the shape of the input, and their lengths. A cross-attention also has
//                        memory and memory_norm, its gradient of the encoder's output.
//
// The names of boxes, for layer 0, in pre-norm:
//   source.embedding, source.positions, and target.…
//   encoder.0.self.norm, .query, .key, .value, .scores, .weights, .heads;   encoder.0.self;
//   encoder.0.self.residual
//   encoder.0.feed_forward.norm, .inner, .relu;   encoder.0.feed_forward;
//   encoder.0.feed_forward.residual;   …   encoder.norm
//   decoder.0.self, decoder.0.cross, decoder.0.feed_forward, as these;   …   decoder.norm
//   logits, probabilities
// In post-norm .norm comes after .residual, and encoder.norm and decoder.norm are not there. A
// language model has target.… and decoder.… without .cross, a masked one source.… and encoder.…,
// see language_model.js.
// PAIRS, in boxes.js, has the functions of each kind of box. Names of parameters are those of the
// Python; paths(name) are those of a sublayer such as "encoder.0.self".

import { add, length_of, transposed, zeros } from "./arrays.js";
import { Gradient, Run } from "./boxes.js";
import { multi_head_attention, multi_head_attention_backward } from "./layers/attention.js";
import { embedding, embedding_backward } from "./layers/embedding.js";
import { feed_forward, feed_forward_backward } from "./layers/feed_forward.js";
import { layer_norm, layer_norm_backward } from "./layers/layer_norm.js";
import { linear, linear_backward } from "./layers/linear.js";
import { log_probability, log_probability_backward } from "./layers/log_probability.js";
import {
  positional_encoding,
  positional_encoding_backward,
  sinusoidal_encoding,
} from "./layers/positional_encoding.js";
import { residual, residual_backward } from "./layers/residual.js";
import { causal_mask, softmax } from "./layers/softmax.js";

const MODULES = { self: "self_attention", cross: "cross_attention", feed_forward: "feed_forward" };

export class Transformer {
  // `parameters`: arrays by their path in the Python model, shared ones under the first of theirs.
  constructor(config, parameters) {
    this.config = config;
    this.parameters = parameters;
    this.pre_norm = config.norm === "pre";
    const source = "source_embedding.weight";
    const target = config.tying === "three-way" ? source : "target_embedding.weight";
    const output = config.tying === "none" ? "output_projection.weight" : target;
    this.embeddings = { source, target, output };
    const { num_encoder_layers, num_decoder_layers } = config;
    this.added_positions = true; // to the embeddings
    this.kinds = {}; // of boxes that are computed otherwise than in this model
    this.stacks = {
      encoder: { input: "source", layers: num_encoder_layers, sublayers: ["self", "feed_forward"] },
      decoder: {
        input: "target",
        layers: num_decoder_layers,
        sublayers: ["self", "cross", "feed_forward"],
      },
    };
  }

  forward(source_ids, target_ids, { off = new Set() } = {}) {
    const run = new Run(off);
    Object.assign(run, { source_ids, target_ids });
    const memory = this.encode(source_ids, run); // (S, D)
    return this.project(this.decode(target_ids, memory, run), run);
  }

  // The logits that end a run, of what the last stack has given, y (T, D).
  project(y, run) {
    const [logits, cache] = linear(y, transposed(this.parameters[this.embeddings.output]));
    run.caches.logits = cache;
    run.logits = logits; // (T, V)
    run.show("logits", logits);
    run.show("probabilities", softmax(logits)[0]);
    return run;
  }

  gradient(run, position, piece, among = null) {
    const [number, cache] = log_probability(run.logits, position, piece, among);
    const gradient = this.backward(log_probability_backward(1, cache), run);
    gradient.log_probability = number;
    return gradient;
  }

  backward(dlogits, run) {
    const gradient = new Gradient();
    const [dy, dweight_transposed] = linear_backward(dlogits, run.caches.logits); // (T, D)
    gradient.add("logits", dlogits);
    gradient.add(this.embeddings.output, transposed(dweight_transposed));
    this.features_backward(dy, run, gradient);
    for (const { input } of Object.values(this.stacks)) {
      gradient[input] = gradient.of(`${input}.embedding`); // (S, D) or (T, D)
    }
    return gradient;
  }

  features_backward(dy, run, gradient) {
    const dmemory = this.decode_backward(dy, run, gradient); // (S, D)
    this.encode_backward(dmemory, run, gradient);
  }

  // The memory (S, D) of source ids.
  encode(ids, run) {
    let x = this.embed("source", ids, run); // (S, D)
    for (const name of this.blocks("encoder")) {
      x = this.block(name, x, run);
    }
    return this.final_norm("encoder", x, run);
  }

  encode_backward(dmemory, run, gradient) {
    let dx = this.final_norm_backward("encoder", dmemory, run, gradient);
    for (const name of this.blocks("encoder").reverse()) {
      [dx] = this.block_backward(name, dx, run, gradient);
    }
    this.embed_backward("source", dx, run, gradient);
  }

  // The decoder's output (T, D) for target ids, given the memory. They begin at position `first`.
  decode(ids, memory, run, first = 0) {
    const mask = causal_mask(ids.length); // (T, T)
    let x = this.embed("target", ids, run, first); // (T, D)
    for (const name of this.blocks("decoder")) {
      x = this.block(name, x, run, memory, mask);
    }
    return this.final_norm("decoder", x, run);
  }

  decode_backward(dy, run, gradient) {
    let dmemory = zeros([run.source_ids.length, this.config.d_model]); // (S, D)
    let dmemory_of_block;
    let dx = this.final_norm_backward("decoder", dy, run, gradient);
    for (const name of this.blocks("decoder").reverse()) {
      [dx, dmemory_of_block] = this.block_backward(name, dx, run, gradient);
      dmemory = dmemory_of_block ? add(dmemory, dmemory_of_block) : dmemory;
    }
    this.embed_backward("target", dx, run, gradient);
    return dmemory;
  }

  // The blocks of a side, in order: a block is a sublayer within its residual connection.
  blocks(side) {
    const { layers, sublayers } = this.stacks[side];
    const numbers = [...Array(layers).keys()];
    return numbers.flatMap((layer) => sublayers.map((name) => `${side}.${layer}.${name}`));
  }

  // post-norm: y = LayerNorm(x + Sublayer(x)); pre-norm: y = x + Sublayer(LayerNorm(x)).
  block(name, x, run, memory = null, mask = null) {
    const [entered, enter_cache] = this.pre_norm ? this.norm(name, x, run) : [x, null];
    const [h, sublayer_cache] = this.sublayer(name, entered, run, memory, mask);
    run.show(name, h);
    const [z, residual_cache] = residual(x, h);
    run.show(`${name}.residual`, z);
    const [y, leave_cache] = this.pre_norm ? [z, null] : this.norm(name, z, run);
    run.caches[name] = [enter_cache, sublayer_cache, residual_cache, leave_cache];
    return y;
  }

  // The gradient of x, and that of the memory or undefined.
  block_backward(name, dy, run, gradient) {
    const [enter_cache, sublayer_cache, residual_cache, leave_cache] = run.caches[name];
    const dz = this.pre_norm ? dy : this.norm_backward(name, dy, leave_cache, gradient);
    gradient.add(`${name}.residual`, dz);
    const [dx, dh] = residual_backward(dz, residual_cache);
    gradient.add(name, dh);
    const [dentered, dmemory] = this.sublayer_backward(name, dh, sublayer_cache, gradient);
    const through = this.pre_norm
      ? this.norm_backward(name, dentered, enter_cache, gradient)
      : dentered;
    const ways = { residual: dx, sublayer: through, ...(dmemory && { memory: dmemory }) };
    const norms = Object.entries(ways).map(([way, d]) => [`${way}_norm`, length_of(d.data)]);
    gradient.flow.push({ block: name, ...ways, ...Object.fromEntries(norms) });
    return [add(dx, through), dmemory];
  }

  sublayer(name, x, run, memory, mask) {
    const show = (part, value) => run.show(`${name}.${part}`, value);
    const weights = this.weights(name);
    if (name.endsWith("feed_forward")) {
      return feed_forward(x, ...weights, show);
    }
    const cross = name.endsWith("cross");
    const [other, allowed] = cross ? [memory, null] : [x, mask];
    const { num_heads } = this.config;
    const off = run.off_in(name);
    return multi_head_attention(x, other, other, weights, num_heads, allowed, off, show);
  }

  sublayer_backward(name, dh, cache, gradient) {
    const show = (part, value) => gradient.add(`${name}.${part}`, value);
    const keep = (dweights) =>
      this.paths(name).forEach((path, i) => gradient.add(path, dweights[i]));
    if (name.endsWith("feed_forward")) {
      const [dx, ...dweights] = feed_forward_backward(dh, cache, show);
      keep(dweights);
      return [dx];
    }
    const [dquery, dkey, dvalue, dweights] = multi_head_attention_backward(dh, cache, show);
    keep(dweights);
    const dother = add(dkey, dvalue);
    return name.endsWith("cross") ? [dquery, dother] : [add(dquery, dother)];
  }

  norm(name, x, run) {
    const [gamma, beta] = this.norm_paths(name).map((path) => this.parameters[path]);
    const [y, cache] = layer_norm(x, gamma, beta, this.config.epsilon);
    run.show(`${name}.norm`, y);
    return [y, cache];
  }

  norm_backward(name, dy, cache, gradient) {
    const [dx, ...dweights] = layer_norm_backward(dy, cache);
    this.norm_paths(name).forEach((path, i) => gradient.add(path, dweights[i]));
    gradient.add(`${name}.norm`, dy);
    return dx;
  }

  // In pre-norm a stack has one more LayerNorm at its end.
  final_norm(side, x, run) {
    const [y, cache] = this.pre_norm ? this.norm(side, x, run) : [x, null];
    run.caches[side] = cache;
    return y;
  }

  final_norm_backward(side, dy, run, gradient) {
    return this.pre_norm ? this.norm_backward(side, dy, run.caches[side], gradient) : dy;
  }

  embed(side, ids, run, first = 0) {
    const [words, cache] = embedding(ids, this.parameters[this.embeddings[side]]); // (T, D)
    const end = Math.min(first + ids.length, this.config.max_length);
    const table = sinusoidal_encoding(first, end, this.config.d_model); // (T, D)
    const [x, position_cache] = positional_encoding(words, table);
    run.show(`${side}.embedding`, words);
    run.show(`${side}.positions`, x);
    run.caches[side] = [cache, position_cache];
    return x;
  }

  embed_backward(side, dx, run, gradient) {
    const [cache, position_cache] = run.caches[side];
    const dwords = positional_encoding_backward(dx, position_cache);
    gradient.add(`${side}.positions`, dx);
    gradient.add(`${side}.embedding`, dwords);
    gradient.add(this.embeddings[side], embedding_backward(dwords, cache));
  }

  weights(name) {
    return this.paths(name).map((path) => this.parameters[path]);
  }

  // Where the weights of a sublayer are, in the order that its function takes them.
  paths(name) {
    const feeds = name.endsWith("feed_forward");
    const names = feeds
      ? ["w_1", "b_1", "w_2", "b_2"]
      : ["w_query", "w_key", "w_value", "w_output"];
    return names.map((weight) => `${this.module_path(name)}.${weight}`);
  }

  norm_paths(name) {
    const path = this.module_path(name) + (name.includes(".") ? "_residual.norm" : ".norm");
    return [`${path}.gamma`, `${path}.beta`];
  }

  // "encoder.0.self" is encoder.layers.0.self_attention.
  module_path(name) {
    const [side, layer, sublayer] = name.split(".");
    return sublayer ? `${side}.layers.${layer}.${MODULES[sublayer]}` : side;
  }
}
