import { array, multiply } from "../arrays.js";

// Sigmoid linear unit, y = x σ(x): x is a gate to itself.
export function silu(x) {
  const gate = array(x.shape, x.data.map((value) => 1 / (1 + Math.exp(-value))));
  const y = multiply(x, gate);
  return [y, [gate, y]];
}

// dx = dy (σ + y (1 − σ)).
export function silu_backward(dy, cache) {
  const [gate, y] = cache;
  const slope = gate.data.map((sigma, i) => sigma + y.data[i] * (1 - sigma));
  return multiply(dy, array(dy.shape, slope));
}
