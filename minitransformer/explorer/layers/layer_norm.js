import { multiply, number_of_rows, row, sum_of_rows, zeros } from "../arrays.js";

// Layer normalisation over the last axis: x̂ = (x − μ) / σ, y = γ x̂ + β (section 3.1).
export function layer_norm(x, gamma, beta, epsilon = 1e-5) {
  const x_hat = zeros(x.shape); // (T, D)
  const y = zeros(x.shape); // (T, D)
  const sigma = zeros([number_of_rows(x)]); // (T,)
  for (let t = 0; t < number_of_rows(x); t++) {
    const mu = mean(row(x, t));
    const centred = row(x, t).map((value) => value - mu);
    sigma.data[t] = Math.sqrt(mean(centred.map((value) => value * value)) + epsilon);
    row(x_hat, t).set(centred.map((value) => value / sigma.data[t]));
    row(y, t).set(row(x_hat, t).map((value, j) => gamma.data[j] * value + beta.data[j]));
  }
  return [y, [x_hat, sigma, gamma]];
}

export function layer_norm_backward(dy, cache) {
  const [x_hat, sigma, gamma] = cache;
  const dbeta = sum_of_rows(dy); // (D,)
  const dgamma = sum_of_rows(multiply(dy, x_hat)); // (D,)
  const dx = zeros(dy.shape); // (T, D)
  for (let t = 0; t < number_of_rows(dy); t++) {
    const x_hat_t = row(x_hat, t);
    const dx_hat = row(dy, t).map((value, j) => value * gamma.data[j]);
    const through_mean = mean(dx_hat);
    const through_sigma = mean(dx_hat.map((value, j) => value * x_hat_t[j]));
    row(dx, t).set(
      dx_hat.map((value, j) => (value - through_mean - x_hat_t[j] * through_sigma) / sigma.data[t]),
    );
  }
  return [dx, dgamma, dbeta];
}

export function mean(numbers) {
  return numbers.reduce((sum, value) => sum + value, 0) / numbers.length;
}
