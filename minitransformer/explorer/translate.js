// Greedy search, one piece at a time, over a cache of keys and values (decoding/incremental.py).

import { row, transposed, zeros } from "./arrays.js";
import { Run } from "./boxes.js";
import {
  merge_heads,
  scaled_dot_product_attention,
  split_heads,
  without_heads,
} from "./layers/attention.js";
import { linear } from "./layers/linear.js";
import { softmax } from "./layers/softmax.js";
import { BOS, EOS, PAD } from "./subwords.js";
import { Transformer } from "./transformer.js";

// The pieces that most probably follow, { id, probability }, the likeliest first, by the
// probabilities (1, V) of all. Those of `never`, here padding and start symbol, are never said.
export function likeliest(probabilities, never = [PAD, BOS], count = 10) {
  return Array.from(probabilities.data, (probability, id) => ({ id, probability }))
    .filter(({ id }) => !never.includes(id))
    .sort((a, b) => b.probability - a.probability || a.id - b.id)
    .slice(0, count);
}

// The translation of source ids, piece by piece. Each step is
//   { position, id, probability, forced, candidates }
// with what `likeliest` gives as candidates, and id the first of them or, as long as there are
// any, the next of the `forced` ids. It ends after EOS or the most pieces that are allowed.
export function* translate(model, source_ids, { forced = [], off = new Set() } = {}) {
  const decoder = new IncrementalDecoder(model, source_ids, off);
  const most = Math.min(2 * source_ids.length + 10, model.config.max_length);
  for (let position = 0, id = BOS; position < most && id !== EOS; position++) {
    const [probabilities] = softmax(decoder.step(id)); // (1, V)
    const candidates = likeliest(probabilities);
    const is_forced = position < forced.length;
    id = is_forced ? forced[position] : candidates[0].id;
    yield { position, id, probability: probabilities.data[id], forced: is_forced, candidates };
  }
}

// The model one position at a time. Keys and values of what has been said do not change when a piece
// is added, so they are kept, and a step computes one position.
export class IncrementalDecoder extends Transformer {
  constructor(model, source_ids, off = new Set()) {
    super(model.config, model.parameters);
    this.off = off;
    this.position = 0;
    this.kept = {}; // key and value of each attention of the decoder, (H, S, K) or (H, T, K)
    this.output_weight = transposed(this.parameters[this.embeddings.output]); // (D, V)
    this.memory = this.encode(source_ids, new Run(off)); // (S, D)
  }

  // Logits (1, V) of what follows when one more piece is said, BOS at first.
  step(id) {
    const run = new Run(this.off); // of this position alone
    const y = this.decode([id], this.memory, run, this.position); // (1, D)
    this.position += 1;
    return linear(y, this.output_weight)[0]; // (1, V)
  }

  sublayer(name, x, run, memory, mask) {
    if (name.startsWith("encoder") || name.endsWith("feed_forward")) {
      return super.sublayer(name, x, run, memory, mask);
    }
    const [w_query, w_key, w_value, w_output] = this.weights(name);
    const heads_of = (input, weight) => split_heads(linear(input, weight)[0], this.config.num_heads);
    if (!name.endsWith("cross")) {
      const now = [w_key, w_value].map((weight) => heads_of(x, weight)); // (H, 1, K)
      const before = this.kept[name];
      this.kept[name] = before ? now.map((more, i) => appended(before[i], more)) : now;
    }
    this.kept[name] ??= [w_key, w_value].map((weight) => heads_of(memory, weight)); // (H, S, K)
    const query = heads_of(x, w_query); // (H, 1, K)
    const [all_heads] = scaled_dot_product_attention(query, ...this.kept[name], null);
    const heads = without_heads(all_heads, run.off_in(name)); // (H, 1, K)
    return linear(merge_heads(heads), w_output); // (1, D)
  }
}

// (H, T, K) and (H, 1, K) as (H, T + 1, K).
export function appended(x, more) {
  const [num_heads, length, head_width] = x.shape;
  const y = zeros([num_heads, length + 1, head_width]); // (H, T + 1, K)
  for (let h = 0; h < num_heads; h++) {
    const from = h * length * head_width;
    y.data.set(x.data.subarray(from, from + length * head_width), from + h * head_width);
    y.data.set(row(more, h), from + (h + length) * head_width);
  }
  return y;
}
