import { number_of_rows, row, scaled, zeros } from "../arrays.js";

// The cosines and sines of the angles tω_i, two arrays (T, K/2), from position `first` to before
// `end`: ω_i = base^(−2i/K).
export function rotary_table(first, end, head_width, base) {
  const [cos, sin] = [0, 1].map(() => zeros([end - first, head_width / 2])); // (T, K/2)
  for (let t = first; t < end; t++) {
    for (let i = 0; i < head_width / 2; i++) {
      const angle = t * base ** ((-2 * i) / head_width);
      row(cos, t - first)[i] = Math.cos(angle);
      row(sin, t - first)[i] = Math.sin(angle);
    }
  }
  return [cos, sin];
}

// Rotary positions: each pair of features of x (H, T, K) turned by the angle of its position. Which
// two features are a pair, `pairs` says: "neighbours" or "halves".
export function rotary(x, table, pairs) {
  return [turned(x, table, pairs), [table, pairs]];
}

// dy turned back.
export function rotary_backward(dy, cache) {
  const [[cos, sin], pairs] = cache;
  return turned(dy, [cos, scaled(sin, -1)], pairs);
}

function turned(x, [cos, sin], pairs) {
  const half = cos.shape[1];
  const y = zeros(x.shape);
  for (let i = 0; i < number_of_rows(x); i++) {
    const [from, to] = [row(x, i), row(y, i)];
    const [cos_t, sin_t] = [cos, sin].map((table) => row(table, i % cos.shape[0]));
    for (let j = 0; j < half; j++) {
      const [a, b] = pairs === "neighbours" ? [2 * j, 2 * j + 1] : [j, j + half];
      to[a] = from[a] * cos_t[j] - from[b] * sin_t[j];
      to[b] = from[a] * sin_t[j] + from[b] * cos_t[j];
    }
  }
  return y;
}
