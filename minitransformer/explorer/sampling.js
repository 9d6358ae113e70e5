// Sampling, as decoding/sampling.py has it: what each piece is drawn with, and the draw itself.

// p = softmax(logits / temperature) of logits (V,), of the `top_k` likeliest alone if that is not
// 0; with temperature 0 the likeliest has 1. Pieces of `never` have 0.
export function sampling_probabilities(logits, temperature, top_k, never) {
  const allowed = logits.map((logit, id) => (never.includes(id) ? -Infinity : logit));
  const order = Array.from(allowed.keys()).sort((a, b) => allowed[b] - allowed[a] || a - b);
  const best = order.map((id) => allowed[id] - allowed[order[0]]); // from 0 downwards
  const powers = best.map((score, i) => {
    const left = top_k === 0 || i < top_k;
    return left ? (temperature > 0 ? Math.exp(score / temperature) : Number(i === 0)) : 0;
  });
  const total = powers.reduce((sum, power) => sum + power, 0);
  const p = new Float64Array(logits.length);
  order.forEach((id, i) => (p[id] = powers[i] / total));
  return p;
}

// The id that a number `uniform` in [0, 1) draws: the first up to which the probabilities sum to
// more.
export function drawn(p, uniform) {
  let sum = 0;
  const sums = p.map((share) => (sum += share));
  return sums.findIndex((upto) => upto / sum > uniform);
}
