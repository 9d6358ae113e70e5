import { linear, linear_backward } from "./linear.js";
import { relu, relu_backward } from "./relu.js";

// Position-wise feed-forward network, max(0, x W_1 + b_1) W_2 + b_2 (section 3.3, equation 2).
// `show(name, array)`, if given, is told of what is computed on the way.
export function feed_forward(x, w_1, b_1, w_2, b_2, show) {
  const [inner, inner_cache] = linear(x, w_1, b_1); // (T, F)
  const [h, relu_cache] = relu(inner);
  const [y, outer_cache] = linear(h, w_2, b_2); // (T, D)
  show?.("inner", inner);
  show?.("relu", h);
  return [y, [inner_cache, relu_cache, outer_cache]];
}

export function feed_forward_backward(dy, cache, show) {
  const [inner_cache, relu_cache, outer_cache] = cache;
  const [dh, dw_2, db_2] = linear_backward(dy, outer_cache); // (T, F)
  const dinner = relu_backward(dh, relu_cache);
  const [dx, dw_1, db_1] = linear_backward(dinner, inner_cache); // (T, D)
  show?.("relu", dh);
  show?.("inner", dinner);
  return [dx, dw_1, db_1, dw_2, db_2];
}
