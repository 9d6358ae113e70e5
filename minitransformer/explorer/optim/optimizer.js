// What all optimizers share: vectors as large as the parameters, a count, and one update of all. A
// subclass has `static names`, those of its vectors, and
//
//   update(data, grad, vectors, learning_rate)
//
// which gives [data, ...vectors] of one parameter after the update. Nothing is written to: a step
// makes new parameters, and those before it stay as they are.

import { array, zeros } from "../arrays.js";

export class Optimizer {
  // `parameters`: arrays by path, as a Transformer has them.
  constructor(parameters) {
    this.t = 0; // updates made so far
    this.vectors = {}; // by path, what is remembered of earlier gradients; zeros at first
    for (const [path, { shape }] of Object.entries(parameters)) {
      this.vectors[path] = this.constructor.names.map(() => zeros(shape).data);
    }
  }

  // The parameters after one update, from their Gradient, with the learning rate η of this step.
  step(parameters, gradient, learning_rate) {
    this.t += 1;
    const updated = Object.entries(parameters).map(([path, { shape, data }]) => {
      const grad = gradient.of(path).data;
      const [after, ...vectors] = this.update(data, grad, this.vectors[path], learning_rate);
      this.vectors[path] = vectors;
      return [path, array(shape, after)];
    });
    return Object.fromEntries(updated);
  }
}
