import { add, matmul, row, scaled, transposed, zeros } from "../arrays.js";
import { scaled_dot_product_attention_backward } from "./attention.js";
import { softmax } from "./softmax.js";

// The slope m_h = 2^(−8h/H) of each head, h = 1 … H.
export function alibi_slopes(num_heads) {
  return Array.from({ length: num_heads }, (_, h) => 2 ** ((-8 * (h + 1)) / num_heads));
}

// What each score loses, (H, T, S): m_h for each position between query and key, of which the last
// ones are together.
function alibi_bias(slopes, queries, keys) {
  const bias = zeros([slopes.length, queries, keys]); // (H, T, S)
  slopes.forEach((slope, h) => {
    for (let t = 0; t < queries; t++) {
      row(bias, h * queries + t).forEach((_, s, bias_t) => {
        bias_t[s] = -slope * Math.abs(t + keys - queries - s);
      });
    }
  });
  return bias;
}

// Attention with linear biases, softmax(Q Kᵀ / √d_k − m_h |t − s|) V: as
// scaled_dot_product_attention.
export function alibi_attention(query, key, value, slopes, mask, show) {
  const scale = 1 / Math.sqrt(query.shape.at(-1));
  const bias = alibi_bias(slopes, query.shape[1], key.shape[1]); // (H, T, S)
  const scores = add(scaled(matmul(query, transposed(key)), scale), bias); // (H, T, S)
  const [weights, softmax_cache] = softmax(scores, mask);
  const y = matmul(weights, value); // (H, T, K)
  show?.("scores", scores);
  show?.("weights", weights);
  return [y, [query, key, value, scale, softmax_cache, weights]];
}

export function alibi_attention_backward(dy, cache, show) {
  return scaled_dot_product_attention_backward(dy, cache, show);
}
