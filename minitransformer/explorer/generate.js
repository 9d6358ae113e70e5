// Going on with a text, one piece at a time (inference/generator.py), over a cache of keys and
// values (decoding/language_model.py).

import { array, row, transposed } from "./arrays.js";
import { Run } from "./boxes.js";
import { merge_heads, without_heads } from "./layers/attention.js";
import { repeat_groups } from "./layers/grouped_query_attention.js";
import { linear } from "./layers/linear.js";
import { softmax } from "./layers/softmax.js";
import { LanguageModel } from "./language_model.js";
import { uniform_numbers } from "./random.js";
import { drawn, sampling_probabilities } from "./sampling.js";
import { attention, queries_keys_values } from "./sublayers.js";
import { appended, likeliest } from "./translate.js";

// What follows the ids `start`, of which the model has seen all but the last when it begins, until
// `most` pieces have been read. Each step is
//   { position, id, probability, forced, candidates, chance }
// as of `translate`, and `chance` what the piece was drawn with. Ids are drawn with the
// temperature, the `top_k` and the numbers of the seed, as long as none is forced.
export function* generate(model, vocabulary, start, most, options = {}) {
  const { forced = [], off = new Set(), temperature = 0, top_k = 0, seed = 0 } = options;
  const decoder = new LanguageModelDecoder(model, off);
  start.slice(0, -1).forEach((id) => decoder.step(id));
  const numbers = uniform_numbers(seed);
  let id = start.at(-1);
  for (let position = start.length - 1, said = 0; position < most; position++, said++) {
    const logits = decoder.step(id); // (1, V)
    const [probabilities] = softmax(logits); // (1, V)
    const chances = sampling_probabilities(logits.data, temperature, top_k, vocabulary.never);
    const is_forced = said < forced.length;
    id = is_forced ? forced[said] : drawn(chances, numbers.next().value);
    const candidates = likeliest(probabilities, vocabulary.never);
    const probability = probabilities.data[id];
    yield { position, id, probability, forced: is_forced, candidates, chance: chances[id] };
    if (vocabulary.ends.includes(id)) {
      return;
    }
  }
}

// The model one position at a time.
export class LanguageModelDecoder extends LanguageModel {
  constructor(model, off = new Set()) {
    super(model.config, model.parameters);
    this.off = off;
    this.position = 0;
    this.kept = {}; // keys and values of each attention, (G, T, K)
    this.output_weight = transposed(this.parameters[this.embeddings.output]); // (D, V)
  }

  // Logits (1, V) of what follows when the text goes on with one more piece.
  step(id) {
    const y = this.features([id], new Run(this.off), this.position); // (1, D)
    this.position += 1;
    return linear(y, this.output_weight)[0]; // (1, V)
  }

  sublayer(name, x, run, memory, mask) {
    if (name.endsWith("feed_forward")) {
      return super.sublayer(name, x, run, memory, mask);
    }
    const [maps, how] = [this.maps(name), this.how(run, x)];
    const [query, ...now] = queries_keys_values(x, maps, how); // (H, 1, K), (G, 1, K) twice, caches
    const before = this.kept[name];
    this.kept[name] = now.slice(0, 2).map((y, i) => (before ? appended(before[i], y) : y));
    const [k, v] = this.kept[name].map((y) => repeat_groups(y, how.num_heads)); // (H, T, K)
    const [all_heads] = attention(query, k, v, how, this.last_row(k.shape[1]));
    const heads = without_heads(all_heads, run.off_in(name)); // (H, 1, K)
    return linear(merge_heads(heads), ...maps[3]); // (1, D)
  }

  // What the last of so many positions may look at, (1, T), or null: all.
  last_row(length) {
    const near = this.near(length);
    return near && array([1, length], row(near, length - 1));
  }
}
