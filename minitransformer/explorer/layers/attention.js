import { array, matmul, scaled, transposed, zeros } from "../arrays.js";
import { linear, linear_backward } from "./linear.js";
import { softmax, softmax_backward } from "./softmax.js";

// Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V (section 3.2, equation 1): query (H, T, K), key and
// value (H, S, K), mask (T, S) or null. `show(name, array)`, if given, is told of what is computed
// on the way.
export function scaled_dot_product_attention(query, key, value, mask, show) {
  const scale = 1 / Math.sqrt(query.shape.at(-1));
  const scores = scaled(matmul(query, transposed(key)), scale); // (H, T, S)
  const [weights, softmax_cache] = softmax(scores, mask);
  const y = matmul(weights, value); // (H, T, K)
  show?.("scores", scores);
  show?.("weights", weights);
  return [y, [query, key, value, scale, softmax_cache, weights]];
}

export function scaled_dot_product_attention_backward(dy, cache, show) {
  const [query, key, value, scale, softmax_cache, weights] = cache;
  const dvalue = matmul(transposed(weights), dy); // (H, S, K)
  const dweights = matmul(dy, transposed(value)); // (H, T, S)
  const dscores = softmax_backward(dweights, softmax_cache);
  const dkey = scaled(matmul(transposed(dscores), query), scale); // (H, S, K)
  const dquery = scaled(matmul(dscores, key), scale); // (H, T, K)
  show?.("weights", dweights);
  show?.("scores", dscores);
  return [dquery, dkey, dvalue];
}

// (T, D) as (H, T, K).
export function split_heads(x, num_heads) {
  const [length, d_model] = x.shape;
  return axes_swapped(array([length, num_heads, d_model / num_heads], x.data));
}

// (H, T, K) as (T, D): the inverse of split_heads.
export function merge_heads(x) {
  const [num_heads, length, head_width] = x.shape;
  return array([length, num_heads * head_width], axes_swapped(x).data);
}

function axes_swapped(x) {
  const [m, n, width] = x.shape;
  const y = zeros([n, m, width]);
  for (let i = 0; i < m; i++) {
    for (let j = 0; j < n; j++) {
      const from = (i * n + j) * width;
      y.data.set(x.data.subarray(from, from + width), (j * m + i) * width);
    }
  }
  return y;
}

// x (H, T, K) with zeros for the heads that are off, a set of numbers.
export function without_heads(x, off) {
  const size = x.data.length / x.shape[0];
  return array(x.shape, x.data.map((value, i) => (off.has(Math.floor(i / size)) ? 0 : value)));
}

// Attention in `num_heads` subspaces at once: query (T, D), key and value (S, D), weights w (D, D).
// A head that is off gives zeros.
export function multi_head_attention(query, key, value, w, num_heads, mask, off, show) {
  const [w_query, w_key, w_value, w_output] = w;
  const [q, q_cache] = linear(query, w_query); // (T, D)
  const [k, k_cache] = linear(key, w_key); // (S, D)
  const [v, v_cache] = linear(value, w_value); // (S, D)
  const split = [q, k, v].map((x) => split_heads(x, num_heads)); // (H, T or S, K)
  ["query", "key", "value"].forEach((name, i) => show?.(name, split[i]));
  const [all_heads, attention_cache] = scaled_dot_product_attention(...split, mask, show);
  const heads = without_heads(all_heads, off); // (H, T, K)
  const [y, output_cache] = linear(merge_heads(heads), w_output); // (T, D)
  show?.("heads", heads);
  return [y, [num_heads, off, q_cache, k_cache, v_cache, attention_cache, output_cache]];
}

export function multi_head_attention_backward(dy, cache, show) {
  const [num_heads, off, q_cache, k_cache, v_cache, attention_cache, output_cache] = cache;
  const [dmerged, dw_output] = linear_backward(dy, output_cache); // (T, D)
  const dheads = split_heads(dmerged, num_heads); // (H, T, K)
  show?.("heads", dheads);
  const dall_heads = without_heads(dheads, off);
  const split = scaled_dot_product_attention_backward(dall_heads, attention_cache, show);
  ["query", "key", "value"].forEach((name, i) => show?.(name, split[i]));
  const [dq, dk, dv] = split.map(merge_heads); // (T or S, D)
  const [dvalue, dw_value] = linear_backward(dv, v_cache);
  const [dkey, dw_key] = linear_backward(dk, k_cache);
  const [dquery, dw_query] = linear_backward(dq, q_cache);
  return [dquery, dkey, dvalue, [dw_query, dw_key, dw_value, dw_output]];
}
