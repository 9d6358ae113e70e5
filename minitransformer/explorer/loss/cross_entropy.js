import { number_of_rows, row, zeros } from "../arrays.js";
import { log_softmax } from "../layers/softmax.js";
import { PAD } from "../subwords.js";

// Cross-entropy, the mean of −log p of the targets that are not padding (section 5.4, without
// smoothing): logits (T, V), targets T ids.
export function cross_entropy(logits, targets) {
  const log_p = zeros(logits.shape); // (T, V)
  for (let t = 0; t < number_of_rows(logits); t++) {
    row(log_p, t).set(log_softmax(row(logits, t)));
  }
  const count = targets.filter((target) => target !== PAD).length;
  const share = targets.map((target) => (target === PAD ? 0 : 1 / count)); // of the mean, (T,)
  const loss = targets.reduce((sum, v, t) => sum - row(log_p, t)[v] * share[t], 0);
  return [loss, [log_p, targets, share]];
}

// ∂ loss / ∂z = (p_v − [v = target]) / N at each of the N targets, and 0 at padding.
export function cross_entropy_backward(dloss, cache) {
  const [log_p, targets, share] = cache;
  const dlogits = zeros(log_p.shape); // (T, V)
  targets.forEach((target, t) => {
    const p_minus_q = row(log_p, t).map((log_p_v, v) => Math.exp(log_p_v) - (v === target ? 1 : 0));
    row(dlogits, t).set(p_minus_q.map((value) => value * share[t] * dloss));
  });
  return dlogits;
}
