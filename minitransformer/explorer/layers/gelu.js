import { array, multiply } from "../arrays.js";

// The series of erf, as layers/gelu.py derives it: amplitudes and frequencies of its sines.
const L = 12;
const SINES = Array.from({ length: 23 }, (_, i) => {
  const frequency = ((2 * i + 1) * Math.PI) / L;
  return [frequency, (4 / (L * frequency)) * Math.exp(-((frequency / 2) ** 2))];
});
const ROOT_2_BY_PI = Math.sqrt(2 / Math.PI);
const CUBIC = 0.044715;

function erf(x) {
  if (Math.abs(x) > L / 2) {
    return Math.sign(x);
  }
  return SINES.reduce((sum, [frequency, height]) => sum + height * Math.sin(frequency * x), 0);
}

// Gaussian error linear unit, y = x Φ(x), with Φ(x) = (1 + erf(x / √2)) / 2.
export function gelu(x) {
  const gate = array(x.shape, x.data.map((value) => 0.5 * (1 + erf(value * Math.SQRT1_2))));
  return [multiply(x, gate), [x, gate]];
}

export function gelu_backward(dy, cache) {
  const [x, gate] = cache;
  const slope = x.data.map((value, i) => {
    const density = Math.exp(-0.5 * value * value) / Math.sqrt(2 * Math.PI);
    return gate.data[i] + value * density;
  });
  return multiply(dy, array(dy.shape, slope));
}

// The same as GPT has it: y = x (1 + tanh u) / 2 with u = √(2/π) (x + 0.044715 x³).
export function gelu_by_tanh(x) {
  const bent = (value) => Math.tanh(ROOT_2_BY_PI * (value + CUBIC * value ** 3));
  const t = array(x.shape, x.data.map(bent));
  return [array(x.shape, x.data.map((value, i) => 0.5 * value * (1 + t.data[i]))), [x, t]];
}

export function gelu_by_tanh_backward(dy, cache) {
  const [x, t] = cache;
  const slope = x.data.map((value, i) => {
    const dt = (1 - t.data[i] ** 2) * ROOT_2_BY_PI * (1 + 3 * CUBIC * value ** 2);
    return 0.5 * (1 + t.data[i] + value * dt);
  });
  return multiply(dy, array(dy.shape, slope));
}
