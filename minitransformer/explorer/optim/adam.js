import { Optimizer } from "./optimizer.js";

const [BETA_1, BETA_2, EPSILON] = [0.9, 0.98, 1e-9]; // of section 5.3

// Adam (Kingma and Ba 2015), step t, counted from 1: what becomes of the parameters and of both
// moments.
//
//   m = β₁ m + (1 − β₁) g        v = β₂ v + (1 − β₂) g²
//   θ = θ − η · (m / (1 − β₁ᵗ)) / (√(v / (1 − β₂ᵗ)) + ε)
export function adam_update(data, grad, m, v, learning_rate, t) {
  const m_after = m.map((m_i, i) => BETA_1 * m_i + (1 - BETA_1) * grad[i]);
  const v_after = v.map((v_i, i) => BETA_2 * v_i + (1 - BETA_2) * grad[i] * grad[i]);
  const [m_share, v_share] = [1 - BETA_1 ** t, 1 - BETA_2 ** t]; // the moments started at zero
  const after = data.map((theta, i) => {
    const m_hat = m_after[i] / m_share;
    const v_hat = v_after[i] / v_share;
    return theta - (learning_rate * m_hat) / (Math.sqrt(v_hat) + EPSILON);
  });
  return [after, m_after, v_after];
}

export class Adam extends Optimizer {
  static names = ["m", "v"];

  update(data, grad, [m, v], learning_rate) {
    return adam_update(data, grad, m, v, learning_rate, this.t);
  }
}
