import { number_of_rows, row, zeros } from "../arrays.js";

// Softmax over the last axis (section 3.2.1): x (..., T, S), mask (T, S) with 1 where looking is
// allowed. Forbidden places have weight 0.
export function softmax(x, mask = null) {
  const weights = zeros(x.shape);
  for (let i = 0; i < number_of_rows(x); i++) {
    const allowed = mask && row(mask, i % number_of_rows(mask));
    const scores = row(x, i).map((score, j) => (!allowed || allowed[j] ? score : -Infinity));
    const peak = scores.reduce((a, b) => Math.max(a, b)); // exp of what is left cannot overflow
    const powers = scores.map((score) => Math.exp(score - peak));
    const total = powers.reduce((sum, power) => sum + power, 0);
    row(weights, i).set(powers.map((power) => power / total));
  }
  return [weights, weights];
}

export function softmax_backward(dweights, cache) {
  const weights = cache;
  const dx = zeros(weights.shape);
  for (let i = 0; i < number_of_rows(weights); i++) {
    const [w, dw] = [row(weights, i), row(dweights, i)];
    const together = w.reduce((sum, value, j) => sum + value * dw[j], 0);
    row(dx, i).set(w.map((value, j) => value * (dw[j] - together)));
  }
  return dx;
}

// The logarithms of the softmax of scores (V,), numbers.
export function log_softmax(scores) {
  const peak = scores.reduce((a, b) => Math.max(a, b));
  const log_total = Math.log(scores.reduce((sum, score) => sum + Math.exp(score - peak), 0));
  return scores.map((score) => score - peak - log_total);
}

// (T, T): position t may look at positions up to t, never ahead.
export function causal_mask(length) {
  const mask = zeros([length, length]); // (T, T)
  for (let t = 0; t < length; t++) {
    row(mask, t).fill(1, 0, t + 1);
  }
  return mask;
}
