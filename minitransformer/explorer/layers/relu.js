import { array, multiply } from "../arrays.js";

// Rectified linear unit, y = max(0, x) (section 3.3); the slope at 0 is taken as 0.
export function relu(x) {
  const alive = array(x.shape, x.data.map((value) => (value > 0 ? 1 : 0)));
  return [array(x.shape, x.data.map((value) => Math.max(0, value))), alive];
}

export function relu_backward(dy, cache) {
  const alive = cache;
  return multiply(dy, alive);
}
