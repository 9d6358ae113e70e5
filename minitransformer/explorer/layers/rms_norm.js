import { multiply, number_of_rows, row, sum_of_rows, zeros } from "../arrays.js";
import { mean } from "./layer_norm.js";

// Normalisation by the root mean square of the last axis: ρ = √(mean(x²) + ε), y = γ x / ρ.
export function rms_norm(x, gamma, epsilon = 1e-5) {
  const x_hat = zeros(x.shape); // (T, D)
  const y = zeros(x.shape); // (T, D)
  const rho = zeros([number_of_rows(x)]); // (T,)
  for (let t = 0; t < number_of_rows(x); t++) {
    rho.data[t] = Math.sqrt(mean(row(x, t).map((value) => value * value)) + epsilon);
    row(x_hat, t).set(row(x, t).map((value) => value / rho.data[t]));
    row(y, t).set(row(x_hat, t).map((value, j) => gamma.data[j] * value));
  }
  return [y, [x_hat, rho, gamma]];
}

export function rms_norm_backward(dy, cache) {
  const [x_hat, rho, gamma] = cache;
  const dgamma = sum_of_rows(multiply(dy, x_hat)); // (D,)
  const dx = zeros(dy.shape); // (T, D)
  for (let t = 0; t < number_of_rows(dy); t++) {
    const x_hat_t = row(x_hat, t);
    const dx_hat = row(dy, t).map((value, j) => value * gamma.data[j]);
    const through_rho = mean(dx_hat.map((value, j) => value * x_hat_t[j]));
    row(dx, t).set(dx_hat.map((value, j) => (value - x_hat_t[j] * through_rho) / rho.data[t]));
  }
  return [dx, dgamma];
}
