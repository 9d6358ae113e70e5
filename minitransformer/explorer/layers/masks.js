import { multiply, row, zeros } from "../arrays.js";

// (T, T): position t may look as far as `window` to either side.
export function window_mask(length, window) {
  const mask = zeros([length, length]); // (T, T)
  for (let t = 0; t < length; t++) {
    row(mask, t).fill(1, Math.max(0, t - window), t + window + 1);
  }
  return mask;
}

// What all of the masks allow; those that are null allow all. null if they all are.
export function all_of(...masks) {
  const given = masks.filter((mask) => mask !== null);
  return given.length > 0 ? given.reduce((a, b) => multiply(a, b)) : null;
}
