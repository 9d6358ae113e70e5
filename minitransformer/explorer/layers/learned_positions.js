import { array, row, zeros } from "../arrays.js";
import { positional_encoding, positional_encoding_backward } from "./positional_encoding.js";

// Learned positional embeddings, y_t = x_t + P_t: x (T, D) plus the rows of the table (max_length,
// D) from position `first` on.
export function learned_positions(x, table, first = 0) {
  const [max_length, d_model] = table.shape;
  const rows = array([max_length - first, d_model], table.data.subarray(first * d_model)); // (T, D)
  const [y, encoding_cache] = positional_encoding(x, rows);
  return [y, [encoding_cache, table, first]];
}

export function learned_positions_backward(dy, cache) {
  const [encoding_cache, table, first] = cache;
  const dtable = zeros(table.shape); // (max_length, D)
  for (let t = 0; t < dy.shape[0]; t++) {
    row(dtable, first + t).set(row(dy, t));
  }
  return [positional_encoding_backward(dy, encoding_cache), dtable];
}
