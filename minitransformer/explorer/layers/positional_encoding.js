import { array, row, zeros } from "../arrays.js";

// Sinusoidal positional encoding (section 3.5): a sine and a cosine for each pair of columns. The
// rows of the table from position `first` to before `end`.
export function sinusoidal_encoding(first, end, d_model) {
  const table = zeros([Math.max(0, end - first), d_model]); // (T, D)
  for (let t = first; t < end; t++) {
    for (let i = 0; i < d_model; i += 2) {
      const angle = t * 10000 ** (-i / d_model);
      row(table, t - first).set([Math.sin(angle), Math.cos(angle)], i);
    }
  }
  return table;
}

// x (T, D) plus the first T rows of the table.
export function positional_encoding(x, table) {
  const [length, max_length] = [x.shape[0], table.shape[0]];
  if (length > max_length) {
    throw new RangeError(
      `${length} pieces need as many positions, and the model has ${max_length}`,
    );
  }
  return [array(x.shape, x.data.map((value, i) => value + table.data[i])), null];
}

export function positional_encoding_backward(dy, cache) {
  return dy;
}
