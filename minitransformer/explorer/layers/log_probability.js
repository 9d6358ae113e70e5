import { array, row, zeros } from "../arrays.js";
import { log_softmax, softmax } from "./softmax.js";

// The logarithm of the probability that logits (T, V) give to a piece at a position, among all or,
// with a mask `among` (1, V), among some. In training its negative is the loss of that position,
// see loss/cross_entropy.py.
export function log_probability(logits, position, piece, among = null) {
  const scores = row(logits, position).map((z, v) => (!among || among.data[v] ? z : -Infinity));
  const [p] = softmax(array([1, scores.length], scores)); // (1, V)
  return [log_softmax(scores)[piece], [logits.shape, p, position, piece]];
}

// ∂ log p / ∂z = [v = piece] − p_v at this position, and 0 at all others.
export function log_probability_backward(dy, cache) {
  const [shape, p, position, piece] = cache;
  const dlogits = zeros(shape); // (T, V)
  row(dlogits, position).set(p.data.map((p_v, v) => dy * ((v === piece ? 1 : 0) - p_v)));
  return dlogits;
}
