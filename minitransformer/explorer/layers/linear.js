import { matmul, number_of_rows, row, sum_of_rows, transposed } from "../arrays.js";

// Linear map, y = x W + b: x (T, D_in), weight (D_in, D_out), bias (D_out,) or null.
export function linear(x, weight, bias = null) {
  const y = matmul(x, weight); // (T, D_out)
  for (let t = 0; bias && t < number_of_rows(y); t++) {
    const y_t = row(y, t);
    y_t.forEach((value, j) => (y_t[j] = value + bias.data[j]));
  }
  return [y, [x, weight, bias]];
}

export function linear_backward(dy, cache) {
  const [x, weight, bias] = cache;
  const dbias = bias && sum_of_rows(dy); // (D_out,)
  const dweight = matmul(transposed(x), dy); // (D_in, D_out)
  const dx = matmul(dy, transposed(weight)); // (T, D_in)
  return [dx, dweight, dbias];
}
