import { Optimizer } from "./optimizer.js";

// Gradient descent, θ = θ − η g: the Python's SGD without its momentum.
export function sgd_update(data, grad, learning_rate) {
  return [data.map((theta, i) => theta - learning_rate * grad[i])];
}

export class SGD extends Optimizer {
  static names = [];

  update(data, grad, _, learning_rate) {
    return sgd_update(data, grad, learning_rate);
  }
}
