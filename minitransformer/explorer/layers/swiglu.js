import { add, multiply } from "../arrays.js";
import { linear, linear_backward } from "./linear.js";
import { silu, silu_backward } from "./silu.js";

// Feed-forward network with a gate, (SiLU(x W_gate) · x W_up) W_down: x (T, D), w_gate and w_up (D,
// F), w_down (F, D). `show(name, array)`, if given, is told of what is computed on the way.
export function swiglu(x, w_gate, w_up, w_down, show) {
  const [opening, gate_cache] = linear(x, w_gate); // (T, F)
  const [gate, silu_cache] = silu(opening);
  const [up, up_cache] = linear(x, w_up); // (T, F)
  const h = multiply(gate, up);
  const [y, down_cache] = linear(h, w_down); // (T, D)
  show?.("gate", opening);
  show?.("silu", gate);
  show?.("up", up);
  show?.("gated", h);
  return [y, [gate, up, gate_cache, silu_cache, up_cache, down_cache]];
}

export function swiglu_backward(dy, cache, show) {
  const [gate, up, gate_cache, silu_cache, up_cache, down_cache] = cache;
  const [dh, dw_down] = linear_backward(dy, down_cache); // (T, F)
  const dup = multiply(dh, gate);
  const [dx_up, dw_up] = linear_backward(dup, up_cache); // (T, D)
  const dgate = multiply(dh, up);
  const dopening = silu_backward(dgate, silu_cache);
  const [dx_gate, dw_gate] = linear_backward(dopening, gate_cache); // (T, D)
  show?.("gated", dh);
  show?.("up", dup);
  show?.("silu", dgate);
  show?.("gate", dopening);
  return [add(dx_gate, dx_up), dw_gate, dw_up, dw_down];
}
